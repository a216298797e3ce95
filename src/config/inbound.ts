// The block `inbound.reply`: how messages from WhatsApp are answered.

import { z } from 'zod'
import { quote } from './problems.js'
import { argv, backend, isObject, phoneNumber, text, whole } from './values.js'

const replyAgentSchema = z.strictObject({
  kind: backend().describe('The agent that answers.'),
  format: z
    .enum(['text', 'json'])
    .exactOptional()
    .describe(
      'How its command line prints. By default as it streams best; with "text" it has no session and no usage.',
    ),
  identityPrefix: text().exactOptional().describe('Put before each message, with a blank line after it.'),
})

const replySessionSchema = z.strictObject({
  scope: z
    .enum(['per-sender', 'global'])
    .default('per-sender')
    .describe('Whether each person has a session, or all share one.'),
  idleMinutes: whole(1).default(60).describe('Silence in minutes after which a new session starts.'),
  heartbeatIdleMinutes: whole(1)
    .exactOptional()
    .describe('The same for heartbeats in the shared session. Default: idleMinutes.'),
  resetTriggers: z
    .array(text())
    .default(['/new'])
    .describe('Words that start a new session: alone, or before its first message.'),
  sessionArgNew: z
    .array(z.string())
    .exactOptional()
    .describe("Arguments that start a session, instead of the agent's own."),
  sessionArgResume: z
    .array(z.string())
    .exactOptional()
    .describe("Arguments that continue a session, instead of the agent's own."),
  sessionIntro: text().exactOptional().describe('Put before the first message of a session.'),
  sendSystemOnce: z
    .boolean()
    .default(false)
    .describe('Put bodyPrefix and identityPrefix before the first message of a session only.'),
})

const replySchema = z
  .strictObject({
    mode: z.enum(['text', 'command']).default('command').describe('A fixed text, or an agent.'),
    text: text().exactOptional().describe('The answer, in mode "text".'),
    agent: replyAgentSchema.exactOptional().describe('The agent, in mode "command".'),
    command: argv()
      .exactOptional()
      .describe('The executable of the agent and more arguments, with placeholders such as {{Body}}.'),
    cwd: text().exactOptional().describe("Where the agent works. A relative path starts at this file's directory."),
    session: replySessionSchema.exactOptional(),
    timeoutSeconds: whole(1, 86_400).default(600).describe('Time limit of one turn, in seconds.'),
    bodyPrefix: text().exactOptional().describe('Put directly before each message.'),
    mediaUrl: text()
      .refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), {
        error: 'must be a URL that begins with https:// or http://',
      })
      .exactOptional()
      .describe('Sent with an answer that names no file: an https URL.'),
    mediaMaxMb: whole(1, 100).default(5).describe('The largest file to send, in MB.'),
    typingIntervalSeconds: whole(1, 3600)
      .default(8)
      .describe('How often to show that the agent is typing, in seconds.'),
    heartbeatMinutes: whole(0).exactOptional().describe('Same as heartbeat.everyMinutes. 0: never.'),
    allowFrom: z
      .array(
        z.union([z.literal('*'), phoneNumber()], {
          error: ({ input }) => `${quote(input)} is neither "*" nor a number such as +4915112345678`,
        }),
      )
      .exactOptional()
      .describe('The numbers that may write, such as +4915112345678; "*" for everybody. By default nobody.'),
    responsePrefix: text().exactOptional().describe('Put before each answer.'),
    transcribeAudio: z
      .strictObject({
        command: argv().describe('Prints the text of the audio file {{MediaPath}}. Run without a shell.'),
        timeoutSeconds: whole(1, 3600).default(45).describe('Time limit, in seconds.'),
      })
      .exactOptional()
      .describe('How voice messages become text.'),
  })
  .refine(({ mode, text: fixed }) => mode !== 'text' || fixed !== undefined, {
    path: ['text'],
    error: 'is missing: in mode "text" it is the answer',
    when: isObject,
  })
  .refine(({ mode, agent }) => mode === 'text' || agent !== undefined, {
    path: ['agent'],
    error: 'is missing: say which agent answers, such as agent: { kind: "claude" }',
    when: isObject,
  })
  .refine(({ mode, text: fixed }) => mode === 'text' || fixed === undefined, {
    path: ['text'],
    error: 'is for mode "text" alone: set that mode, or take the text out',
    when: isObject,
  })
  .refine(({ mode, agent, command }) => mode !== 'text' || (agent === undefined && command === undefined), {
    path: ['mode'],
    error: 'in mode "text" no agent answers: take agent and command out, or write mode: "command"',
    when: isObject,
  })

export const inboundSchema = z.strictObject({
  reply: replySchema,
})

export type ReplyConfig = z.output<typeof replySchema>

const REPLACED: Partial<Record<string, string>> = {
  claudeOutputFormat: 'is no more: write agent: { kind: "claude", format: "json" }, or leave the format out',
  template: 'is no more: put it into command, before {{Body}}',
  abortWords: 'is no more: stop, esc, abort, wait and exit always end the run',
  messagePrefix: 'is no more: use inbound.reply.bodyPrefix',
  timestampPrefix: 'is no more: agents are not told the time of a message',
  sessionArgBeforeBody: 'is no more: the message goes by stdin, behind all arguments',
  store: 'is no more: sessions are kept in the database',
}

/** What replaced a key of earlier relays. */
export function replacedKey(path: PropertyKey[]): string | undefined {
  const [block, ...rest] = path.map(String)
  const key = rest.at(-1)
  if (block !== 'inbound' || key === undefined) return undefined
  if (rest.length === 1 && key in replySchema.shape) return `belongs into inbound.reply: write it there`
  return Object.hasOwn(REPLACED, key) ? REPLACED[key] : undefined
}
