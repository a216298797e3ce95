import { describe, expect, it } from 'vitest'
import {
  classifyFailure,
  type FailureSign,
  findSign,
  parseRetryAt,
  readableMessage,
  reasonOf,
} from '../../../src/backends/engine/failures.js'
import { NOW } from '../fake-cli.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

describe('a failure', () => {
  it.each([
    ['API Error: Request rejected (429) · Rate limited', 'rate_limit'],
    ['exceeded retry limit, last status: 429 Too Many Requests', 'rate_limit'],
    ['Quota exceeded. Check your plan and billing details.', 'rate_limit'],
    ['[API Error: Resource has been exhausted (e.g. check quota).]', 'rate_limit'],
    ['RESOURCE_EXHAUSTED', 'rate_limit'],
    ['Rate limit reached for this model', 'rate_limit'],
    ['Too many requests', 'rate_limit'],
    ["You've hit your usage limit. Upgrade to Pro or try again in 3 days.", 'rate_limit'],
    ["You've hit your limit · resets 3pm", 'rate_limit'],
    ['Claude AI usage limit reached|1760000000', 'rate_limit'],
    ['429 {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}', 'rate_limit'],
    ['unexpected status 401 Unauthorized: Incorrect API key provided', 'auth'],
    ['Failed to authenticate. API Error: 403 forbidden', 'auth'],
    ['Not logged in · Please run /login', 'auth'],
    ['Please sign in again', 'auth'],
    ['OAuth authentication is currently not supported', 'auth'],
    ['API key not valid. Please pass a valid API key.', 'auth'],
    ['API Error: 500 Internal server error', 'exit'],
    ['Port 14290 is in use', 'exit'],
    ['read 4010 bytes', 'exit'],
    ['', 'exit'],
  ])('that says "%s" is %s', (message, reason) => {
    expect(classifyFailure(message, [])).toBe(reason)
  })

  it("is recognised by the backend's own patterns first", () => {
    const signs: FailureSign[] = [
      [/no such thread/i, 'session_lost'],
      [/thread/i, 'refused'],
    ]
    expect(classifyFailure('401: No such thread', signs)).toBe('session_lost')
  })

  it('has the advice of the first matching pattern', () => {
    const signs: FailureSign[] = [
      [/b/, 'auth', 'First.'],
      [/a/, 'refused', 'Second.'],
    ]
    expect(findSign('a b', signs)).toEqual([/b/, 'auth', 'First.'])
  })

  it.each([
    [401, 'No.', 'auth'],
    [403, 'No.', 'auth'],
    [429, 'No.', 'rate_limit'],
    [400, 'No.', 'refused'],
    [422, 'No.', 'refused'],
    [400, 'prompt is too long: 200001 tokens > 200000 maximum', 'prompt_too_long'],
    [400, 'The model `nope` does not exist', 'model_unknown'],
    [400, 'API key not valid. Please pass a valid API key.', 'auth'],
    [500, 'No.', 'exit'],
  ])('with the status %s and the words %j is %s', (status, message, reason) => {
    expect(reasonOf({ message, status }, [])).toBe(reason)
  })

  it('is what the agent calls it, whatever its status and words are', () => {
    expect(reasonOf({ message: 'rate limit', status: 401, reason: 'refused' }, [])).toBe('refused')
  })
})

describe('a rate limit is over', () => {
  it.each([
    ['Claude AI usage limit reached|1760000000', 1_760_000_000 * SECOND],
    ['try again in 20s', NOW + 20 * SECOND],
    ['Please try again in 1.242s.', NOW + 1242],
    ['Please try again in 250ms.', NOW + 250],
    ['retry after 30 seconds', NOW + 30 * SECOND],
    ['Please retry in 41.5s.', NOW + 41.5 * SECOND],
    ['try again in 5 minutes', NOW + 5 * MINUTE],
    ['try again in 7 hr 30 min', NOW + 7.5 * HOUR],
    ['try again in 2 hours and 5 minutes', NOW + 2 * HOUR + 5 * MINUTE],
    ['Try again in 3 days, 4 hours, 10 minutes.', NOW + 3 * DAY + 4 * HOUR + 10 * MINUTE],
    ['resets in 1 d 1 h', NOW + 25 * HOUR],
    ['Please try again in 6m0s.', NOW + 6 * MINUTE],
    ['Please try again in 1h2m3s.', NOW + HOUR + 2 * MINUTE + 3 * SECOND],
    ['Your quota will reset after 23h59m12s.', NOW + 23 * HOUR + 59 * MINUTE + 12 * SECOND],
    ['5-hour limit reached ∙ resets 3pm', at(15)],
    ['resets at 15:30', at(15, 30)],
    ['try again at 3:45 PM.', at(15, 45)],
    ['resets 12:30 pm', at(12, 30)],
    ['resets 11am', at(11) + DAY],
    ['resets 12am', at(0) + DAY],
    ['resets at 12:00', at(12) + DAY],
  ])('when it says "%s"', (message, retryAt) => {
    expect(parseRetryAt(message, NOW)).toBe(retryAt)
  })

  it.each([
    'Rate limited',
    'usually temporary — try again in a moment',
    'Please wait and try again later.',
    'The model did not answer, retry 2 of 10.',
    'try again in 0 seconds',
    'try again in 2 months',
  ])('nobody knows when after "%s"', (message) => {
    expect(parseRetryAt(message, NOW)).toBeUndefined()
  })

  /** Today, in local time, as the CLIs print it. */
  function at(hour: number, minute = 0): number {
    return new Date(NOW).setHours(hour, minute, 0, 0)
  }
})

describe('what a person reads of an error', () => {
  it.each([
    ['Connection error.', 'Connection error.'],
    ['{"error":{"message":"Bad thing in request.","code":"bad"}}', 'Bad thing in request.'],
    ['401 {"type":"error","error":{"message":"invalid x-api-key"}}', '401 invalid x-api-key'],
    ['[API Error: {"error":{"code":500,"message":"It broke."}}]', '[API Error: It broke.]'],
    ['expected {a} or {b}', 'expected {a} or {b}'],
    ['{"error":"no object"}', '{"error":"no object"}'],
    ['{"error":{"message":42}}', '{"error":{"message":42}}'],
    ['{"error":null}', '{"error":null}'],
    ['', ''],
  ])('of %s is %s', (message, readable) => {
    expect(readableMessage(message)).toBe(readable)
  })
})
