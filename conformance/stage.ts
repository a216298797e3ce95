/** Where a case plays: the scripted model, a sandbox and the real agent between them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { AgentBackend, AgentEvent, AgentRequest, AgentResult } from '../src/backends/types.js'
import { createBackend } from '../src/backends/registry.js'
import type { Log } from '../src/log.js'
import type { Agent, McpServer } from './agents.js'
import type { GatewayBuild } from './gateway-build.js'
import { GatewayRunner } from './gateway-runner.js'
import { createSandbox, type Sandbox } from './sandbox.js'
import { type ScriptedModel, type Script, startScriptedModel } from './scripted-model.js'

/** Far more than any turn takes; what may not take long has a limit of its own. */
const turnTimeoutMs = 100_000

/** Every agent that can have one has one, so that each cell shows that it goes with its agent. */
const idleServer: McpServer = { command: process.execPath, args: [join(import.meta.dirname, 'mcp-server.mjs')] }

export interface Installation {
  version: string
  cliPath: string
  /** PATH for the agent. */
  path: string
}

export interface Stage {
  agent: Agent
  model: ScriptedModel
  sandbox: Sandbox
  /** The options the backend said it ignores. */
  ignoredOptions: unknown[]
  /** Runs one turn to its end and checks the order of its events. */
  ask(request: AgentRequest, observer?: Observer): Promise<Turn>
  /** For turns that go through a whole gateway. */
  gateway: GatewayRunner
  close(): Promise<void>
}

export interface Observer {
  signal?: AbortSignal
  onEvent?(event: AgentEvent): void
}

export interface Turn {
  events: AgentEvent[]
  result: AgentResult
}

/** `signal` ends every turn: the cell has run out of time. */
export async function openStage(
  agent: Agent,
  installation: Installation,
  build: GatewayBuild,
  script: Script,
  signal: AbortSignal,
): Promise<Stage> {
  const model = await startScriptedModel(script)
  const sandbox = await createSandbox(agent, model.url, installation.path, idleServer)
  const ignoredOptions: unknown[] = []
  const log: Log = {
    debug() {},
    info() {},
    warn(message, fields) {
      if (message === 'backend.option-ignored') ignoredOptions.push(fields?.['option'])
    },
    error() {},
  }
  const backend = createBackend(
    agent.name,
    {
      cliPath: installation.cliPath,
      workingDir: sandbox.workspace,
      queryTimeoutMs: turnTimeoutMs,
      allowedTools: [],
      maxTurns: 25,
      model: agent.model,
    },
    { environment: sandbox.environment, log },
  )
  return {
    agent,
    model,
    sandbox,
    ignoredOptions,
    gateway: new GatewayRunner(
      build,
      {
        ...sandbox.environment,
        AGENT_BACKEND: agent.name,
        BACKEND_CLI_PATH: installation.cliPath,
        BACKEND_MODEL: agent.model,
        WORKING_DIR: sandbox.workspace,
        // Told to end, it shall not wait for its agents.
        DRAIN_TIMEOUT_MS: '0',
      },
      signal,
    ),
    async ask(request, observer = {}) {
      const signals = observer.signal ? [signal, observer.signal] : [signal]
      const turn = await play(backend, request, AbortSignal.any(signals), observer.onEvent)
      assert.equal(signal.aborted, false, 'the cell ran out of time')
      checkOrder(turn.events)
      return turn
    },
    async close() {
      await model.close()
      await sandbox.remove()
    },
  }
}

async function play(
  backend: AgentBackend,
  request: AgentRequest,
  signal: AbortSignal,
  onEvent: Observer['onEvent'],
): Promise<Turn> {
  const events: AgentEvent[] = []
  for await (const event of backend.run(request, signal)) {
    events.push(event)
    onEvent?.(event)
  }
  const last = events.at(-1)
  assert.equal(last?.type, 'complete', 'the last event is `complete`')
  return { events, result: last.result }
}

function checkOrder(events: AgentEvent[]): void {
  const indexes = (type: AgentEvent['type']) => events.flatMap((event, index) => (event.type === type ? [index] : []))
  assert.equal(indexes('complete').length, 1, 'exactly one `complete`')
  assert.ok(
    indexes('started').every((index) => index === 0),
    '`started` at most once and first',
  )
  const open = new Set<string>()
  for (const event of events) {
    if (event.type === 'tool_use') open.add(event.toolId)
    if (event.type === 'tool_result') open.delete(event.toolId)
  }
  assert.deepEqual([...open], [], 'every `tool_use` is closed')
}
