import { onlyOne } from '../core/only-one.js'
import type { CronJob } from '../store/cron-jobs.js'

/** Finds a job by its name, its id or the beginning of its id. Contract: throws `not_found` or `request_invalid`. */
export function findCronJob(wanted: string, jobs: CronJob[]): CronJob {
  const byName = jobs.filter(({ name }) => name === wanted)
  const found = byName.length > 0 ? byName : jobs.filter(({ id }) => wanted.length >= 4 && id.startsWith(wanted))
  const none = `There is no job ${wanted}. "aetheel cron list" shows them.`
  return onlyOne(found, none, `${wanted} matches more than one job. Type more of the id.`)
}
