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
      'The output format of its CLI. Default: the one that streams best. With "text" there is no session and no usage.',
    ),
  identityPrefix: text().exactOptional().describe('Text before each message, followed by a blank line.'),
})

const replySessionSchema = z.strictObject({
  scope: z
    .enum(['per-sender', 'global'])
    .default('per-sender')
    .describe('One session for each person (per-sender), or one for all (global).'),
  idleMinutes: whole(1).default(60).describe('Minutes of silence after which a new session starts.'),
  heartbeatIdleMinutes: whole(1)
    .exactOptional()
    .describe('The same for heartbeats in the shared session. Default: idleMinutes.'),
  resetTriggers: z
    .array(text())
    .default(['/new'])
    .describe('Words that start a new session: as a whole message, or before the first message.'),
  sessionArgNew: z
    .array(z.string())
    .exactOptional()
    .describe("Arguments that start a session, instead of the agent's own."),
  sessionArgResume: z
    .array(z.string())
    .exactOptional()
    .describe("Arguments that continue a session, instead of the agent's own."),
  sessionIntro: text().exactOptional().describe('Text before the first message of a session.'),
  sendSystemOnce: z
    .boolean()
    .default(false)
    .describe('Put bodyPrefix and identityPrefix only before the first message of a session.'),
})

const replySchema = z
  .strictObject({
    mode: z
      .enum(['text', 'command'])
      .default('command')
      .describe('Who answers: an agent ("command"), or a fixed text ("text").'),
    text: text().exactOptional().describe('The answer, in mode "text".'),
    agent: replyAgentSchema.exactOptional().describe('The agent, in mode "command".'),
    command: argv()
      .exactOptional()
      .describe("The agent's executable and additional arguments, with placeholders such as {{Body}}."),
    cwd: text()
      .exactOptional()
      .describe("The agent's working directory. A relative path starts from this file's directory."),
    session: replySessionSchema.exactOptional(),
    timeoutSeconds: whole(1, 86_400).default(600).describe('Time limit of one turn, in seconds.'),
    bodyPrefix: text().exactOptional().describe('Text directly before each message.'),
    mediaUrl: text()
      .refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), {
        error: 'must be a URL that begins with https:// or http://',
      })
      .exactOptional()
      .describe('The https URL of a file to send with answers that have none.'),
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
      .describe('The numbers that may write, such as +4915112345678; "*" for anyone. Default: nobody.'),
    responsePrefix: text().exactOptional().describe('Text before each answer.'),
    transcribeAudio: z
      .strictObject({
        command: argv().describe(
          'A command that prints the text of the audio file {{MediaPath}}, run without a shell.',
        ),
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
    error: 'is missing: name the agent that answers, such as agent: { kind: "claude" }',
    when: isObject,
  })
  .refine(({ mode, text: fixed }) => mode === 'text' || fixed === undefined, {
    path: ['text'],
    error: 'is only for mode "text": set that mode, or remove the text',
    when: isObject,
  })
  .refine(({ mode, agent, command }) => mode !== 'text' || (agent === undefined && command === undefined), {
    path: ['mode'],
    error: 'in mode "text" no agent answers: remove agent and command, or set mode: "command"',
    when: isObject,
  })

export const inboundSchema = z.strictObject({
  reply: replySchema,
})

export type ReplyConfig = z.output<typeof replySchema>

const REPLACED: Partial<Record<string, string>> = {
  claudeOutputFormat: 'was removed: use agent: { kind: "claude", format: "json" }, or omit the format',
  template: 'was removed: put it into command, before {{Body}}',
  abortWords: 'was removed: stop, esc, abort, wait and exit always end the run',
  messagePrefix: 'was removed: use inbound.reply.bodyPrefix',
  timestampPrefix: 'was removed: agents are not told the time of a message',
  sessionArgBeforeBody: 'was removed: the message is passed on stdin, not among the arguments',
  store: 'was removed: sessions are kept in the database',
}

/** What replaced a key of earlier WhatsApp relays. */
export function replacedKey(path: PropertyKey[]): string | undefined {
  const [block, ...rest] = path.map(String)
  const key = rest.at(-1)
  if (block !== 'inbound' || key === undefined) return undefined
  if (rest.length === 1 && key in replySchema.shape) return `belongs in inbound.reply: move it there`
  return Object.hasOwn(REPLACED, key) ? REPLACED[key] : undefined
}
