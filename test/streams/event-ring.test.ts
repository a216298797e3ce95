import { describe, expect, it } from 'vitest'
import { EventRing } from '../../src/streams/event-ring.js'
import type { NumberedEvent } from '../../src/streams/numbered-event.js'

function events(first: number, count: number, content = ''): NumberedEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    number: first + index,
    event: { type: 'notice', content, timestamp: 0 },
  }))
}

describe('a ring of events', () => {
  it('has nothing after its head, and knows what it no longer has', () => {
    const ring = new EventRing(5)
    expect([ring.after(4), ring.after(5), ring.after(6)]).toEqual([undefined, [], []])
  })

  it('returns what comes after a number', () => {
    const ring = new EventRing(5)
    ring.append(events(6, 3))
    expect([ring.after(5), ring.after(7), ring.after(8)]).toEqual([events(6, 3), events(8, 1), []])
  })

  it('lets go of the oldest when there are many', () => {
    const ring = new EventRing(0)
    ring.append(events(1, 5_000))
    expect([ring.after(2_999), ring.after(3_000)?.at(0)?.number]).toEqual([undefined, 3_001])
  })

  it('lets go of the oldest when they are large', () => {
    const ring = new EventRing(0)
    for (let number = 1; number <= 100; number += 1) ring.append(events(number, 1, 'x'.repeat(100_000)))
    expect([ring.after(90), ring.after(91)?.length]).toEqual([undefined, 1])
  })

  it('keeps the newest, however large it is', () => {
    const ring = new EventRing(0)
    ring.append(events(1, 1, 'x'.repeat(3_000_000)))
    expect(ring.after(0)?.length).toBe(1)
  })

  it('gives a bounded part at a time', () => {
    const ring = new EventRing(0)
    ring.append([...events(1, 1_000), ...events(1_001, 10, 'x'.repeat(30_000))])
    expect([ring.after(0)?.length, ring.after(1_000)?.length]).toEqual([200, 2])
  })
})
