import fc from 'fast-check'
import { getExpectedTwilioSignature, validateRequest } from 'twilio/lib/webhooks/webhooks.js'
import { describe, expect, it } from 'vitest'
import { isSigned, signatureOf } from '../../../src/channels/whatsapp/signature.js'
import { fieldsOf } from './fake-twilio.js'

const token = fc.string({ minLength: 1, maxLength: 40 })
const url = fc
  .record({
    scheme: fc.constantFrom('http', 'https'),
    host: fc.constantFrom('gateway.example', '127.0.0.1', '[::1]', 'a.b.example'),
    port: fc.constantFrom('', ':80', ':443', ':8443'),
    path: fc.constantFrom('/', '/whatsapp/webhook', '/x/whatsapp/status/7'),
    query: fc.constantFrom('', '?a=1'),
  })
  .map(({ scheme, host, port, path, query }) => `${scheme}://${host}${port}${path}${query}`)
/** With repeated names, as a form may have. */
const form = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom('Body', 'body', 'From', 'A'), fc.string({ maxLength: 8 })), fc.string()))
  .map((pairs) => new URLSearchParams(pairs.filter(([name]) => name !== '__proto__')))

describe("Twilio's signature", () => {
  it("is what Twilio's own code makes of any URL and form", () => {
    fc.assert(
      fc.property(token, url, form, (authToken, calledUrl, fields) => {
        const own = signatureOf(authToken, calledUrl, fields)
        expect(own).toEqual(getExpectedTwilioSignature(authToken, calledUrl, fieldsOf(fields)))
      }),
      { numRuns: 500 },
    )
  })

  it("is taken whenever Twilio's own code takes it", () => {
    fc.assert(
      fc.property(token, url, url, form, (authToken, signedUrl, calledUrl, fields) => {
        const signature = signatureOf(authToken, signedUrl, fields)
        const expected = validateRequest(authToken, signature, calledUrl, fieldsOf(fields))
        expect(isSigned(authToken, signature, calledUrl, fields)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('is taken with the port that everybody leaves out, and without it', () => {
    const fields = new URLSearchParams({ Body: 'hello' })
    const signed = ['https://a.example:443/x', 'https://a.example/x'].map((one) => signatureOf('t', one, fields))
    expect(signed.map((signature) => isSigned('t', signature, 'https://a.example/x', fields))).toEqual([true, true])
  })

  it.for<[string, (parts: { token: string; url: string; fields: URLSearchParams }) => void]>([
    ['another token', (parts) => void (parts.token = 'other')],
    ['another URL', (parts) => void (parts.url += '/more')],
    ['a changed value', ({ fields }) => fields.set('Body', 'hell0')],
    ['a value more', ({ fields }) => fields.append('Body', 'hi')],
    ['a value less', ({ fields }) => fields.delete('From')],
  ])('is refused for %s', ([, change]) => {
    const fields = new URLSearchParams({ Body: 'hello', From: 'whatsapp:+491' })
    const parts = { token: 'secret', url: 'https://a.example/whatsapp/webhook', fields }
    const signature = signatureOf(parts.token, parts.url, fields)
    change(parts)
    expect(isSigned(parts.token, signature, parts.url, fields)).toEqual(false)
  })

  it.for(['', 'x', 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=', 'ä'.repeat(28)])('is refused as %j', (signature) => {
    expect(isSigned('secret', signature, 'https://a.example', new URLSearchParams())).toEqual(false)
  })
})
