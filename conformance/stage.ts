/** The environment of a case: the scripted model, a place with the real agent, and a gateway if needed. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentBackend, AgentEvent, AgentRequest, AgentResult } from '../src/backends/types.js'
import type { Log } from '../src/log.js'
import type { Agent } from './agents.js'
import type { GatewayBuild } from './gateway-build.js'
import { GatewayRunner } from './gateway-runner.js'
import type { Installation } from './installations.js'
import type { OpenPlace } from './place.js'
import type { Sandbox, SandboxProcess } from './sandbox.js'
import { noteEvent } from './wire.js'
import { type ScriptedModel, type Script, startScriptedModel } from './scripted-model.js'

export interface StageOptions {
  agent: Agent
  installation: Installation
  openPlace: OpenPlace
  build: GatewayBuild
  /** Ends every turn: the cell has run out of time. */
  signal: AbortSignal
}

export interface Stage {
  agent: Agent
  installation: Installation
  model: ScriptedModel
  sandbox: Sandbox
  /** Options that the backend reported as ignored. */
  ignoredOptions: unknown[]
  /** Runs one turn to its end and checks the order of its events. */
  ask(request: AgentRequest, observer?: Observer): Promise<Turn>
  /** For turns that go through a whole gateway. */
  gateway: GatewayRunner
  /** The path of the `aetheel` command. */
  aetheel(): Promise<string>
  /** Processes alive outside a turn, except warm ones. */
  leftovers(known?: number[]): Promise<SandboxProcess[]>
  /** Ends warm processes. */
  end(): Promise<void>
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

export async function openStage(script: Script, options: StageOptions): Promise<Stage> {
  const { agent, installation, openPlace, build, signal } = options
  const model = await startScriptedModel(script)
  const ignoredOptions: unknown[] = []
  const log: Log = {
    debug() {},
    info() {},
    warn(message, fields) {
      if (message === 'backend.option-ignored') ignoredOptions.push(fields?.['option'])
    },
    error() {},
  }
  const place = await openPlace({ agent, installation, modelUrl: model.url, log }).catch(async (error: unknown) => {
    await model.close()
    throw error
  })
  const { sandbox, backend } = place
  const leftovers = async (known: number[] = []) => {
    const deadline = Date.now() + (place.besideMs ?? 0)
    for (;;) {
      const left = (await sandbox.processes()).filter(
        (process) => !place.stays(process) && !known.includes(process.pid),
      )
      if (left.length === 0 || Date.now() >= deadline) return left
      await sleep(20)
    }
  }
  let asking = 0
  return {
    agent,
    installation,
    model,
    sandbox,
    ignoredOptions,
    gateway: new GatewayRunner(build, place, signal),
    aetheel: () => build.command(),
    async ask(request, observer = {}) {
      const signals = observer.signal ? [signal, observer.signal] : [signal]
      const whole = { ...place.request, ...request }
      asking += 1
      const turn = await play(backend, whole, AbortSignal.any(signals), observer.onEvent)
      asking -= 1
      assert.equal(signal.aborted, false, 'the cell ran out of time')
      checkOrder(turn.events)
      place.checkTurn?.(turn.result)
      if (asking === 0) assert.deepEqual(await leftovers(), [], 'no process of the turn is left')
      return turn
    },
    leftovers,
    end: () => place.close(),
    async close() {
      await place.close()
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
    noteEvent(event)
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
