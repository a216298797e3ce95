import { describe, expect, it } from 'vitest'
import { hasTasks, HEARTBEAT_TOKEN, heartbeatPrompt, readHeartbeatAnswer } from '../../src/prompt/heartbeat.js'

const LONG = 'x'.repeat(301)

describe('the answer to a heartbeat', () => {
  it.each([
    ['the word alone', HEARTBEAT_TOKEN],
    ['nothing', ' \n'],
    ['the word among marks', `**\`${HEARTBEAT_TOKEN}\`**`],
    ['the word with a full stop', `${HEARTBEAT_TOKEN}.`],
    ['the word before a short remark', `${HEARTBEAT_TOKEN} All is well.`],
    ['the word after a short remark', `I looked at the mail.\n\n${HEARTBEAT_TOKEN}`],
    ['the word before 300 characters', `${HEARTBEAT_TOKEN} ${'x'.repeat(300)}`],
    ['the word at both ends', `${HEARTBEAT_TOKEN}\nfine\n${HEARTBEAT_TOKEN}`],
  ])('is quiet when it is %s', (_, answer) => {
    expect(readHeartbeatAnswer(answer, false)).toBeUndefined()
  })

  it.each([
    ['has no such word', 'The build is red.', 'The build is red.'],
    ['says more beside it', `${HEARTBEAT_TOKEN}\n${LONG}`, LONG],
    [
      'has it in the middle',
      `I say ${HEARTBEAT_TOKEN} when all is well.`,
      `I say ${HEARTBEAT_TOKEN} when all is well.`,
    ],
    ['has it in other letters', 'heartbeat_ok', 'heartbeat_ok'],
    ['has it as part of another word', `${HEARTBEAT_TOKEN}AY`, `${HEARTBEAT_TOKEN}AY`],
    ['names a link', `See https://example.com/1\n${HEARTBEAT_TOKEN}`, 'See https://example.com/1'],
  ])('is delivered when it %s', (_, answer, told) => {
    expect(readHeartbeatAnswer(answer, false)).toEqual(told)
  })

  it('is delivered when it has a file', () => {
    expect(readHeartbeatAnswer(HEARTBEAT_TOKEN, true)).toEqual('')
  })

  it('of a million marks is read at once', () => {
    const startedAt = performance.now()
    readHeartbeatAnswer('*'.repeat(1_000_000), false)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })
})

describe('heartbeat.md', () => {
  it.each([
    ['is empty', ''],
    ['has only headings', '# Heartbeat\n\n## Mail\n'],
    ['has only a comment', '<!-- - Look at the mail\n- and more -->\n'],
    ['has a comment without an end', '# Heartbeat\n<!-- later: mail'],
    ['has only empty points', '- [ ]\n-\n***\n'],
  ])('that %s asks for nothing', (_, text) => {
    expect(hasTasks(text)).toBe(false)
  })

  it.each([
    ['a line', 'Look at the mail.'],
    ['a point under a heading', '# Heartbeat\n- mail'],
    ['a line after a comment', '<!-- a --> Look at the mail'],
    ['a word that only looks like a heading', '#mail'],
    ['letters of any script', '- メール'],
  ])('with %s asks for something', (_, text) => {
    expect(hasTasks(text)).toBe(true)
  })
})

describe('the prompt of a heartbeat', () => {
  it('has the output of the check, up to a limit', () => {
    const asked = heartbeatPrompt('y'.repeat(9_000))
    expect([heartbeatPrompt('').includes('check'), asked.includes('y'.repeat(8_000)), asked.length < 8_400]).toEqual([
      false,
      true,
      true,
    ])
  })
})
