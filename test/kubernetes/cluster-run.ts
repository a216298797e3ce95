// Runs in pods of a fake cluster, through the real kubectl, with a shell script as the agent.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject, type TestContext } from 'vitest'
import { createPods } from '../../src/kubernetes/pods.js'
import type { PodAddress, PodExit, PodProcess, PodProcessOptions, Pods } from '../../src/kubernetes/types.js'
import { RUN_MARKER } from '../../src/processes/process-owner.js'
import { until } from '../kit/waiting.js'
import type { ContainerProcess } from './fake-container.js'
import { FakeCluster } from './fake-cluster.js'
import type { FakePod, PodOptions } from './fake-pod.js'
import { SILENT_SHELL } from './silent-shell.js'

export interface Run extends PodProcess {
  runId: string
  stdout(): Buffer
  stderr(): Buffer
  /** Waits until the agent has printed it. */
  printed(text: string): Promise<void>
}

export interface Played {
  exit: PodExit
  stdout: string
  stderr: string
}

export interface Scene {
  cluster: FakeCluster
  pod: FakePod
  pods: Pods
  address: PodAddress
  start(script: string, options?: Partial<PodProcessOptions>): Promise<Run>
  /** To its end. */
  play(script: string, options?: Partial<PodProcessOptions>): Promise<Played>
}

/** The only things kubectl needs from this machine. */
export function kubectlEnvironment(kubeconfig: string): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', KUBECONFIG: kubeconfig }
}

export async function openScene(
  onTestFinished: TestContext['onTestFinished'],
  options: Partial<PodOptions> = {},
): Promise<Scene> {
  const cluster = await FakeCluster.start()
  onTestFinished(() => cluster.close())
  const pod = await cluster.addPod({ name: 'agent-0', ...options })
  const pods = createPods({
    environment: kubectlEnvironment(cluster.kubeconfig),
    passVariables: [],
    limits: { answerMs: 60_000 },
  })
  const address: PodAddress = { name: pod.name, namespace: pod.namespace }
  const start: Scene['start'] = async (script, given = {}) => {
    const opened = await pods.open(address, AbortSignal.timeout(60_000))
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    const runId = given.runId ?? randomUUID()
    const run = opened.start({
      ...SILENT_SHELL,
      directory: '/workspace',
      onStdout: (chunk) => stdout.push(chunk),
      onStderr: (chunk) => stderr.push(chunk),
      ...given,
      args: ['-c', script, 'agent', ...(given.args ?? [])],
      runId,
    })
    onTestFinished(() => run.stop())
    return {
      ended: run.ended,
      stop: () => run.stop(),
      runId,
      stdout: () => Buffer.concat(stdout),
      stderr: () => Buffer.concat(stderr),
      async printed(text) {
        await until(() => Buffer.concat(stdout).includes(text), `the agent prints ${text}`)
      },
    }
  }
  const play: Scene['play'] = async (script, given) => {
    const run = await start(script, given)
    return { exit: await run.ended, stdout: run.stdout().toString(), stderr: run.stderr().toString() }
  }
  return { cluster, pod, pods, address, start, play }
}

/** A run of the script by another process, which can be killed; the script has printed something. */
export async function holdRun(
  { cluster, pod }: Scene,
  runId: string,
  script: string,
  onTestFinished: TestContext['onTestFinished'],
): Promise<ChildProcess> {
  const program = join(inject('buildDirectory'), 'test', 'kubernetes', 'run-holder.js')
  const holder = spawn(process.execPath, [program, cluster.kubeconfig, pod.name, runId, script], {
    env: kubectlEnvironment(cluster.kubeconfig),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  return holder
}

export interface Left {
  processes: ContainerProcess[]
  files: string[]
}

export const nothing: Left = { processes: [], files: [] }

/** What is in the pod besides its first process, once nothing is left or this time is up. */
export async function leftIn(pod: FakePod, longestMs = 0): Promise<Left> {
  const deadline = Date.now() + longestMs
  for (;;) {
    const left: Left = { processes: await pod.processes(), files: pod.container.temporaryFiles() }
    if ((left.processes.length === 0 && left.files.length === 0) || Date.now() >= deadline) return left
    await sleep(100)
  }
}

/** Kills the kubectl of a run. */
export function killClients(runId: string): void {
  const clients = readdirSync('/proc').filter((pid) => {
    const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0')
    try {
      return read('cmdline')[0]?.includes('kubectl') && read('environ').includes(`${RUN_MARKER}=${runId}`)
    } catch {
      return false // No process, or one that has ended.
    }
  })
  if (clients.length === 0) throw new Error('No kubectl runs.')
  for (const pid of clients) process.kill(Number(pid), 'SIGKILL')
}
