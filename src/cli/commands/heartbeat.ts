import type { Command } from 'commander'
import type { GatewayConfig } from '../../config.js'
import { GatewayError } from '../../errors.js'
import { formatMoney } from '../../core/money.js'
import { oneLine } from '../../core/one-line.js'
import { describeTurns, formatCount } from '../../schedule/heartbeat.js'
import { type HeartbeatStatus, heartbeatStatus } from '../../schedule/heartbeat-status.js'
import { describeTime } from '../../schedule/local-time.js'
import type { LastBeat } from '../../store/heartbeats.js'
import type { Store } from '../../store/store.js'
import type { CommandContext } from '../command-context.js'
import { age, shortId, workingGateways } from '../listing.js'
import { table } from '../table.js'
import { withGateway } from '../with-control.js'

const PROBLEM_CHARACTERS = 200
const OFF = 'Heartbeats are off. Set heartbeat.everyMinutes and heartbeat.to in the configuration file.'

interface StatusOptions {
  isJson: boolean
  now: number
}

export function registerHeartbeat(program: Command, context: CommandContext): void {
  const heartbeat = program.command('heartbeat').description('Show or run heartbeats.')
  heartbeat
    .command('status', { isDefault: true })
    .description("Show the last and the next heartbeat, why one was skipped, and today's usage.")
    .option('--json', 'print JSON')
    .action((flags: { json?: true }) =>
      context.inspect((store, config) =>
        heartbeatReport(store, config, { isJson: flags.json === true, now: Date.now() }),
      ),
    )
  heartbeat
    .command('run')
    .description('Wake the agent now.')
    .option('-f, --force', 'even if there is a reason to skip it')
    .action(async (flags: { force?: true }) => {
      console.log(await heartbeatRun(context.readConfig().home, flags.force === true))
    })
}

/** The output of `aetheel heartbeat run`. */
export async function heartbeatRun(home: string, isForced: boolean): Promise<string> {
  const result = await withGateway(home, (control) => control.call('heartbeat.run', { isForced }))
  if (result.status === 'begun') return `Started a heartbeat, as message ${shortId(result.messageId)}.`
  throw new GatewayError('request_invalid', `Started no heartbeat. ${result.note} To start one anyway, use --force.`)
}

/** The output of `aetheel heartbeat status`. */
export async function heartbeatReport(
  store: Pick<Store, 'heartbeats' | 'figures' | 'ledger'>,
  config: Pick<GatewayConfig, 'heartbeat'>,
  { isJson, now }: StatusOptions,
): Promise<string> {
  const status = await heartbeatStatus(config, store, now)
  if (isJson) return JSON.stringify(status ?? null, null, 2)
  if (!status) return OFF
  const isWorking = await workingGateways(store)
  const isRunning = (await store.ledger.gateways()).some(({ id }) => isWorking(id))
  return table(rowsOf(status, isRunning, now))
}

function rowsOf(status: HeartbeatStatus, isRunning: boolean, now: number): string[][] {
  const { everyMinutes, to, timeZone, nextAt, latest, last, today, tokensToday, dailyTokens } = status
  const next = nextAt === undefined ? 'never: no heartbeat falls in the active hours' : describeTime(nextAt, timeZone)
  const note = latest?.outcome === 'begun' ? 'The agent was woken.' : latest?.note
  const decided = note ?? 'The gateway stopped at that moment.'
  const cost = today.costUsd === undefined ? 'not reported by the agent' : formatMoney(today.costUsd)
  const budget = tokensToday < dailyTokens ? '' : '; paused until tomorrow'
  return [
    ['every', everyMinutes === 1 ? 'minute' : `${everyMinutes} minutes`],
    ['to', to],
    ['next', isRunning ? next : 'once a gateway runs: aetheel start'],
    ['last check', latest ? `${age(latest.at, now)} ago. ${decided}` : 'none yet'],
    ['last run', last ? `${age(last.at, now)} ago, ${describeBeat(last)}` : 'none yet'],
    ['tokens today', `${formatCount(tokensToday)} of ${formatCount(dailyTokens)} in ${describeTurns(today)}${budget}`],
    ['cost today', cost],
  ]
}

function describeBeat({ state, wasTold, problem = '' }: LastBeat): string {
  if (state === 'answered') return wasTold ? 'reported something' : 'nothing to report'
  if (state === 'open') return 'not finished'
  return state === 'failed' ? `failed: ${oneLine(problem, PROBLEM_CHARACTERS)}` : state
}
