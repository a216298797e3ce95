import type { Control } from '../control/protocol.js'
import { CronSchedule } from '../../schedule/cron-schedule.js'
import { describeTime } from '../../schedule/local-time.js'
import type { CronJobWish } from '../../schedule/new-cron-job.js'
import { describeTarget } from '../../config/target.js'
import type { CronJob } from '../../store/cron-jobs.js'
import type { MessageState } from '../../store/schema.js'
import type { Store } from '../../store/store.js'
import { age, type ListOptions, section, shortId } from '../listing.js'
import { withGateway } from '../with-gateway.js'

interface ListedJob extends CronJob {
  nextAt?: number
  /** When it was last done, and what became of that. */
  lastAt?: number
  lastState?: MessageState
  /** Of its command, if it was another than 0. */
  lastExitCode?: number
}

/** What `aetheel cron list` prints. */
export async function cronList(
  store: Pick<Store, 'cronJobs' | 'inbox' | 'runs'>,
  { limit, isJson, width, now }: ListOptions,
): Promise<string> {
  const jobs = await Promise.all((await store.cronJobs.list()).slice(0, limit).map((job) => listed(job, store, now)))
  if (isJson) return JSON.stringify(jobs, null, 2)
  const rows = jobs.map((job) => [
    shortId(job.id),
    job.name,
    job.schedule,
    job.nextAt === undefined ? 'never' : describeTime(job.nextAt, job.timeZone),
    describeTarget(job),
    describeLast(job, now),
    'prompt' in job.work ? job.work.prompt : `$ ${job.work.command.join(' ')}`,
  ])
  const columns = ['ID', 'NAME', 'SCHEDULE', 'NEXT', 'TO', 'LAST', 'WORK']
  return section('', columns, rows, width) || 'There are no jobs. "aetheel cron add" makes one.'
}

/** What `aetheel cron add` prints. */
export async function cronAdd(control: Control, wish: CronJobWish): Promise<string> {
  const { name, timeZone, nextAt } = await control.call('cron.add', wish)
  return `The job ${name} is kept. It comes next at ${describeTime(nextAt, timeZone)}.`
}

/** What `aetheel cron run` prints. */
export async function cronRun(home: string, wanted: string): Promise<string> {
  const { job, messageId } = await withGateway(home, (control) => control.call('cron.run', { job: wanted }))
  return `The job ${job} is done now, as message ${shortId(messageId)}.`
}

/** What `aetheel cron rm` prints. */
export async function cronRemove(control: Control, wanted: string): Promise<string> {
  const { job } = await control.call('cron.rm', { job: wanted })
  return `The job ${job} is gone.`
}

async function listed(job: CronJob, { inbox, runs }: Pick<Store, 'inbox' | 'runs'>, now: number): Promise<ListedJob> {
  const nextAt = new CronSchedule(job.schedule, job.timeZone).next(now)
  const last = job.lastMessageId === undefined ? undefined : await inbox.get(job.lastMessageId)
  const isCommand = last !== undefined && 'command' in job.work
  const exitCode = isCommand ? (await runs.ofMessage(last.id)).at(-1)?.result?.exitCode : undefined
  return {
    ...job,
    ...(nextAt !== undefined && { nextAt }),
    ...(last && { lastAt: last.receivedAt, lastState: last.state }),
    ...(exitCode && { lastExitCode: exitCode }),
  }
}

function describeLast({ lastSlot, lastAt, lastState, lastExitCode, problem }: ListedJob, now: number): string {
  if (lastState === 'open') return 'worked on'
  if (problem !== undefined) return `${age(lastSlot, now)} ago, left out: ${problem}`
  return lastAt === undefined
    ? 'never'
    : `${age(lastAt, now)} ago, ${lastExitCode === undefined ? lastState : `exit code ${lastExitCode}`}`
}
