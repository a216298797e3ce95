// Decides the outcome of a turn (answer, retry, reported failure or nothing) and writes it in one transaction.

import type { AgentFailure, AgentResult } from '../backends/types.js'
import type { Reply } from '../channels/types.js'
import type { Log } from '../log.js'
import { isWebAddress, readMediaTokens } from '../media/media-tokens.js'
import { readHeartbeatAnswer } from '../prompt/heartbeat.js'
import type { TurnOutcome } from '../runtime/agent-runtime.js'
import { type Attempts, explainFailure, pauseNote } from '../runtime/explain-failure.js'
import { attemptsInAll, planRetry } from '../runtime/retry.js'
import { timeAhead } from '../runtime/time-words.js'
import type { Claim } from '../store/jobs.js'
import type { NewDelivery } from '../store/outbox.js'
import type { RecordedEvent } from '../store/events.js'
import type { RunState } from '../store/schema.js'
import type { Tables } from '../store/store.js'
import type { Settlement, TurnPlan, Work } from './types.js'

/** Why a turn ends early; `unsure` if the claim may have been lost. */
export type TurnEnding = 'cancelled' | 'lost' | 'unsure' | 'handed-back'

/** `said` is the text that was streamed. */
export function settlementOf(
  work: Work,
  ending: TurnEnding | undefined,
  runId: string,
  outcome: TurnOutcome & { said: string },
  plan: TurnPlan,
  now: number,
): Settlement {
  const { backend, retryLimits } = plan
  const { result, notes, session, isFinal = false } = outcome
  const run = { id: runId, result }
  const keep = session && { session }
  const { failure } = result
  // A person who stopped it wants no answer.
  if (failure?.reason === 'max_turns' && ending !== 'cancelled') return paused(work, failure, runId, outcome, plan)
  if (!failure) {
    const reply = replyTo(work, result, [...notes, ...mergedNotes(work)], plan)
    return { kind: 'answered', run, ...(reply && { reply }), ...keep }
  }
  if (ending !== undefined && ending !== 'cancelled') return { kind: 'handed-back', runId }
  if (ending === 'cancelled') return { kind: 'cancelled', run, ...keep }
  const { kind, options } = work.message
  const { failures } = work.claim
  const { timeouts = 0, workedMs: workedBefore = 0 } = work.earlier ?? {}
  const workedMs = workedBefore + result.durationMs
  // The next heartbeat is the retry; messages must not wait behind this one until then.
  const mayRetry = !isFinal && kind !== 'heartbeat'
  const tried = { failures, timeouts, workedMs }
  const retry = mayRetry ? planRetry(failure, tried, now, retryLimits) : undefined
  if (!retry) {
    const problem = `${failure.reason}: ${failure.message}`
    const attempts = 1 + (work.earlier?.count ?? 0)
    // A warm process has no exit code.
    const hasRun = result.exitCode !== undefined || result.sessionId !== undefined
    const text = withJobName(work, explained(work, failure, backend, now, { hasRun, attempts, workedMs }))
    const reply: Reply = { text, notes, isError: true, canRetry: true }
    return { kind: 'failed', problem, ...(!options?.isKnownToFail && { reply }), run, ...keep }
  }
  if (!retry.isAttempt) return { kind: 'retry', ...retry, run, note: waitingReply(backend, retry.at, now), ...keep }
  const attempts = attemptsInAll(failure, result.durationMs, tried, retryLimits)
  const next = { attempt: failures + 2, attempts, problem: failure.message }
  return { kind: 'retry', ...retry, run, next, ...keep }
}

/** The agent used up its turns: what it did counts, and a person can let it continue. */
function paused(
  work: Work,
  failure: AgentFailure,
  runId: string,
  { result, notes, session, said }: TurnOutcome & { said: string },
  plan: TurnPlan,
): Settlement {
  const canContinue = work.message.kind === 'message' && session !== undefined
  const { job } = work.message.options ?? {}
  const about = job === undefined ? '' : `The job ${job}: `
  const note = about + pauseNote(failure, plan.maxTurns, canContinue)
  const text = result.finalOutput || said
  const isSilent = text.trim() === ''
  const finalOutput = isSilent ? note : text
  const allNotes = [...notes, ...mergedNotes(work), ...(isSilent ? [] : [note])]
  const reply = replyTo(work, { ...result, finalOutput }, allNotes, plan)
  return {
    kind: 'answered',
    run: { id: runId, result: { ...result, ...(!isSilent && { finalOutput: text }) } },
    ...(reply && { reply: { ...reply, ...(canContinue && { canContinue }) } }),
    ...(session && { session }),
  }
}

/** A message for which no turn could be planned. */
export function unplanned({ message }: Work, problem: string): Settlement {
  const reply: Reply = { text: withJobName({ message }, problem), notes: [], isError: true, canRetry: true }
  return { kind: 'failed', problem, ...(!message.options?.isKnownToFail && { reply }) }
}

export function logSettlement(log: Log, { message }: Work, backend: string, settlement: Settlement): void {
  const run = 'run' in settlement ? settlement.run : undefined
  const about = { messageId: message.id, runId: run?.id, backend, durationMs: run?.result.durationMs }
  const reason = run?.result.failure?.reason
  if (settlement.kind === 'failed') log.error('message.failed', { ...about, reason })
  else if (settlement.kind === 'retry') log.warn('turn.failed', { ...about, reason, triedAgainAt: settlement.at })
  else log.info(`turn.${settlement.kind}`, { ...about, ...(reason && { reason }) })
}

export class ClaimLost extends Error {}

/** Contract: writes everything in one transaction or, if the claim is lost, throws `ClaimLost` and writes nothing. */
export async function writeSettlement(
  tables: Tables,
  { claim, claimedAt, conversation, merged, mayHaveMerged }: Work,
  settlement: Settlement,
  events: RecordedEvent[],
  at: number,
  addReply: (target: Omit<NewDelivery, 'id' | 'reply' | 'expiresAt'>, reply: Reply) => Promise<void>,
): Promise<void> {
  const { messageId, conversationId } = claim
  const { channel, address } = conversation
  // Locks the conversation: nothing is added to it while the next message is looked up.
  const seq = await tables.conversations.nextSeq(conversationId, at)
  // Messages the agent did not take wait for their own turn, even if unmerging them failed earlier.
  for (const message of mayHaveMerged ? await tables.jobs.mergedInto(messageId) : []) {
    if (!merged.some(({ id }) => id === message.id)) await tables.jobs.unmerge(message, at)
  }
  if (!(await settleClaim(tables, claim, mayHaveMerged, settlement, at))) throw new ClaimLost()
  await withdrawApprovals(tables, messageId, at)
  const runId = settlement.kind === 'handed-back' ? settlement.runId : settlement.run?.id
  if (runId !== undefined) await tables.events.record(runId, events)
  if (settlement.kind === 'handed-back') {
    if (runId !== undefined) await tables.runs.end(runId, 'interrupted', undefined, at)
    return
  }
  const { run } = settlement
  if (run) await tables.runs.end(run.id, RUN_STATES[settlement.kind], run.result, at)
  if (settlement.session) await tables.sessions.set(settlement.session, at, claimedAt)
  const reply = replyIn(settlement)
  if (!reply) return
  const target = { conversationId, channel, address, messageId, seq, ...(run && { runId: run.id }) }
  await addReply(target, reply)
}

const RUN_STATES = {
  answered: 'answered',
  failed: 'failed',
  retry: 'failed',
  cancelled: 'cancelled',
} as const satisfies Record<string, RunState>

function replyIn(settlement: Exclude<Settlement, { kind: 'handed-back' }>): Reply | undefined {
  if (settlement.kind === 'retry') return settlement.note
  return settlement.kind === 'cancelled' ? undefined : settlement.reply
}

async function settleClaim(
  tables: Tables,
  claim: Claim,
  mayHaveMerged: boolean,
  settlement: Settlement,
  at: number,
): Promise<boolean> {
  const { kind } = settlement
  if (kind === 'retry') {
    // If it was stopped meanwhile, the next message need not wait for the retry.
    const isStopped = (await tables.jobs.renew(claim, at, 0)) === 'cancelled'
    return tables.jobs.release(claim, isStopped ? at : settlement.at, settlement.isAttempt)
  }
  if (kind === 'handed-back') return tables.jobs.release(claim, at, false)
  return tables.jobs.finish(claim, kind, kind === 'failed' ? settlement.problem : null, at, mayHaveMerged)
}

/** Called when the run that asked for them is over. */
export async function withdrawApprovals({ approvals, outbox }: Tables, messageId: string, at: number): Promise<void> {
  await outbox.takeBack(await approvals.withdraw(messageId, at))
}

/** The reply to a successful turn, if any. */
function replyTo({ message }: Work, result: AgentResult, notes: string[], plan: TurnPlan): Reply | undefined {
  const { finish = (reply: Reply) => reply } = plan
  const reply = { ...answer(result.finalOutput ?? '', plan), notes, isError: false }
  if (message.kind === 'heartbeat') {
    const text = readHeartbeatAnswer(reply.text, reply.files !== undefined)
    return text === undefined ? undefined : finish({ ...reply, text })
  }
  if (message.kind === 'cron' && message.options?.command) {
    const { exitCode = 0 } = result
    const isQuiet = reply.text.trim() === ''
    if (exitCode === 0) return isQuiet ? undefined : finish(reply)
    const [executable = ''] = message.options.command
    const problem = withJobName({ message }, `${executable} ended with exit code ${exitCode}.`)
    return finish({ ...reply, text: isQuiet ? problem : `${problem}\n\n${reply.text}`, isError: true })
  }
  return finish(reply)
}

function mergedNotes({ merged: { length: count } }: Work): string[] {
  if (count === 0) return []
  return [count === 1 ? 'This also answers the message after it.' : `This also answers the ${count} messages after it.`]
}

function explained(
  { message }: Pick<Work, 'message'>,
  failure: AgentFailure,
  ...about: [string, number, Attempts]
): string {
  // For a command the message is our own, and complete.
  const isOwn = message.kind === 'cron' && message.options?.command !== undefined
  return isOwn ? failure.message : explainFailure(failure, ...about)
}

/** The reader did not ask for it and may have several jobs. */
function withJobName({ message }: Pick<Work, 'message'>, problem: string): string {
  const { job } = message.options ?? {}
  return job === undefined ? problem : `The job ${job} failed. ${problem}`
}

/** The text for the person and the files it names. */
function answer(output: string, { directory, canSendFiles }: TurnPlan): Pick<Reply, 'text' | 'files'> {
  if (!canSendFiles) return { text: output }
  const { text, media } = readMediaTokens(output)
  const files = media.map((item) => (isWebAddress(item) ? { url: item } : { path: item, directory }))
  return { text, ...(files.length > 0 && { files }) }
}

function waitingReply(backend: string, waitsUntil: number, now: number): Reply {
  const retry = `Your message is waiting and will be retried ${timeAhead(waitsUntil, now)}.`
  return { text: `${backend} has reached its usage limit. ${retry}`, notes: [], isError: false, waitsUntil }
}
