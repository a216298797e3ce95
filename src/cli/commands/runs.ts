import type { Command } from 'commander'
import type { AgentEvent, TokenUsage } from '../../backends/types.js'
import { isPaused, type RunRecord } from '../../store/runs.js'
import type { RunState } from '../../store/schema.js'
import type { Store } from '../../store/store.js'
import type { CommandContext } from '../command-context.js'
import { defineList } from '../list-command.js'
import {
  age,
  conversationName,
  listing,
  localTime,
  type ListOptions,
  prefixOf,
  section,
  severalIds,
  shortId,
  terminalWidth,
  workingGateways,
} from '../listing.js'
import { formatMoney } from '../../core/money.js'
import { oneLine } from '../../core/one-line.js'
import { onlyOne } from '../../core/only-one.js'
import { table } from '../table.js'

type Tables = Pick<Store, 'runs' | 'events' | 'conversations' | 'inbox' | 'ledger'>

export function registerRuns(program: Command, context: CommandContext): void {
  const runs = program.command('runs').description('Show what agents did, turn by turn.')
  defineList(runs.command('list', { isDefault: true }), 'List the latest runs.', context, runsList)
  runs
    .command('show')
    .description('Show a run, event by event.')
    .argument('<id>', 'its id, or the first characters of it')
    .option('--json', 'print JSON')
    .action((id: string, flags: { json?: true }) =>
      context.inspect((store) => runsShow(store, id, { isJson: flags.json === true, width: terminalWidth() })),
    )
}

/** The output of `aetheel runs`, latest first. */
export async function runsList(store: Tables, options: ListOptions): Promise<string> {
  const isWorking = await workingGateways(store)
  const runs = await Promise.all(
    (await store.runs.list(options.limit)).map(async (run) => ({
      ...run,
      state: describeState(run, isWorking(run.gatewayId)),
      isPaused: isPaused(run, (await store.inbox.get(run.messageId))?.kind),
      conversation: await nameOf(store, run),
    })),
  )
  return listing(runs, options, 'No agent has run yet.', {
    ID: ({ id }) => shortId(id),
    AGE: ({ startedAt }) => age(startedAt, options.now),
    TOOK: duration,
    CONVERSATION: ({ conversation }) => conversation,
    AGENT: ({ backend }) => backend,
    STATE: shownState,
    ANSWER: ({ result, isPaused }) =>
      (isPaused ? result?.finalOutput : undefined) ?? result?.failure?.message ?? result?.finalOutput ?? '',
  })
}

/** The output of `aetheel runs show`. `id` may be a prefix. */
export async function runsShow(
  store: Tables,
  id: string,
  { isJson, width }: { isJson: boolean; width: number },
): Promise<string> {
  const found = await findRun(store, id)
  const message = await store.inbox.get(found.messageId)
  const state = describeState(found, (await workingGateways(store))(found.gatewayId))
  const run = { ...found, state, isPaused: isPaused(found, message?.kind) }
  const events = await store.events.list(run.id)
  if (isJson) return JSON.stringify({ ...run, events }, null, 2)
  const facts = [
    ['run', run.id],
    ['conversation', await nameOf(store, run)],
    ['message', `${run.messageId}${message ? `: ${message.text}` : ''}`],
    ['agent', `${run.backend}${run.model === undefined ? '' : `, model ${run.model}`}`],
    ['session', run.sessionId ?? '-'],
    ['state', run.isPaused ? 'paused at the turn limit; /continue resumes it' : run.state],
    ['started', localTime(run.startedAt)],
    ['took', duration(run)],
    ...(run.metadata ? [['metadata', JSON.stringify(run.metadata)]] : []),
    ...(run.result?.usage ? [['tokens', describeUsage(run.result.usage)]] : []),
    ...(run.result?.costUsd === undefined ? [] : [['cost', formatMoney(run.result.costUsd)]]),
  ].map(([name = '', value = '']) => [name, oneLine(value, Math.max(width - 14, 40))])
  const log = section(
    { items: events, width },
    {
      SEQ: ({ seq }) => String(seq),
      TIME: ({ event }) => `+${((event.timestamp - run.startedAt) / 1000).toFixed(1)} s`,
      EVENT: ({ event }) => event.type,
      WHAT: ({ event }) => describe(event),
    },
  )
  return [table(facts), log || 'No events.'].join('\n\n')
}

/** Contract: throws `not_found`, or `request_invalid` if the prefix is ambiguous. */
async function findRun({ runs }: Tables, id: string): Promise<RunRecord> {
  const none = `There is no run ${oneLine(id, 40)}. "aetheel runs" shows the latest.`
  return onlyOne(await runs.findByPrefix(prefixOf(id)), none, severalIds(id))
}

async function nameOf({ conversations }: Tables, { conversationId }: RunRecord): Promise<string> {
  const conversation = await conversations.get(conversationId)
  return conversation ? conversationName(conversation) : conversationId
}

/** A run whose gateway died is marked as ended only when another gateway takes over its message. */
function describeState({ state }: RunRecord, isWorking: boolean): RunState {
  return state === 'running' && !isWorking ? 'interrupted' : state
}

function shownState({ state, isPaused }: { state: RunState; isPaused: boolean }): RunState | 'paused' {
  return isPaused ? 'paused' : state
}

function duration({ startedAt, endedAt }: RunRecord): string {
  return endedAt === undefined ? '-' : `${((endedAt - startedAt) / 1000).toFixed(1)} s`
}

function describe(event: AgentEvent): string {
  switch (event.type) {
    case 'started':
      return [event.model, event.sessionId].filter((part) => part !== undefined).join(', session ')
    case 'tool_use':
      return `${event.toolName} ${JSON.stringify(event.toolInput)}`
    case 'tool_result':
      return `${event.isError ? 'failed: ' : ''}${event.content}`
    case 'complete':
      return event.result.failure
        ? `${event.result.failure.reason}: ${event.result.failure.message}`
        : (event.result.finalOutput ?? '')
    case 'error':
      return `${event.reason}: ${event.content}`
    default:
      return event.content
  }
}

function describeUsage(usage: TokenUsage): string {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  return `${inputTokens} in, ${outputTokens} out, cache ${cacheReadTokens} read and ${cacheWriteTokens} written`
}
