import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { TypedLines } from '../../../src/cli/chat/typed-lines.js'
import { until } from '../../kit/waiting.js'

it.each([
  ['one message of what was there at once', ['a', '', '  b\\', 'c'], ['a\n\n  b\\\nc']],
  ['a command of its own that stands first', ['/queue', '/stop', 'a', '/quit'], ['/queue', '/stop', 'a\n/quit']],
  ['a command alone', ['/quit'], ['/quit']],
])('makes %s', async (_, lines, messages) => {
  const taken: string[] = []
  const typed = new TypedLines((text) => taken.push(text))
  for (const line of lines) typed.push(line)
  await until(() => taken.length === messages.length, 'the messages')
  expect(taken).toEqual(messages)
})

it('waits for the line that follows a backslash, and for no other', async () => {
  const taken: string[] = []
  const typed = new TypedLines((text) => taken.push(text))
  typed.push('a')
  await until(() => taken.length === 1, 'the first message')
  typed.push('b\\')
  await wait(20)
  typed.push('c')
  await until(() => taken.length === 2, 'the second message')
  typed.push('d\\')
  typed.end()
  expect(taken).toEqual(['a', 'b\nc', 'd\\'])
})

it('takes the parts of a long paste together', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const taken: string[] = []
  const typed = new TypedLines((text) => taken.push(text))
  typed.push('a')
  typed.push('b')
  await until(() => vi.getTimerCount() === 1, 'a wait for more')
  typed.push('c')
  await until(() => vi.getTimerCount() === 1, 'another wait for more')
  const before = [...taken]
  vi.advanceTimersByTime(50)
  expect([before, taken]).toEqual([[], ['a\nb\nc']])
})
