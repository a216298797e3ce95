// A process for a single turn, on this machine or in a pod. Takes whatever no other lifetime does.

import { randomUUID } from 'node:crypto'
import { withDeadline } from '../../core/async.js'
import { PodError } from '../../kubernetes/types.js'
import { type AgentCli, runVariables, setByRun, UNTRUSTED_CHECK_MS, VERSION_TIMEOUT_MS } from './agent-cli.js'
import type { Invocation } from './cli-backend.js'
import { startOneShot } from './one-shot-run.js'
import type { Place } from './place.js'
import { PlainTranslation } from './plain-translation.js'
import { preparationFailure, refusedAsking } from './refusals.js'
import type { Lease, Lifetime } from './take-turn.js'
import type { Failed } from './translation.js'
import type { Turn } from './turn.js'
import type { TimeLimits } from './turn-watch.js'
import type { Run } from './turn-run.js'
import type { AgentRequest } from '../types.js'

/** Time to find a pod and inspect it. */
const POD_CHECK_MS = 30_000

export class OneShot implements Lifetime {
  constructor(
    private readonly agent: AgentCli,
    private readonly request: AgentRequest,
  ) {}

  async acquire(signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    const turn = agent.turnOf(request)
    agent.warnAboutIgnoredOptions(request, turn)
    signal.throwIfAborted()
    const refusal = agent.refusalOf(request, turn)
    if (refusal) return refusal
    const checkMs = request.pod ? POD_CHECK_MS : turn.isUntrusted ? UNTRUSTED_CHECK_MS : VERSION_TIMEOUT_MS
    return withDeadline(checkMs, signal, async (deadline) => {
      try {
        return await this.#prepare(turn, deadline)
      } catch (error) {
        if (error instanceof PodError) signal.throwIfAborted()
        return preparationFailure(agent.definition.traits.label, error)
      }
    })
  }

  async #prepare(turn: Turn, signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    const { definition } = agent
    const obstacle = turn.isUntrusted ? await agent.obstacleIn(turn, signal) : undefined
    if (obstacle !== undefined) return { reason: 'refused', message: obstacle }
    if (request.approve) return refusedAsking(definition.traits.label, request)
    const runId = request.runId ?? randomUUID()
    const place = await agent.place(turn, request.pod, runId, signal)
    try {
      const invocation = await definition.invocation(turn, place, signal)
      const variables = runVariables(request, place)
      return {
        start: (limits) => this.#start(runId, turn, place, invocation, variables, limits),
        onEvent(event) {
          if (event.type === 'complete') agent.remember(event.result.sessionId, turn.workingDir)
          return undefined
        },
        release: async () => agent.leave(place),
      }
    } catch (error) {
      agent.leave(place)
      throw error
    }
  }

  #start(
    runId: string,
    turn: Turn,
    place: Place,
    { args, defaults = {}, environment, expects }: Invocation,
    variables: Record<string, string>,
    timeLimits: TimeLimits,
  ): Run {
    const { definition, dependencies } = this.agent
    const { label, failureSigns, stopSignal } = definition.traits
    const { now, elapsed, limits, owner, scrubber } = dependencies
    return startOneShot({
      label,
      failureSigns,
      start: (listeners) =>
        place.start({
          executable: this.agent.executableIn(place, turn),
          args,
          stdin: turn.prompt,
          directory: turn.workingDir,
          defaults,
          environment: setByRun(environment, turn, variables),
          runId,
          ...(owner && { owner }),
          ...(expects && { expects: expects.file }),
          stopSignal,
          ...listeners,
        }),
      translation: (emit) =>
        turn.command?.format === 'text'
          ? new PlainTranslation(emit, limits.lineBytes)
          : definition.translation(emit, turn),
      ...timeLimits,
      limits,
      now,
      elapsed,
      scrubber,
      unlessExpected: expects?.otherwise,
    })
  }
}
