import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ERROR_CODES, GatewayError, messageOf } from '../src/errors.js'

describe('ERROR_CODES', () => {
  it('are the codes that docs/errors.md explains, with their status', () => {
    const page = readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| *`(\w+)` *\| *(\d+) *\|/gm)].map(([, code = '', status]) => [
      code,
      { status: Number(status) },
    ])
    expect(Object.fromEntries(rows)).toEqual(ERROR_CODES)
  })
})

describe('GatewayError', () => {
  it('carries its code, message and cause', () => {
    const cause = new Error('why')
    const { name, code, message, cause: carried } = new GatewayError('config_invalid', 'what', { cause })
    expect({ name, code, message, carried }).toEqual({
      name: 'GatewayError',
      code: 'config_invalid',
      message: 'what',
      carried: cause,
    })
  })
})

describe('messageOf', () => {
  it('reads whatever was thrown', () => {
    const thrown = [new Error('an error'), 'a string', undefined, { toString: () => 'an object' }]
    expect(thrown.map(messageOf)).toEqual(['an error', 'a string', 'undefined', 'an object'])
  })
})
