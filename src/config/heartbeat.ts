// The block `heartbeat`: when the agent checks on its own whether there is something to do.

import { z } from 'zod'
import { argv, text, whole } from './values.js'

const timeOfDay = () => z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, { error: 'must be a time of day, such as 08:00' })

/** Any time zone the runtime knows. */
export const timeZone = () =>
  z.string().refine(isTimeZone, { error: 'must be the name of a time zone, such as Europe/Berlin' })

export const heartbeatSchema = z.strictObject({
  everyMinutes: whole(0).exactOptional().describe('Minutes between heartbeats. 0: never.'),
  to: text()
    .exactOptional()
    .describe(
      'Who receives them, such as whatsapp:+4915112345678 or discord:<channel id>. Default: the first number in allowFrom, else outputChannelId.',
    ),
  activeHours: z
    .strictObject({
      from: timeOfDay().describe('When they start, such as 08:00.'),
      to: timeOfDay().describe('When they end, such as 22:00. If before "from", on the next day.'),
    })
    .exactOptional()
    .describe('The hours in which heartbeats run. Default: day and night.'),
  timeZone: timeZone()
    .exactOptional()
    .describe("The time zone of activeHours and of the day for dailyTokens. Default: the machine's."),
  dailyTokens: whole(1).default(200_000).describe('How many tokens heartbeats may use per day before they pause.'),
  probe: argv()
    .exactOptional()
    .describe('A command to run first. The agent wakes only if it prints something or fails.'),
  whenUnchanged: z
    .enum(['skip', 'run'])
    .default('skip')
    .describe('What to do if the last heartbeat had nothing to report and nothing has changed since.'),
  session: z
    .enum(['own', 'shared'])
    .default('own')
    .describe('A new session for each heartbeat (own), or the session of the conversation (shared).'),
})

export type HeartbeatConfig = z.output<typeof heartbeatSchema>

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // Unknown names throw.
  }
}
