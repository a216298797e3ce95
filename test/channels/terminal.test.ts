import { expect, it } from 'vitest'
import { TerminalChannel } from '../../src/channels/terminal.js'
import type { LiveEvent, OutgoingReply } from '../../src/channels/types.js'

const REPLY: OutgoingReply = {
  idempotencyKey: 'k',
  address: 'here',
  text: 'Hi',
  notes: [],
  isError: false,
  createdAt: 1,
  attempt: 1,
}
const EVENT: LiveEvent = {
  address: 'here',
  messageId: 'm',
  platformId: 'p',
  runId: 'r',
  seq: 1,
  event: { type: 'output', content: 'Hi', stream: 'stdout', timestamp: 0 },
}

it('accepts a reply when nobody watches: it is stored', async () => {
  await expect(new TerminalChannel().send(REPLY)).resolves.toBeUndefined()
})

it('shows events and replies to everybody who watches their conversation, and to nobody else', async () => {
  const channel = new TerminalChannel()
  const [first, second, elsewhere] = [viewer(channel, 'here'), viewer(channel, 'here'), viewer(channel, 'there')]
  channel.show(EVENT)
  await channel.send(REPLY)
  expect([first.seen, second.seen, elsewhere.seen]).toEqual([[EVENT, REPLY], [EVENT, REPLY], []])
})

it('forgets watchers who have left', async () => {
  const channel = new TerminalChannel()
  const { seen, leave } = viewer(channel, 'here')
  leave()
  channel.show(EVENT)
  await channel.send(REPLY)
  expect(seen).toEqual([])
})

it('gets a reply again that could not be shown', async () => {
  const channel = new TerminalChannel()
  channel.attach('here', {
    onEvent: () => {},
    onRetry: () => {},
    onReply: () => Promise.reject(new Error('The disk is full')),
  })
  await expect(channel.send(REPLY)).rejects.toThrow('The disk is full')
})

it('closes its socket with close, not with stop', async () => {
  let isOpen = true
  const channel = new TerminalChannel(async () => {
    isOpen = false
  })
  await channel.stop()
  const wasOpen = isOpen
  await channel.close()
  expect([wasOpen, isOpen]).toEqual([true, false])
})

function viewer(channel: TerminalChannel, address: string) {
  const seen: unknown[] = []
  const leave = channel.attach(address, {
    onEvent: (event) => seen.push(event),
    onRetry: (next) => seen.push(next),
    onReply: async (reply) => void seen.push(reply),
  })
  return { seen, leave }
}
