import { describe, expect, it } from 'vitest'
import { conversationPath } from '../../src/archive/conversation-path.js'

const HOSTILE = [
  '',
  '.',
  '..',
  '../../etc/passwd',
  '/etc/passwd',
  String.raw`C:\Windows`,
  'a\0b',
  'line\nbreak',
  '\u202Egnp.exe',
  '-rf',
  '~',
  '日本語',
  '👍🏽',
  'é',
  'e\u0301',
  'x'.repeat(10_000),
  `${'x'.repeat(10_000)}y`,
  'a/b',
  'a-b',
  'a b',
  'Room',
  'room',
]

describe('conversationPath', () => {
  it('keeps a recognisable name', () => {
    expect(conversationPath('discord', 'guild/123.thread_4')).toMatch(/^discord\/guild-123\.thread_4-[0-9a-f]{16}$/)
  })

  it.each(HOSTILE)('makes two plain names of %j', (text) => {
    const name = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,80}[A-Za-z0-9_])?$/
    const parts = [...conversationPath(text, text).split('/'), ...conversationPath('chat', text).split('/')]
    expect(parts).toEqual([1, 2, 3, 4].map(() => expect.stringMatching(name)))
  })

  it('gives no two conversations the same path, even if case is ignored', () => {
    const pairs = HOSTILE.flatMap((address) => [...HOSTILE.map((channel) => [channel, address] as const)])
    const paths = pairs.map(([channel, address]) => conversationPath(channel, address).toLowerCase())
    expect(new Set(paths).size).toBe(pairs.length)
  })
})
