// A cluster whose containers are directories of this machine, for the executable `test/fixtures/bin/kubectl`. As in a
// real one, what is started in it is not a child of that kubectl and has none of its environment.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const FAKE_KUBECTL = resolve(import.meta.dirname, '../fixtures/bin')

/** The part of a pod's `kubectl get -o json` that a test sets. */
export interface LocalPod {
  name: string
  namespace?: string
  labels?: Record<string, string>
  containers?: string[]
  annotations?: Record<string, string>
  isReady?: boolean
  phase?: string
  reason?: string
  message?: string
  uid?: string
  restartCount?: number
  isBeingDeleted?: boolean
  waitingFor?: string
  /** In addition to that of every container. */
  environment?: Record<string, string>
}

export interface LocalCluster {
  /** For the caller of kubectl. */
  environment: Record<string, string>
  pods: LocalPod[]
  /** The environment of the containers. */
  container: Record<string, string>
  /** The command lines of kubectl so far. */
  calls: string[][]
  /** The current one of the kubeconfig; inside a cluster there is none. */
  context?: string
  /** Whether stderr is blocked. */
  isMuted: boolean
  /** What the next calls of this command print instead of running. */
  refuse(command: 'get' | 'exec' | 'version', stderr: string, code?: number): void
  /** Blocks all connections in both directions, without notice. */
  freeze(): void
  /** Whether new exec connections are accepted but never answered. */
  isDeaf: boolean
  /** The connections end midway; `code` is kubectl's exit code if it takes that for success. */
  cut(code?: number): void
  /** Whether a process's input in a pod ends with the connection. Not in every cluster. */
  endsInput: boolean
  close(): void
}

interface Exec {
  socket: Socket
  child?: ChildProcessWithoutNullStreams
  isFrozen: boolean
}

export async function startLocalCluster(pods: LocalPod[]): Promise<LocalCluster> {
  const directory = mkdtempSync(join(tmpdir(), 'cluster-'))
  const path = join(directory, 'socket')
  const refusals = new Map<string, { stderr: string; code: number }>()
  const execs = new Set<Exec>()
  const server = createServer((socket) => serve(socket))
  await new Promise<void>((done) => {
    server.listen(path, done)
  })
  writeFileSync(join(directory, 'kubeconfig'), path)

  const cluster: LocalCluster = {
    environment: {
      PATH: `${FAKE_KUBECTL}:${process.env['PATH']}`,
      HOME: directory,
      KUBECONFIG: join(directory, 'kubeconfig'),
    },
    pods,
    container: { PATH: process.env['PATH'] ?? '', HOME: directory },
    calls: [],
    refuse: (command, stderr, code = 1) => void refusals.set(command, { stderr, code }),
    freeze() {
      for (const exec of execs) exec.isFrozen = true
    },
    cut(code) {
      for (const { socket } of execs) {
        if (code === undefined) socket.destroy()
        else socket.write(`${JSON.stringify({ code })}\n`)
      }
    },
    isDeaf: false,
    isMuted: false,
    endsInput: true,
    close() {
      for (const { socket, child } of execs) {
        socket.destroy()
        child?.stdin.destroy()
      }
      server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }

  function serve(socket: Socket): void {
    const exec: Exec = { socket, isFrozen: false }
    execs.add(exec)
    socket.on('error', () => {})
    const send = (message: object): void => {
      if (!exec.isFrozen && socket.writable) socket.write(`${JSON.stringify(message)}\n`)
    }
    socket.on('close', () => {
      if (cluster.endsInput) exec.child?.stdin.end()
    })
    let pending = ''
    socket.on('data', (chunk) => {
      const lines = (pending + chunk.toString('utf8')).split('\n')
      pending = lines.pop() ?? ''
      for (const line of lines) {
        if (exec.isFrozen) return
        const { argv, stdin, isInputOver } = JSON.parse(line) as { argv?: string[]; stdin?: string; isInputOver?: true }
        if (argv) answer(exec, argv, send)
        if (stdin !== undefined) exec.child?.stdin.write(Buffer.from(stdin, 'base64'))
        if (isInputOver) exec.child?.stdin.end()
      }
    })
  }

  function answer(exec: Exec, argv: string[], send: (message: object) => void): void {
    cluster.calls.push(argv)
    const print = (stdout: string): void => send({ stdout: Buffer.from(stdout).toString('base64'), code: 0 })
    const fail = (stderr: string, code = 1): void =>
      send({ stderr: Buffer.from(`${stderr}\n`).toString('base64'), code })
    const refusal = refusals.get(argv[0] ?? '')
    if (refusal) return fail(refusal.stderr, refusal.code)
    if (argv[0] === 'version') return print(JSON.stringify({ clientVersion: { gitVersion: 'v1.32.4' } }))
    if (argv[0] === 'config') {
      return cluster.context === undefined ? fail('error: current-context is not set') : print(`${cluster.context}\n`)
    }
    const namespace = valueOf(argv, '--namespace')
    const inScope = cluster.pods.filter((pod) => (pod.namespace ?? 'default') === (namespace ?? 'default'))
    if (argv[0] === 'get' && argv[1] === 'pods') {
      const selector = valueOf(argv, '--selector') ?? ''
      const scope = argv.includes('--all-namespaces') ? cluster.pods : inScope
      return print(JSON.stringify({ items: scope.filter((pod) => isMeant(pod, selector)).map(podJson) }))
    }
    const before = argv.indexOf('--')
    const name = argv[0] === 'get' ? argv.at(-1) : argv[before - 1]
    const pod = inScope.find((candidate) => candidate.name === name)
    if (!pod) return fail(`Error from server (NotFound): pods "${name}" not found`)
    if (argv[0] === 'get') return print(JSON.stringify(podJson(pod)))
    if (cluster.isDeaf) return undefined
    const [executable = '', ...args] = argv.slice(before + 1)
    const env = { ...cluster.container, ...pod.environment }
    const child = spawn(executable, args, { cwd: '/', env, detached: true })
    exec.child = child
    child.stdin.on('error', () => {})
    child.stdout.on('data', (chunk: Buffer) => send({ stdout: chunk.toString('base64') }))
    child.stderr.on('data', (chunk: Buffer) => {
      if (!cluster.isMuted) send({ stderr: chunk.toString('base64') })
    })
    child.on('close', (code, signal) => send({ code: code ?? (signal === 'SIGKILL' ? 137 : 143) }))
    return undefined
  }

  return cluster
}

function valueOf(argv: string[], option: string): string | undefined {
  return argv.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1)
}

function isMeant({ labels = {} }: LocalPod, selector: string): boolean {
  return selector.split(',').every((word) => {
    const [key = '', value] = word.split('=')
    return value === undefined ? key in labels : labels[key] === value
  })
}

function podJson(pod: LocalPod): object {
  const { containers = ['main'], restartCount = 0, waitingFor, isReady = true } = pod
  const state = waitingFor === undefined ? { running: {} } : { waiting: { reason: waitingFor } }
  return {
    metadata: {
      name: pod.name,
      namespace: pod.namespace ?? 'default',
      uid: pod.uid ?? `uid-${pod.name}`,
      labels: pod.labels ?? {},
      annotations: pod.annotations ?? {},
      ...(pod.isBeingDeleted && { deletionTimestamp: '2026-11-16T10:00:00Z' }),
    },
    spec: { containers: containers.map((name) => ({ name })) },
    status: {
      phase: pod.phase ?? 'Running',
      ...(pod.reason !== undefined && { reason: pod.reason }),
      ...(pod.message !== undefined && { message: pod.message }),
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
      containerStatuses: pod.phase === 'Failed' ? [] : containers.map((name) => ({ name, restartCount, state })),
    },
  }
}
