import { z } from 'zod'
import { combineUsage } from '../../backends/engine/translation.js'
import type { AgentFailure } from '../../backends/types.js'
import type { MessageOptions } from '../../channels/types.js'
import type { GatewayParts } from '../../gateway.js'
import { isWebAddress, readMediaTokens } from '../../media/media-tokens.js'
import { commandRunner } from '../../runtime/command-runtime.js'
import type { Message } from '../../store/inbox.js'
import type { LastRun, RunRecord } from '../../store/runs.js'
import { DROPPED } from '../../streams/numbered-event.js'
import { runnerName } from '../../backends/engine/provider-names.js'
import { type CommandRecord, recordOf } from './command-records.js'
import { beginningOf, isoTime, timeSchema, usageSchema, usageView } from './schemas.js'

/** `open` is told apart: whether somebody works on it. */
export const COMMAND_STATES = ['queued', 'running', 'answered', 'failed', 'cancelled', 'dropped', 'refused'] as const

const runnerSchema = z.string().describe('An agent, `shell` or `git`.')

const errorSchema = z
  .object({
    reason: z.string().nullable(),
    message: z.string(),
    pod_problem: z.string().optional().describe('What is wrong with the pod of the project, where that is it.'),
  })
  .nullable()
  .describe('Why there is no answer.')

export const runSchema = z.object({
  id: z.string(),
  provider: runnerSchema,
  model: z.string().nullable(),
  state: z.enum(['running', 'answered', 'failed', 'cancelled', 'interrupted']),
  session_id: z.string().nullable(),
  exit_code: z.number().nullable(),
  duration_ms: z.number().nullable(),
  usage: usageSchema,
  cost_usd: z.number().nullable(),
  error: errorSchema,
  started_at: timeSchema,
  ended_at: timeSchema.nullable(),
})

export const commandSummarySchema = z.object({
  command_id: z.string(),
  kind: z.enum(['agent', 'shell', 'git']),
  state: z.enum(COMMAND_STATES),
  prompt: z.string().describe('What was asked; of a shell or git command, the command as one line.'),
  agent_provider: runnerSchema.nullable().describe('Who works on it, or will.'),
  session_id: z.string().nullable(),
  stream_url: z.string(),
  created_at: timeSchema,
  finished_at: timeSchema.nullable(),
})

export const commandSchema = commandSummarySchema.extend({
  project_id: z.string(),
  command: z.array(z.string()).nullable().describe('Of a shell or git command: the executable and its arguments.'),
  result: z.string().nullable().describe('The final text of the agent, or what the command printed.'),
  files: z
    .array(z.union([z.object({ path: z.string() }), z.object({ url: z.string() })]))
    .describe(
      'What the agent names to go with its text, by `MEDIA:` lines that are taken out of it. Nothing is checked or sent: a relative path begins at the directory of the project.',
    ),
  exit_code: z.number().nullable(),
  error: errorSchema,
  duration_ms: z.number().nullable().describe('Of the last run.'),
  usage: usageSchema.describe('Of all runs.'),
  cost_usd: z.number().nullable().describe('Of all runs, as far as their agents told.'),
  metadata: z.record(z.string(), z.string()),
  runs: z.array(runSchema).describe('The attempts, in order.'),
})

type CommandSummary = z.output<typeof commandSummarySchema>

export async function commandSummaries(
  { scrubber, ...gateway }: Pick<GatewayParts, 'store' | 'agents' | 'scrubber'>,
  projectId: string,
  messages: Message[],
): Promise<CommandSummary[]> {
  const runs = await gateway.store.runs.lastOf(messages.map(({ id }) => id))
  return Promise.all(
    messages.map(async (message) => {
      const summary = await viewOf(gateway, projectId, recordOf(message), runs.get(message.id))
      return { ...summary, prompt: beginningOf(summary.prompt, scrubber) }
    }),
  )
}

export async function commandView(
  gateway: Pick<GatewayParts, 'store' | 'agents'>,
  projectId: string,
  record: CommandRecord,
): Promise<z.output<typeof commandSchema>> {
  const { message, options } = record
  const runs = await gateway.store.runs.ofMessage(message.id)
  const result = runs.at(-1)?.result
  const usages = runs.flatMap((run) => run.result?.usage ?? [])
  const costs = runs.flatMap((run) => run.result?.costUsd ?? [])
  return {
    ...(await viewOf(gateway, projectId, record, runs.at(-1))),
    project_id: projectId,
    command: options.command ?? null,
    ...answerOf(result?.finalOutput, options),
    exit_code: result?.exitCode ?? null,
    error: errorOf(message, runs.at(-1)),
    duration_ms: result?.durationMs ?? null,
    usage: usages.length === 0 ? null : usageView(usages.reduce((sum, usage) => combineUsage(sum, usage))),
    cost_usd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost),
    metadata: options.metadata ?? {},
    runs: runs.map(runView),
  }
}

/** What a command prints is no answer, and names nothing. */
function answerOf(
  output: string | undefined,
  { command }: MessageOptions,
): Pick<z.output<typeof commandSchema>, 'result' | 'files'> {
  if (output === undefined || command) return { result: output ?? null, files: [] }
  const { text, media } = readMediaTokens(output)
  return { result: text, files: media.map((item) => (isWebAddress(item) ? { url: item } : { path: item })) }
}

export function streamUrl(projectId: string, commandId: string): string {
  return `/projects/${encodeURIComponent(projectId)}/commands/${commandId}/events`
}

async function viewOf(
  { store, agents }: Pick<GatewayParts, 'store' | 'agents'>,
  projectId: string,
  { message, options }: CommandRecord,
  last: LastRun | undefined,
): Promise<CommandSummary> {
  const isOpen = message.state === 'open'
  const chosen = last ? undefined : (await store.conversations.get(message.conversationId))?.backend
  const agent = last?.backend ?? (chosen === undefined ? undefined : agents.resolve(chosen).agent.name())
  const runner = options.command ? commandRunner(options.command) : agent
  const session = isOpen && last ? await store.sessions.get(message.conversationId) : undefined
  return {
    command_id: message.id,
    kind: options.command ? commandRunner(options.command) : 'agent',
    state: message.state === 'open' ? (last?.state === 'running' ? 'running' : 'queued') : message.state,
    prompt: message.text,
    agent_provider: runner === undefined ? null : runnerName(runner),
    session_id: last?.sessionId ?? session?.sessionId ?? options.sessionId ?? null,
    stream_url: streamUrl(projectId, message.id),
    created_at: isoTime(message.receivedAt),
    finished_at: message.finishedAt === undefined ? null : isoTime(message.finishedAt),
  }
}

export function runView({ result, ...run }: RunRecord): z.output<typeof runSchema> {
  return {
    id: run.id,
    provider: runnerName(run.backend),
    model: run.model ?? null,
    state: run.state,
    session_id: run.sessionId ?? null,
    exit_code: result?.exitCode ?? null,
    duration_ms: result?.durationMs ?? null,
    usage: usageView(result?.usage),
    cost_usd: result?.costUsd ?? null,
    error: result?.failure ? failureView(result.failure) : null,
    started_at: isoTime(run.startedAt),
    ended_at: run.endedAt === undefined ? null : isoTime(run.endedAt),
  }
}

function failureView({ reason, message, podProblem }: AgentFailure): z.output<typeof errorSchema> {
  return { reason, message, ...(podProblem && { pod_problem: podProblem }) }
}

function errorOf(message: Message, run: RunRecord | undefined): z.output<typeof errorSchema> {
  const failure = run?.result?.failure
  if (message.state === 'open' || message.state === 'answered') return null
  if (failure) return failureView(failure)
  const problem = message.problem ?? (message.state === 'dropped' ? DROPPED : undefined)
  return problem === undefined ? null : { reason: null, message: problem }
}
