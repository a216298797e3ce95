// The whole turn of an agent that asks, with the real parts above the agent.

import { expect, it } from 'vitest'
import type { AgentEvent, AgentRequest, BackendName } from '../../src/backends/types.js'
import { type GatewayConfig, loadConfig } from '../../src/config.js'
import type { CredentialStore } from '../../src/credentials/credential-store.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { AgentRuntime } from '../../src/runtime/agent-runtime.js'
import { SessionManager } from '../../src/runtime/session-manager.js'
import { type PlanDependencies, planTurn } from '../../src/turns/plan.js'
import type { RunTurn, Work } from '../../src/turns/types.js'
import { succeeded } from '../kit/scripted-backend.js'
import { until } from '../kit/waiting.js'
import { approvalsOn, BASH } from './stage.js'
import { SILENT_LOG } from '../kit/log.js'
import { openTestStore } from '../kit/engines.js'
import { queueOn } from '../kit/queue.js'
import { createWorker } from '../kit/worker.js'

/** Asks once, and answers with the decision; says so if there is nobody to ask. */
const askingAgent = {
  name: () => 'claude' as const,
  capabilities: () => ({ supportsToolControl: true }),
  async *run({ approve }: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent> {
    const asked = approve?.(BASH, signal)
    yield { type: 'started', sessionId: 's', timestamp: 0 }
    const answer = await asked
    const text = !answer ? 'not asked' : answer.isAllowed ? 'installed' : answer.message
    yield { type: 'complete', result: succeeded(text), timestamp: 0 }
  },
}

async function setup(variables: NodeJS.ProcessEnv, project?: { agentPermissions: 'allow' | 'ask' }) {
  const store = await openTestStore({ file: ':memory:' })
  const clock = { now: Date.now() }
  const now = (): number => clock.now
  const config: GatewayConfig = loadConfig({ HOME: '/home/ada', WORKING_DIR: '/srv', ...variables })
  if (project) await store.projects.put({ id: 'site', directory: '/srv/site', ...project }, 'file', now())
  const approvals = approvalsOn(store, { config, now })
  const queue = queueOn(store, { gatewayId: 'g', now })
  const sessions = new SessionManager(store.sessions, { idleMs: 0, now })
  const runtime = new AgentRuntime(
    config,
    askingAgent,
    sessions,
    { load: async () => ({}) as never },
    { assemble: () => '' },
    { fire: () => {} },
  )
  const runtimes = new Map<BackendName, AgentRuntime>([['claude', runtime]])
  const agents = { resolve: () => ({ agent: askingAgent }) } as never
  const credentials = { secretsFor: async () => ({ environment: {}, secretFiles: [] }) } as unknown as CredentialStore
  const dependencies = {
    ...{ config, agents, runtimes, channels: [], credentials, approvals, gatewayId: 'g', log: SILENT_LOG, now },
    metrics: { measured: (_work: Work, _backend: string, run: RunTurn) => run },
    scrubber: createScrubber(),
  } as unknown as PlanDependencies
  const worker = createWorker({ channels: ['test'], queue, store, plan: (work) => planTurn(work, dependencies), now })
  const place = { channel: 'test', address: 'a', ...(project && { projectId: 'site' }) }
  const { messageId, conversationId } = await queue.accept({
    ...place,
    platformId: 'p',
    author: 'ann',
    text: 'Install',
  })
  worker.wake()
  return {
    store,
    clock,
    approvals,
    asked: () => until(async () => (await store.approvals.list({ states: ['asked'] }, 1))[0], 'a question'),
    answered: async () => {
      await until(async () => (await store.inbox.get(messageId))?.state === 'answered', 'the answer')
      const [run] = await store.runs.ofMessage(messageId)
      const events = (await store.events.list(run?.id ?? '')).map(({ event }) => event)
      const reply = (await store.outbox.history(conversationId, 9)).at(-1)?.reply
      return {
        reply: [reply?.text, ...(reply?.notes ?? [])],
        events: events.map((event) => (event.type === 'notice' ? event.content : event.type)),
      }
    },
  }
}

const ASK = { AGENT_PERMISSIONS: 'ask' }

it('asks, and continues when allowed; the wait is reported between start and end', async () => {
  const { asked, approvals, answered } = await setup(ASK)
  const { id } = await asked()
  await approvals.answer(id, { decision: 'allow', by: 'ann' })
  expect(await answered()).toEqual({
    reply: ['installed'],
    events: [
      'started',
      `Waits for an answer (${id.slice(0, 8)}): Bash: npm install`,
      'Allowed by ann: Bash: npm install',
      'complete',
    ],
  })
})

it('says in the answer that nobody has decided', async () => {
  const { asked, answered, clock } = await setup({ ...ASK, APPROVAL_TIMEOUT_MS: '120000' })
  await asked()
  clock.now += 120_000
  expect((await answered()).reply).toEqual([
    expect.stringContaining('Nobody answered within 2 min'),
    'Nobody answered within 2 min, so it was denied: Bash: npm install.',
  ])
})

it.each([
  [{}, undefined, 'not asked'],
  [ASK, { agentPermissions: 'allow' as const }, 'not asked'],
])('is not asked with %j and the project %j', async (variables, project, text) => {
  const { answered } = await setup(variables, project)
  expect((await answered()).reply).toEqual([text])
})

it('is asked if the project says so', async () => {
  const { asked, approvals, answered } = await setup({}, { agentPermissions: 'ask' })
  const approval = await asked()
  await approvals.answer(approval.id, { decision: 'deny', by: 'ann', message: 'Not here.' })
  expect([approval.projectId, (await answered()).reply]).toEqual(['site', ['Not here.']])
})
