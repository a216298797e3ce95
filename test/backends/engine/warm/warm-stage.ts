// Warm processes, played by test/fixtures/bin/live-agent.mjs, and turns in them.

import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { CliBackend } from '../../../../src/backends/engine/cli-backend.js'
import type { JsonObject } from '../../../../src/backends/engine/jsonl.js'
import type { Run } from '../../../../src/backends/engine/turn.js'
import { openWarmProcess, startWarmRun, type WarmProcess } from '../../../../src/backends/engine/warm/warm-process.js'
import type { WarmDriver } from '../../../../src/backends/engine/warm/types.js'
import { localPlace, type Place } from '../../../../src/backends/engine/place.js'
import { CANCELLED } from '../../../../src/backends/engine/failures.js'
import type { AgentEvent, AgentRequest, AgentResult, BackendName } from '../../../../src/backends/types.js'
import { kindsOf } from '../../../contract/invariants.js'
import { until } from '../../../kit/waiting.js'
import { createFakeBackend, createStage, type Options, type Stage } from '../../fake-cli.js'
import { seenIn } from '../../../kit/seen-run.js'
import { agentPath } from '../../../kit/agents.js'

const LIVE_AGENT = agentPath('live-agent.mjs')

/** One step of the agent. */
export type Step =
  /** Waits for a line that contains at least this; exits on any other. */
  | { said: JsonObject }
  | { printed: JsonObject }
  /** A raw line. */
  | { text: string }
  | { stderr: string }
  /** A shell command, run to its end. */
  | { run: string }
  /** A child process that keeps running. */
  | { child: string }
  | { ignore: NodeJS.Signals[] }
  | { exit: number }

/** The real CLI's messages, from `test/fixtures/<name>/live-<what>.jsonl`. */
export function captured(name: BackendName, what: string): Step[] {
  const text = readFileSync(new URL(`../../../fixtures/${name}/live-${what}.jsonl`, import.meta.url), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Step)
}

/** This machine. Contract: called in a test. */
export function createPlace(home?: string): Place {
  const place = localPlace({ operator: home === undefined ? {} : { HOME: home }, environment: {}, ownerId: undefined })
  onTestFinished(place.leave)
  return place
}

export interface WarmStage {
  stage: Stage
  backend: CliBackend
  driver: WarmDriver
  process: WarmProcess
  /** Begins a turn and reads it to its end. */
  turn(prompt: string, options?: TurnOptions): Promise<Heard>
}

export interface TurnOptions {
  request?: Partial<AgentRequest>
  /** Cancels at the first such event; `begun` cancels after the prompt, before any event. */
  stopOn?: AgentEvent['type'] | 'begun'
  /** Called when the turn has begun. */
  act?: (run: Run, events: AgentEvent[]) => Promise<void>
}

export interface Heard {
  events: AgentEvent[]
  kinds: string[]
  result: AgentResult
  isProcessLost: boolean
}

/** Contract: called in a test; the process ends with it. */
export async function openStage(
  name: BackendName,
  exchange: Step[],
  options: Options & { request?: Partial<AgentRequest>; cliPath?: string } = {},
): Promise<WarmStage> {
  const stage = createStage()
  const steps = exchange.map((step) => JSON.stringify(step)).join('\n')
  const backend = createFakeBackend(name, options.cliPath ?? LIVE_AGENT, stage, {
    ...options,
    environment: { FAKE_EXCHANGE: stage.write('exchange', steps), ...options.environment },
  })
  const driver = backend.cli.definition.driver
  if (!driver) throw new Error(`${name} is not kept alive`)
  const request = { prompt: '', ...options.request }
  const process = await openWarmProcess(backend.cli, driver, request, new AbortController().signal)
  onTestFinished(async () => {
    process.stop()
    await process.ended
  })
  return { stage, backend, driver, process, turn: (prompt, turn) => runWarm(backend, process, prompt, turn) }
}

async function runWarm(
  backend: CliBackend,
  process: WarmProcess,
  prompt: string,
  { request = {}, stopOn, act }: TurnOptions = {},
): Promise<Heard> {
  const events: AgentEvent[] = []
  if (stopOn === 'begun') await process.connection.ready
  const run = startWarmRun(backend.cli, process, { prompt, ...request })
  const reading = (async () => {
    for await (const event of run.events) events.push(event)
  })()
  if (stopOn === 'begun') while (!run.drive.wasPrompted) await setImmediate()
  else if (stopOn) await until(() => events.some(({ type }) => type === stopOn), stopOn)
  if (stopOn) run.stop(CANCELLED)
  await act?.(run, events)
  await run.ended
  await reading
  const { result } = seenIn(events)
  return { events, kinds: kindsOf(events), result, isProcessLost: run.drive.isProcessLost(run.result) }
}
