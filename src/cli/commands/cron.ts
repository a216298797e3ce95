import { type Command, Option } from 'commander'
import { defined } from '../../core/defined.js'
import type { CommandContext } from '../command-context.js'
import type { Control } from '../control/protocol.js'
import { CronSchedule } from '../../schedule/cron-schedule.js'
import { describeTime } from '../../schedule/local-time.js'
import type { CronJobRequest } from '../../schedule/new-cron-job.js'
import { describeTarget } from '../../config/target.js'
import type { CronJob } from '../../store/cron-jobs.js'
import type { MessageState } from '../../store/schema.js'
import type { Store } from '../../store/store.js'
import { defineList } from '../list-command.js'
import { age, listing, type ListOptions, shortId } from '../listing.js'
import { withGateway } from '../with-control.js'

interface CronFlags {
  to: string
  prompt?: string
  zone?: string
  project?: string
  session?: 'own' | 'shared'
  catchUp?: 'once' | 'skip'
}

interface ListedJob extends CronJob {
  nextAt?: number
  /** When it last ran, and how it ended. */
  lastAt?: number
  lastState?: MessageState
  /** Only if not 0. */
  lastExitCode?: number
}

export function registerCron(program: Command, context: CommandContext): void {
  const cron = program.command('cron').description('Manage scheduled jobs.')
  defineList(cron.command('list', { isDefault: true }), 'List jobs.', context, cronList)
  cron
    .command('add')
    .description('Add a job: a prompt for the agent, or a command after "--".')
    .argument('<name>', 'its name')
    .argument('<schedule>', 'minute, hour, day of month, month, day of week, such as "0 9 * * MON-FRI"')
    .argument('[command...]', 'an executable and its arguments')
    .requiredOption(
      '-t, --to <target>',
      'where to send the answer: whatsapp:+4915112345678, discord:<channel id>, terminal:<name>',
    )
    .option('--prompt <text>', 'the prompt for the agent')
    .option('--zone <name>', "time zone, such as Europe/Berlin; by default the machine's")
    .option('-p, --project <id>', 'the project to work in')
    .addOption(new Option('--session <which>', "its own session or the conversation's").choices(['own', 'shared']))
    .addOption(new Option('--catch-up <rule>', 'what to do about missed runs').choices(['once', 'skip']))
    .action((name: string, schedule: string, argv: string[], flags: CronFlags) => {
      const { to, prompt, zone: timeZone, project: projectId, session, catchUp } = flags
      const command = argv.length > 0 ? argv : undefined
      const request = defined({ name, schedule, to, prompt, command, timeZone, projectId, session, catchUp })
      return context.operate((control) => cronAdd(control, request))
    })
  cron
    .command('run')
    .description('Run a job now.')
    .argument('<job>', 'its name, or the first characters of its id')
    .action(async (job: string) => {
      console.log(await cronRun(context.readConfig().home, job))
    })
  cron
    .command('rm')
    .description('Remove a job.')
    .argument('<job>', 'its name, or the first characters of its id')
    .action((job: string) => context.operate((control) => cronRemove(control, job)))
}

/** The output of `aetheel cron list`. */
export async function cronList(
  store: Pick<Store, 'cronJobs' | 'inbox' | 'runs'>,
  options: ListOptions,
): Promise<string> {
  const { limit, now } = options
  const jobs = await Promise.all((await store.cronJobs.list()).slice(0, limit).map((job) => listed(job, store, now)))
  return listing(jobs, options, 'There are no jobs. "aetheel cron add" adds one.', {
    ID: ({ id }) => shortId(id),
    NAME: ({ name }) => name,
    SCHEDULE: ({ schedule }) => schedule,
    NEXT: ({ nextAt, timeZone }) => (nextAt === undefined ? 'never' : describeTime(nextAt, timeZone)),
    TO: describeTarget,
    LAST: (job) => describeLast(job, now),
    WORK: ({ work }) => ('prompt' in work ? work.prompt : `$ ${work.command.join(' ')}`),
  })
}

/** What `aetheel cron add` prints. */
async function cronAdd(control: Control, request: CronJobRequest): Promise<string> {
  const { name, timeZone, nextAt } = await control.call('cron.add', request)
  return `Added the job ${name}. It runs next at ${describeTime(nextAt, timeZone)}.`
}

/** The output of `aetheel cron run`. */
async function cronRun(home: string, wanted: string): Promise<string> {
  const { job, messageId } = await withGateway(home, (control) => control.call('cron.run', { job: wanted }))
  return `Started the job ${job}, as message ${shortId(messageId)}.`
}

/** The output of `aetheel cron rm`. */
async function cronRemove(control: Control, wanted: string): Promise<string> {
  const { job } = await control.call('cron.rm', { job: wanted })
  return `Removed the job ${job}.`
}

async function listed(job: CronJob, { inbox, runs }: Pick<Store, 'inbox' | 'runs'>, now: number): Promise<ListedJob> {
  const nextAt = new CronSchedule(job.schedule, job.timeZone).next(now)
  const last = job.lastMessageId === undefined ? undefined : await inbox.get(job.lastMessageId)
  const isCommand = last !== undefined && 'command' in job.work
  const exitCode = isCommand ? (await runs.ofMessage(last.id)).at(-1)?.result?.exitCode : undefined
  const lastExitCode = exitCode === 0 ? undefined : exitCode
  return { ...job, ...defined({ nextAt, lastAt: last?.receivedAt, lastState: last?.state, lastExitCode }) }
}

function describeLast({ lastSlot, lastAt, lastState, lastExitCode, problem }: ListedJob, now: number): string {
  if (lastState === 'open') return 'running'
  if (problem !== undefined) return `${age(lastSlot, now)} ago, skipped: ${problem}`
  return lastAt === undefined
    ? 'never'
    : `${age(lastAt, now)} ago, ${lastExitCode === undefined ? lastState : `exit code ${lastExitCode}`}`
}
