import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createScrubber, MARK } from '../../src/credentials/scrubber.js'
import { looseText, secret } from './arbitraries.js'

const SECRET = `p"a\\s&s w/ö+rd=\u{1F511}~'(*)!`

describe('a scrubber', () => {
  it.each([
    ['as it is', SECRET],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in JSON that is printed in JSON', JSON.stringify(JSON.stringify(SECRET).slice(1, -1)).slice(1, -1)],
    ['in JSON of ASCII alone', String.raw`p\"a\\s&s w/\u00f6+rd=\ud83d\udd11~'(*)!`],
    [
      'in JSON that is safe in HTML',
      JSON.stringify(SECRET)
        .slice(1, -1)
        .replace('&', String.raw`\u0026`),
    ],
    ['in a path', encodeURIComponent(SECRET)],
    ['in a query', new URLSearchParams({ '': SECRET }).toString().slice(1)],
    ['in an address with small hexadecimal digits', encodeURIComponent(SECRET).replace(/%../g, (c) => c.toLowerCase())],
    ['in base64', Buffer.from(SECRET).toString('base64')],
    ['in base64 for addresses', Buffer.from(SECRET).toString('base64url')],
    ['in HTML', String.raw`p&quot;a\s&amp;s w/ö+rd=🔑~&#39;(*)!`],
    ['in HTML of another library', String.raw`p&#34;a\s&amp;s w/ö+rd=🔑~&#x27;(*)!`],
    ['between single quotes of a shell', String.raw`p"a\s&s w/ö+rd=🔑~'\''(*)!`],
    ['between double quotes of a shell', String.raw`p\"a\\s&s w/ö+rd=🔑~'(*)!`],
    ['escaped for a shell', String.raw`p\"a\\s\&s\ w/ö+rd=🔑\~\'\(\*\)\!`],
    ['in hexadecimal digits', Buffer.from(SECRET).toString('hex')],
    ['in large ones', Buffer.from(SECRET).toString('hex').toUpperCase()],
    ['byte by byte', [...Buffer.from(SECRET)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')],
  ])('hides a secret %s', (_, form) => {
    expect(createScrubber([SECRET]).scrub(`<${form}>`)).toMatch(/^<\[secret\].?>$/)
  })

  it.each(['hunter22', 'hunter22\n', '\nhunter22', 'user:hunter22', 'me:hunter22 and more'])(
    'hides a secret in the base64 of %j except for the bits it shares with its neighbours',
    (text) => {
      const scrubbed = createScrubber(['hunter22']).scrub(Buffer.from(text).toString('base64'))
      const left = Buffer.from(scrubbed.replace(MARK, ''), 'base64').toString('latin1')
      expect([scrubbed.includes(MARK), /h|unter|2/.test(left)]).toEqual([true, false])
    },
  )

  it('hides base64 that is broken into lines', () => {
    const value = createHash('sha512').update('a long token').digest('hex')
    const encoded = Buffer.from(value).toString('base64')
    const broken = [76, 64].map((columns) => encoded.replace(new RegExp(`.{${columns}}(?=.)`, 'g'), '$&\n'))
    expect(broken.map((text) => createScrubber([value]).scrub(text))).toEqual([MARK, MARK])
  })

  it('hides the lines of a key wherever they stand, and leaves the words of other lines alone', () => {
    const lines = ['a', 'b', 'c'].map((text) => createHash('sha384').update(text).digest('base64'))
    const file = ['-----BEGIN KEY-----', ...lines, '-----END KEY-----', ''].join('\n')
    const shown = file.replace(/^/gm, '  1→')
    expect(createScrubber([file]).scrub(shown)).toBe(
      ['-----BEGIN KEY-----', MARK, MARK, MARK, '-----END KEY-----', ''].join('\n').replace(/^/gm, '  1→'),
    )
  })

  it('hides a value with the white space around it and without', () => {
    expect(createScrubber([' token-1\n']).scrub('a token-1, "token-1" and token-1\n')).toBe(
      `a ${MARK}, "${MARK}" and${MARK}`,
    )
  })

  it('hides overlapping secrets completely, and marks neighbours one by one', () => {
    const scrubber = createScrubber(['abcdef', 'defghi', 'ghijkl', 'cdefgh'])
    expect([scrubber.scrub('<abcdefghijkl>'), scrubber.scrub('abcdefabcdef'), scrubber.scrub('abcdeghijk')]).toEqual([
      `<${MARK}>`,
      MARK + MARK,
      'abcdeghijk',
    ])
  })

  it('hides the longer of two that begin alike', () => {
    expect(createScrubber(['token-1', 'token-123456']).scrub('token-123456 token-12')).toBe(`${MARK} ${MARK}2`)
  })

  it('knows values from when they are added, and forgets none', () => {
    const scrubber = createScrubber()
    const before = scrubber.scrub('first-value second-value')
    scrubber.add(['first-value'])
    scrubber.add(['second-value', 'first-value'])
    expect([before, scrubber.scrub('first-value second-value')]).toEqual([
      'first-value second-value',
      `${MARK} ${MARK}`,
    ])
  })

  it('does not look for values that are too short', () => {
    const scrubber = createScrubber(['', 'a', '12345', '  a  '])
    expect([scrubber.forms.size, scrubber.scrub('a 12345')]).toEqual([0, 'a 12345'])
  })

  it('hides any secret in any text', () => {
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.array(looseText),
        fc.nat(),
        (values, texts, at) => {
          const value = values[at % values.length] ?? ''
          const scrubber = createScrubber(values)
          const scrubbed = scrubber.scrub(texts.join(value))
          const left = [...scrubber.forms].filter((form) => scrubbed.split(MARK).some((text) => text.includes(form)))
          expect([left, scrubbed.includes(MARK)]).toEqual([[], texts.length > 1])
        },
      ),
    )
  })

  it('hides any secret in base64 of any bytes around it', () => {
    const bytes = fc.uint8Array({ maxLength: 9 })
    fc.assert(
      fc.property(secret, bytes, bytes, fc.constantFrom('base64', 'base64url'), (value, before, after, encoding) => {
        const encoded = Buffer.concat([before, Buffer.from(value), after]).toString(encoding)
        const scrubbed = createScrubber([value]).scrub(encoded)
        const decoded = Buffer.from(scrubbed.replaceAll(MARK, ''), 'base64')
        // Besides the bytes around it, at most the edges of the first and the last byte.
        expect([scrubbed.includes(MARK), decoded.length <= before.length + after.length + 2]).toEqual([true, true])
      }),
    )
  })

  it('leaves a text without secrets as it is', () => {
    fc.assert(
      fc.property(fc.array(secret, { maxLength: 4 }), looseText, (values, text) => {
        const scrubber = createScrubber(values)
        fc.pre([...scrubber.forms].every((form) => !text.includes(form)))
        expect(scrubber.scrub(text)).toBe(text)
      }),
    )
  })

  it('keeps JSON valid, whatever the secret', () => {
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1 }), fc.jsonValue(), (values, value) => {
        const scrubbed = createScrubber(values).scrubJson(JSON.stringify({ [values[0] ?? '']: values, value }))
        expect(JSON.parse(scrubbed)).toMatchObject({ [MARK]: values.map(() => MARK) })
      }),
    )
  })

  it('hides a secret that is a number in JSON', () => {
    expect(createScrubber(['123456']).scrubJson('{"pin":123456,"n":12,"name":"n\\n1234567"}')).toBe(
      `{"pin":"${MARK}","n":12,"name":"n\\n${MARK}7"}`,
    )
  })

  it('does not mistake an escape in JSON for a secret', () => {
    expect(createScrubber(['nabcdef']).scrubJson(String.raw`{"a":"\nabcdef"}`)).toBe(String.raw`{"a":"\nabcdef"}`)
  })

  it('hides a secret after millions of escapes in JSON', () => {
    const lines = '\n"'.repeat(2_000_000)
    const scrubbed = createScrubber(['a secret']).scrubJson(JSON.stringify({ text: `${lines}a secret`, n: -1.5e-7 }))
    expect(scrubbed === JSON.stringify({ text: lines + MARK, n: -1.5e-7 })).toBe(true)
  })

  it('finds one of thousands of secrets in a long text', () => {
    const values = Array.from({ length: 2_000 }, (_, index) => createHash('sha256').update(String(index)).digest('hex'))
    const words = 'The quick brown fox jumps over the lazy dog. '.repeat(20_000)
    expect(createScrubber(values).scrub(words + values[1_234] + words) === words + MARK + words).toBe(true)
  })
})
