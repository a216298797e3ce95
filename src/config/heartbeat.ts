// The block `heartbeat`: when the agent checks on its own whether there is something to do.

import { z } from 'zod'
import { argv, text, whole } from './values.js'

const timeOfDay = () => z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, { error: 'must be a time of day, such as 08:00' })

/** Any time zone the runtime knows. */
export const timeZone = () =>
  z.string().refine(isTimeZone, { error: 'must be the name of a time zone, such as Europe/Berlin' })

export const heartbeatSchema = z.strictObject({
  everyMinutes: whole(0).exactOptional().describe('How often, in minutes. 0: never.'),
  to: text()
    .exactOptional()
    .describe(
      'Who is told, such as whatsapp:+4915112345678 or discord:<channel id>. Default: the first number of allowFrom, else outputChannelId.',
    ),
  activeHours: z
    .strictObject({
      from: timeOfDay().describe('The first minute of the day with heartbeats.'),
      to: timeOfDay().describe('The first minute without. If before "from", on the next day.'),
    })
    .exactOptional()
    .describe('By default day and night.'),
  timeZone: timeZone().exactOptional().describe("The time zone of activeHours and days. Default: the machine's."),
  dailyTokens: whole(1).default(200_000).describe('How many tokens heartbeats may use in a day before they pause.'),
  probe: argv()
    .exactOptional()
    .describe('A command to run first. The agent wakes only if it prints something or fails.'),
  whenUnchanged: z
    .enum(['skip', 'run'])
    .default('skip')
    .describe('What to do if the last heartbeat was quiet and nothing has changed.'),
  session: z.enum(['own', 'shared']).default('own').describe('A fresh session each time, or that of the conversation.'),
})

export type HeartbeatConfig = z.output<typeof heartbeatSchema>

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // Unknown names throw.
  }
}
