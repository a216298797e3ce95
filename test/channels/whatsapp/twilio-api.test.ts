import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { messagingUrl, TwilioApi } from '../../../src/channels/whatsapp/twilio-api.js'
import { describeError, TwilioError } from '../../../src/channels/whatsapp/twilio-errors.js'
import { FakeTwilio } from './fake-twilio.js'
import { serveHttp } from '../../kit/loopback.js'

describe('The API of Twilio', () => {
  it('has a host for messaging, in its regions too, unless it is replaced by a fake', () => {
    const urls = [
      'https://api.twilio.com',
      'https://api.dublin.ie1.twilio.com',
      'http://127.0.0.1:80',
      'https://x.example',
    ]
    expect(urls.map((url) => messagingUrl(url))).toEqual([
      'https://messaging.twilio.com',
      'https://messaging.dublin.ie1.twilio.com',
      'http://127.0.0.1:80',
      'https://x.example',
    ])
  })

  it('waits as long as Twilio says, and asks again', async () => {
    const { api, twilio } = await open()
    twilio.fail('create', { kind: 'status', status: 429, code: 20429, retryAfterSeconds: 1 }, 2)
    const startedAt = Date.now()

    const { status } = await api.createMessage({ to: '+491511234567', from: twilio.number, body: 'hello' })

    expect([status, twilio.messages.length, Date.now() - startedAt >= 2000]).toEqual(['queued', 1, true])
  })

  it('does not wait for long', async () => {
    const { api, twilio } = await open()
    twilio.fail('fetch', { kind: 'status', status: 429, retryAfterSeconds: 3600 })
    await expect(api.message('SM1')).rejects.toMatchObject({ status: 429, code: 20429, isPermanent: false })
  })

  it('follows nobody elsewhere with its credentials', async () => {
    const asked: IncomingHttpHeaders[] = []
    const other = await listen((headers) => {
      asked.push(headers)
      return { status: 200, headers: {} }
    })
    const url = await listen(() => ({ status: 307, headers: { location: other } }))
    const api = new TwilioApi({ accountSid: 'AC1', auth: { user: 'AC1', password: 'secret' }, apiUrl: url })

    await expect(api.account()).rejects.toThrow(/could not be reached/)
    expect(asked).toEqual([])
  })

  it('is not something that answers with web pages', async () => {
    const url = await listen(() => ({ status: 200, headers: {} }))
    const api = new TwilioApi({ accountSid: 'AC1', auth: { user: 'AC1', password: 'secret' }, apiUrl: url })
    await expect(api.account()).rejects.toThrow(/is not Twilio: check twilioApiUrl/)
  })

  it('ends with the signal', async () => {
    const { api, twilio } = await open()
    twilio.fail('account', { kind: 'hang' })
    const stop = new AbortController()
    setTimeout(() => stop.abort(new Error('enough')), 50)
    await expect(api.account(stop.signal)).rejects.toThrow(/enough/)
  })
})

describe('An error of Twilio', () => {
  it.for<[number, number | undefined, boolean, boolean]>([
    [400, 21211, true, false],
    [400, 63018, false, false],
    [401, 20003, false, true],
    [403, undefined, false, true],
    [404, 20404, true, true],
    [429, 20429, false, false],
    [500, undefined, false, false],
  ])('with status %d and code %s', ([status, code, isPermanent, isRefusal]) => {
    const error = new TwilioError('', status, code)
    expect([error.isPermanent, error.isRefusal]).toEqual([isPermanent, isRefusal])
  })

  it('is reported in words, with its number', () => {
    expect([
      describeError(63016),
      describeError(1, 'Strange.'),
      describeError(undefined, ''),
      describeError(2),
    ]).toEqual([
      expect.stringMatching(/24-hour window.* \(Twilio error 63016\)\.$/),
      'Strange (Twilio error 1, https://www.twilio.com/docs/api/errors/1).',
      'Twilio gave no reason.',
      'Twilio gave no reason (Twilio error 2, https://www.twilio.com/docs/api/errors/2).',
    ])
  })
})

async function open(): Promise<{ api: TwilioApi; twilio: FakeTwilio }> {
  const twilio = await FakeTwilio.start()
  onTestFinished(() => twilio.stop())
  const { accountSid, authToken, apiUrl } = twilio
  return { twilio, api: new TwilioApi({ accountSid, auth: { user: accountSid, password: authToken }, apiUrl }) }
}

async function listen(
  answer: (headers: IncomingHttpHeaders) => { status: number; headers: Record<string, string> },
): Promise<string> {
  return serveHttp((request, response) => {
    const { status, headers } = answer(request.headers)
    response.writeHead(status, headers).end('<html>')
  })
}
