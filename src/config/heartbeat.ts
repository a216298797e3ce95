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
      'Who is told, as whatsapp:+4915112345678 or discord:<channel id>. Left out, the first number of allowFrom, else outputChannelId.',
    ),
  activeHours: z
    .strictObject({
      from: timeOfDay().describe('The first minute of the day in which it looks.'),
      to: timeOfDay().describe('The first minute in which it no longer does; before "from", that of the next day.'),
    })
    .exactOptional()
    .describe('Left out, day and night.'),
  timeZone: timeZone().exactOptional().describe("In which activeHours and days are counted. Left out, the machine's."),
  dailyTokens: whole(1).default(200_000).describe('How many tokens heartbeats may use in a day before they pause.'),
  probe: argv()
    .exactOptional()
    .describe('A command that is asked first: only if it prints something, or fails, the agent looks.'),
  whenUnchanged: z
    .enum(['skip', 'run'])
    .default('skip')
    .describe('What happens when nothing was found last time and heartbeat.md is as it was.'),
  session: z
    .enum(['own', 'shared'])
    .default('own')
    .describe('Whether it has a fresh session each time, or looks in that of the conversation.'),
})

export type HeartbeatConfig = z.output<typeof heartbeatSchema>

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // Unknown names throw.
  }
}
