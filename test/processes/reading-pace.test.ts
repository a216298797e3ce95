import { describe, expect, it } from 'vitest'
import { ReadingPace } from '../../src/processes/reading-pace.js'

const SMALL = 300
const LARGE = 60_000

describe('a trickle', () => {
  it('is a long row of small chunks, however short an answer may be', () => {
    expect(trickles(Array.from({ length: 40 }, () => [0.1, SMALL]))).toEqual([
      ...Array.from({ length: 29 }, () => false),
      ...Array.from({ length: 11 }, () => true),
    ])
  })

  it('goes on with what gathers while it is left alone', () => {
    expect(trickles([...beginning(), [0.1, 8_000, 2], [1, 8_000, 9]]).slice(-2)).toEqual([true, true])
  })

  it('is over when nothing comes for a while', () => {
    expect(trickles([...beginning(), [4, SMALL], [0.1, SMALL]]).slice(-2)).toEqual([false, false])
  })

  it('is over with a chunk that nearly fills a pipe', () => {
    expect(trickles([...beginning(), [0.1, LARGE], [0.1, SMALL]]).slice(-2)).toEqual([false, false])
  })
})

type Chunk = [afterMs: number, bytes: number, pausedMs?: number]

function beginning(): Chunk[] {
  return Array.from({ length: 30 }, () => [0.1, SMALL])
}

function trickles(chunks: Chunk[]): boolean[] {
  const pace = new ReadingPace()
  let at = 1_000
  pace.isTrickle(SMALL, at, at)
  return chunks.map(([afterMs, bytes, pausedMs]) => {
    if (pausedMs !== undefined) pace.resumed((at += pausedMs))
    const startedAt = at + afterMs
    at = startedAt + 0.05
    return pace.isTrickle(bytes, startedAt, at)
  })
}
