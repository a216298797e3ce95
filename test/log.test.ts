import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createScrubber } from '../src/credentials/scrubber.js'
import { createLog, type LogLevel, secretsOf } from '../src/log.js'

const SECRET = 'sk-ant-0123456789'

describe('createLog', () => {
  it('writes a line of JSON with the time, the message and the fields', () => {
    const { log, lines } = setup()
    log.warn('job.claimed', { jobId: 7, nested: { ok: true } })
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { level: 40, time: expect.stringMatching(/^\d{4}-.*Z$/), jobId: 7, nested: { ok: true }, msg: 'job.claimed' },
    ])
  })

  it('writes words for a person at a terminal, who no field can fool', () => {
    const lines: string[] = []
    const destination = { isTTY: true, write: (line: string) => Boolean(lines.push(line)) }
    createLog({ level: 'info', destination, secrets: [SECRET] }).warn('job.claimed', {
      jobId: 7,
      text: 'two words',
      path: '/x',
      evil: `\u001B[31m\u009B2J${SECRET}`,
    })
    expect(lines).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d warning job\.claimed jobId=7 text="two words" path=\/x evil=\P{Cc}+\n$/u),
    ])
    expect(lines.join('')).not.toContain(SECRET)
  })

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['silent', []],
  ] as const)('at the level %s omits lower levels', (level, expected) => {
    const { log, lines } = setup([], level)
    for (const name of ['debug', 'info', 'warn', 'error'] as const) log[name](name)
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(expected)
  })

  it.each([
    ['the message', SECRET, {}],
    ['a field', 'm', { key: SECRET }],
    ['the middle of a field', 'm', { url: `https://user:${SECRET}@host/` }],
    ['the name of a field', 'm', { [SECRET]: 1 }],
    ['a nested field', 'm', { a: [{ b: { c: [SECRET, { d: SECRET }] } }] }],
    ['an error', 'm', { err: new Error(`401 for ${SECRET}`) }],
    ['the cause of an error', 'm', { err: new Error('failed', { cause: new Error(SECRET) }) }],
    ['what an object says it is', 'm', { value: { toJSON: () => SECRET } }],
  ])('hides a secret in %s', (_, message, fields) => {
    const { log, lines } = setup([SECRET])
    log.error(message, fields)
    expect([lines.length, lines.join('').includes(SECRET), lines.join('').includes('[secret]')]).toEqual([
      1,
      false,
      true,
    ])
  })

  it('hides secrets of any characters, even if one begins another', () => {
    const secret = fc
      .string({ unit: 'binary', minLength: 6, maxLength: 12 })
      .filter((text) => !'[secret]'.includes(text))
    fc.assert(
      fc.property(secret, fc.string(), (value, more) => {
        const { log, lines } = setup([value, value + more])
        log.warn('started', { whole: value + more, part: `<${value}>` })
        const { whole, part } = JSON.parse(lines.join(''))
        expect([whole, part.startsWith('<[secret]')]).toEqual(['[secret]', true])
      }),
    )
  })

  it.each([
    ['in base64', Buffer.from(`user:${SECRET}`).toString('base64')],
    ['in an address', `https://host/?key=${encodeURIComponent(SECRET)}`],
    ['in JSON', JSON.stringify({ key: SECRET })],
  ])('hides a secret %s', (_, text) => {
    const { log, lines } = setup([SECRET])
    log.error('m', { text })
    expect(JSON.parse(lines.join('')).text).toContain('[secret]')
  })

  it('hides a secret that came to be known later', () => {
    const scrubber = createScrubber()
    const { log, lines } = setup(['first-secret'], 'debug', scrubber)
    scrubber.add([SECRET])
    log.warn('m', { key: SECRET, other: 'first-secret' })
    expect(JSON.parse(lines.join(''))).toMatchObject({ key: '[secret]', other: '[secret]' })
  })

  it('writes lines of JSON, whatever is a secret', () => {
    const { log, lines } = setup(['nabcdef', '123456', '":"more', 'u0001x'])
    log.warn('m', { text: '\nabcdef', pin: 123_456, more: 'more', control: '\u0001x' })
    expect(JSON.parse(lines.join(''))).toMatchObject({
      text: '\nabcdef',
      pin: '[secret]',
      more: 'more',
      control: '\u0001x',
    })
  })

  it('does not take a short word for a secret', () => {
    const { log, lines } = setup(['', 'a', 'on', '12345'])
    log.warn('a banana', { on: 12345 })
    expect(JSON.parse(lines.join(''))).toMatchObject({ msg: 'a banana', on: 12345 })
  })

  it('survives fields that are no JSON', () => {
    const { log, lines } = setup()
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    log.warn('odd', { circle, big: 1n, call: () => {} })
    expect(JSON.parse(lines.join(''))).toMatchObject({ msg: 'odd' })
  })
})

describe('secretsOf', () => {
  it('takes the values of variables that are secret by their name', () => {
    const environment = {
      ANTHROPIC_API_KEY: 'one',
      DISCORD_TOKEN: 'two',
      client_secret: 'three',
      DB_PASSWORD: 'four',
      GOOGLE_APPLICATION_CREDENTIALS: 'five',
      DATABASE_URL: 'six',
      PATH: '/bin',
      HOME: '/root',
      EMPTY_KEY: '',
      UNSET_KEY: undefined,
    }
    expect(secretsOf(environment)).toEqual(['one', 'two', 'three', 'four', 'five', 'six'])
  })
})

function setup(secrets: string[] = [], level: LogLevel = 'debug', scrubber = createScrubber()) {
  const lines: string[] = []
  const destination = {
    write(line: string | Uint8Array) {
      lines.push(String(line))
      return true
    },
  }
  return { log: createLog({ level, secrets, scrubber, destination }), lines }
}
