import { defined } from '../core/defined.js'
import { GatewayError } from '../errors.js'
import type { NewCronJob } from '../store/cron-jobs.js'
import type { CatchUp } from '../store/schema.js'
import type { Store } from '../store/store.js'
import { CronSchedule } from './cron-schedule.js'
import { machineTimeZone } from './local-time.js'
import { parseTarget } from '../config/target.js'

/** A job as a person writes it. */
export interface CronJobRequest {
  name: string
  schedule: string
  /** Defaults to the machine's. */
  timeZone?: string
  /** Either this or `command`. */
  prompt?: string
  command?: string[]
  to: string
  projectId?: string
  session?: 'own' | 'shared'
  catchUp?: CatchUp
}

interface AddDependencies {
  store: Pick<Store, 'cronJobs' | 'projects'>
  now: () => number
  newId: () => string
}

/** Validates a job and stores it. Contract: throws `request_invalid`, `not_found` or `conflict` with advice. */
export async function addCronJob(
  request: CronJobRequest,
  { store, now, newId }: AddDependencies,
): Promise<{ job: NewCronJob; nextAt: number }> {
  const { name, prompt = '', command = [], projectId, session = 'own', catchUp = 'once' } = request
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,99}$/u.test(name)) {
    throw invalid(`"${name}" is not a job name. Use up to 100 letters, digits, dots, dashes and underscores.`)
  }
  if ((prompt.trim() === '') === (command.length === 0)) {
    throw invalid('A job needs either a prompt for the agent, as --prompt "…", or a command after "--".')
  }
  if (command[0]?.trim() === '') throw invalid('The command of a job needs an executable.')
  if (projectId !== undefined && session === 'shared') {
    const advice = 'Omit --session shared, or choose the project in the conversation with /project.'
    throw invalid(`A job with its own project cannot share the session of the conversation. ${advice}`)
  }
  const timeZone = request.timeZone ?? machineTimeZone()
  const schedule = request.schedule.trim()
  const nextAt = new CronSchedule(schedule, timeZone).next(now())
  if (nextAt === undefined) throw invalid(`The schedule "${schedule}" never runs: there is no such day.`)
  const target = parseTarget(request.to)
  if (projectId !== undefined && !(await store.projects.get(projectId))) {
    throw new GatewayError('not_found', `There is no project ${projectId}. "aetheel projects" shows them.`)
  }
  const work = command.length > 0 ? { command } : { prompt }
  const job = defined({ id: newId(), name, schedule, timeZone, work, ...target, projectId, session, catchUp })
  if (await store.cronJobs.add(job, now())) return { job, nextAt }
  const advice = `Choose another name, or remove that one: aetheel cron rm ${name}`
  throw new GatewayError('conflict', `A job named ${name} already exists. ${advice}`)
}

function invalid(message: string): GatewayError {
  return new GatewayError('request_invalid', message)
}
