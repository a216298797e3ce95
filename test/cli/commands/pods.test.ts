import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { FAKE_KUBECTL, startLocalCluster } from '../../kubernetes/local-cluster.js'
import { until } from '../../kit/waiting.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'

const LABEL = 'rdev.orchard9.ai/agent-provider'

/** Records when it begins and when it is ended, and works until then. */
const WORKER = (journal: string): string => `#!/usr/bin/env node
import { appendFileSync } from 'node:fs'
if (process.argv.includes('--version')) { console.log('2.1.9 (Claude Code)'); process.exit() }
const note = (word) => appendFileSync(${JSON.stringify(journal)}, word + '\\n')
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { note('ended'); process.exit() })
note('begun')
setInterval(() => {}, 1000)
`

async function setup(test: TestContext) {
  const terminal = new Terminal(test)
  const cluster = await startLocalCluster([
    { name: 'web-0', namespace: 'agents', labels: { [LABEL]: 'claudecode' } },
    { name: 'lab-0', namespace: 'agents', labels: { [LABEL]: 'cursor' } },
  ])
  onTestFinished(() => cluster.close())
  const container = join(terminal.directory, 'container')
  mkdirSync(container)
  const journal = join(terminal.directory, 'journal')
  writeFileSync(join(container, 'claude'), WORKER(journal), { mode: 0o755 })
  cluster.container['PATH'] = `${container}:${process.env['PATH']}`
  const env = {
    BACKEND_CLI_PATH: DEMO_AGENT,
    KUBECTL_PATH: join(FAKE_KUBECTL, 'kubectl'),
    KUBECONFIG: cluster.environment['KUBECONFIG'],
    KUBERNETES_NAMESPACE: 'agents',
    DRAIN_TIMEOUT_MS: '0',
  }
  return { terminal, cluster, env, journal }
}

it('projects discover finds pods, beside a gateway that knows them at once', async (test) => {
  const { terminal, env } = await setup(test)
  const gateway = await terminal.startGateway(env)
  const { exitCode, stdout, stderr } = await terminal.run(['projects', 'discover'], { env })
  const chosen = await terminal.run(['chat', '-c', 'x'], { env, stdin: '/project web-0\n' })
  gateway.kill('SIGTERM')
  expect([
    exitCode,
    stdout
      .trim()
      .split('\n')
      .map((row) => row.split(/ {2,}/)),
    stderr,
  ]).toEqual([
    0,
    [
      ['PROJECT', 'AGENT', 'RESULT', 'POD'],
      ['lab-0', 'claude, because cursor is unknown', 'new', 'the pod lab-0 (namespace agents)'],
      ['web-0', 'claude', 'new', 'the pod web-0 (namespace agents)'],
    ],
    `Looking for pods with the label ${LABEL} in the namespace agents …\nFound 2 pods.\n`,
  ])
  expect(chosen.stdout + chosen.stderr).toContain(
    'The project is web-0: the next message goes to claude in /workspace in the pod web-0 (namespace agents), in a fresh session.',
  )
})

it('projects discover says what to do when the cluster does not let it', async (test) => {
  const { terminal, cluster, env } = await setup(test)
  cluster.refuse('get', 'Error from server (Forbidden): pods is forbidden: User "ada" cannot list resource "pods"')
  const { exitCode, stdout, stderr } = await terminal.run(['projects', 'discover', '--remove-missing'], { env })
  expect([exitCode, stdout, stderr.includes('forbidden')]).toEqual([1, '', true])
})

it('doctor looks into the pods of projects', async (test) => {
  const { terminal, env } = await setup(test)
  await terminal.run(['projects', 'create', '--pod', 'web-0', '--directory', '/srv'], { env })
  await terminal.run(['projects', 'create', '--pod', 'gone-0'], { env })
  const { exitCode, stdout } = await terminal.run(['doctor'], { env })
  const lines = stdout.split('\n').filter((line) => line.includes('Kubernetes:'))
  expect([exitCode, lines]).toEqual([
    1,
    [
      expect.stringMatching(/^✗ Kubernetes: gone-0: .*gone-0/),
      '✓ Kubernetes: web-0: claude 2.1.9 (Claude Code) in the pod web-0 (container main, namespace agents), works in /srv',
    ],
  ])
})

it('what a killed gateway left in a pod is ended before its message is retried', async (test) => {
  const { terminal, cluster, env, journal } = await setup(test)
  // As if nobody in the pod notices that the gateway is gone.
  cluster.endsInput = false
  await terminal.run(['projects', 'create', '--pod', 'web-0', '--directory', terminal.project], { env })
  const killed = await terminal.startGateway(env)
  const chat = terminal.open(['chat', '-p', 'web-0'], env)
  chat.type('Work')
  await until(() => journalOf(journal).length === 1, 'the beginning of the work')
  killed.kill('SIGKILL')
  await killed.exited
  const next = await terminal.startGateway(env)
  const seen = await until(() => journalOf(journal).length === 3 && journalOf(journal), 'the work once more')
  next.kill('SIGTERM')
  await next.exited
  chat.kill('SIGTERM')
  expect([seen, journalOf(journal)]).toEqual([
    ['begun', 'ended', 'begun'],
    ['begun', 'ended', 'begun', 'ended'],
  ])
})

function journalOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}
