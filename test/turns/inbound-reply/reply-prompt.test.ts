import { expect, it } from 'vitest'
import { inboundSchema } from '../../../src/config/inbound.js'
import { buildPrompt, readMessage } from '../../../src/turns/inbound-reply/reply-prompt.js'

const config = inboundSchema.parse({
  reply: {
    agent: { kind: 'claude', identityPrefix: 'You are Ada.' },
    bodyPrefix: '{{From}}: ',
    session: { sessionIntro: 'You write to {{From}}.' },
  },
}).reply
const values = { From: '+491' }

const PICTURE = 'Attached file: .aetheel/inbox/1/a.png (image/png, 2 KB)'
const HINT = 'To send a file back, write a line of its own into your answer: MEDIA: <path or https URL>'

it('the prompt has all its parts in order, in the first turn of a session', () => {
  const message = {
    body: 'What is this?',
    fileLines: [PICTURE, PICTURE],
    variables: { Transcript: 'What is that?' },
  }
  expect(buildPrompt(config, message, { isFirstTurn: true, canSendFiles: true, values })).toBe(
    [
      `${PICTURE}\n${PICTURE}`,
      HINT,
      'You write to +491.',
      'You are Ada.',
      '+491: What is this?',
      'Transcript:\nWhat is that?',
    ].join('\n\n'),
  )
})

it.each([
  ['in a later turn', false, false, 'You are Ada.\n\n+491: hi'],
  ['in a later turn, when the rest is said once', false, true, 'hi'],
  ['in the first turn, when the rest is said once', true, true, 'You write to +491.\n\nYou are Ada.\n\n+491: hi'],
])('%s the prompt is as it should be', (_, isFirstTurn, sendSystemOnce, prompt) => {
  const { session } = config
  const once = { ...config, ...(session && { session: { ...session, sendSystemOnce } }) }
  const message = { body: 'hi', fileLines: [], variables: {} }
  expect(buildPrompt(once, message, { isFirstTurn, canSendFiles: true, values })).toBe(prompt)
})

it('nothing is added if nothing is configured, and a voice message is included once', () => {
  const message = { body: 'hi\n', fileLines: [], variables: { Transcript: ' hi' } }
  expect(buildPrompt({}, message, { isFirstTurn: true, canSendFiles: true, values: {} })).toBe('hi\n')
})

it('an agent without files in its answers is not told how to send them', () => {
  const message = { body: '', fileLines: [PICTURE], variables: {} }
  expect(buildPrompt({}, message, { isFirstTurn: true, canSendFiles: false, values: {} })).toBe(PICTURE)
})

it.each([
  ['hi', {}, 'hi', []],
  [PICTURE, {}, PICTURE, []],
  [`hi\n\n${PICTURE}\n${PICTURE}`, { MediaPath: 'a.png' }, 'hi\n', [PICTURE, PICTURE]],
  [`${PICTURE}\nhi\n${PICTURE}`, { MediaPath: 'a.png' }, `${PICTURE}\nhi`, [PICTURE]],
  [PICTURE, { MediaPath: 'a.png' }, '', [PICTURE]],
])('%j with %j is what the person wrote and the files that came with it', (text, variables, body, fileLines) => {
  expect(readMessage(text, variables)).toEqual({ body, fileLines, variables })
})
