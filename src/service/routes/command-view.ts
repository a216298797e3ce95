import { runnerName } from '../../backends/agents.js'
import { combineUsage } from '../../backends/engine/translation.js'
import type { TokenUsage } from '../../backends/types.js'
import type { MessageOptions } from '../../channels/types.js'
import type { GatewayParts } from '../../gateway.js'
import { isWebAddress, readMediaTokens } from '../../media/media-tokens.js'
import { commandRunner } from '../../runtime/command-runtime.js'
import type { Message } from '../../store/inbox.js'
import { isPaused, type LastRun, type RunRecord } from '../../store/runs.js'
import { DROPPED } from '../../streams/numbered-event.js'
import * as api from '../api/commands.js'
import { tokenUsageSchema, type Usage } from '../api/values.js'
import { toWire } from '../wire.js'
import { beginningOf } from './beginning-of.js'
import { type CommandRecord, recordOf } from './command-records.js'

export async function commandSummaries(
  { scrubber, ...gateway }: Pick<GatewayParts, 'store' | 'agents' | 'scrubber'>,
  projectId: string,
  messages: Message[],
): Promise<api.CommandSummary[]> {
  const runs = await gateway.store.runs.lastOf(messages.map(({ id }) => id))
  return Promise.all(
    messages.map(async (message) => {
      const summary = await summaryOf(gateway, projectId, recordOf(message), runs.get(message.id))
      return toWire(api.commandSummarySchema, { ...summary, prompt: beginningOf(summary.prompt, scrubber) })
    }),
  )
}

export async function commandView(
  gateway: Pick<GatewayParts, 'store' | 'agents'>,
  projectId: string,
  record: CommandRecord,
): Promise<api.CommandDetails> {
  const { message, options } = record
  const runs = await gateway.store.runs.ofMessage(message.id)
  const result = runs.at(-1)?.result
  const usages = runs.flatMap((run) => run.result?.usage ?? [])
  const costs = runs.flatMap((run) => run.result?.costUsd ?? [])
  return toWire(api.commandSchema, {
    ...(await summaryOf(gateway, projectId, record, runs.at(-1))),
    projectId,
    command: options.command,
    ...answerOf(result?.finalOutput, options),
    exitCode: result?.exitCode,
    error: errorOf(message, runs.at(-1)),
    durationMs: result?.durationMs,
    usage: usageView(usages.length === 0 ? undefined : usages.reduce((sum, usage) => combineUsage(sum, usage))),
    costUsd: costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost),
    metadata: options.metadata ?? {},
    runs: runs.map((run) => runView(run, message)),
  })
}

/** A command's output is not an answer and names no files. */
function answerOf(
  output: string | undefined,
  { command }: MessageOptions,
): Pick<api.CommandDetails, 'result' | 'files'> {
  if (output === undefined || command) return { result: output ?? null, files: [] }
  const { text, media } = readMediaTokens(output)
  return { result: text, files: media.map((item) => (isWebAddress(item) ? { url: item } : { path: item })) }
}

export function streamUrl(projectId: string, commandId: string): string {
  return `/projects/${encodeURIComponent(projectId)}/commands/${commandId}/events`
}

async function summaryOf(
  { store, agents }: Pick<GatewayParts, 'store' | 'agents'>,
  projectId: string,
  { message, options }: CommandRecord,
  last: LastRun | undefined,
) {
  const isOpen = message.state === 'open'
  const chosen = last ? undefined : (await store.conversations.get(message.conversationId))?.backend
  const agent = last?.backend ?? (chosen === undefined ? undefined : agents.resolve(chosen).agent.name())
  const runner = options.command ? commandRunner(options.command) : agent
  const session = isOpen && last ? await store.sessions.get(message.conversationId) : undefined
  return {
    commandId: message.id,
    kind: options.command ? commandRunner(options.command) : ('agent' as const),
    state: stateOf(message, last),
    prompt: message.text,
    agentProvider: runner === undefined ? undefined : runnerName(runner),
    sessionId: last?.sessionId ?? session?.sessionId ?? options.sessionId,
    streamUrl: streamUrl(projectId, message.id),
    createdAt: message.receivedAt,
    finishedAt: message.finishedAt,
  }
}

/** For an open message, whether somebody is working on it. */
export function stateOf({ state }: Message, last: LastRun | undefined): api.CommandSummary['state'] {
  if (state !== 'open') return state
  return last?.state === 'running' ? 'running' : 'queued'
}

export function runView(record: RunRecord, message: Pick<Message, 'kind'> | undefined): api.Run {
  const { result, ...run } = record
  return toWire(api.runSchema, {
    ...run,
    isPaused: isPaused(record, message?.kind),
    provider: runnerName(run.backend),
    exitCode: result?.exitCode,
    durationMs: result?.durationMs,
    usage: usageView(result?.usage),
    costUsd: result?.costUsd,
    error: result?.failure && toWire(api.failureSchema, result.failure),
  })
}

function usageView(usage: TokenUsage | undefined): Usage | undefined {
  return usage && toWire(tokenUsageSchema, usage)
}

function errorOf(message: Message, run: RunRecord | undefined): api.Failure | undefined {
  const failure = run?.result?.failure
  if (message.state === 'open') return undefined
  if (failure) return toWire(api.failureSchema, failure)
  const problem = message.problem ?? (message.state === 'dropped' ? DROPPED : undefined)
  return problem === undefined ? undefined : toWire(api.failureSchema, { message: problem })
}
