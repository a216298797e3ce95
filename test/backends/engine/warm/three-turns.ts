import { expect } from 'vitest'
import type { Heard } from './warm-stage.js'

/** The record of one of several turns in a process. */
export function told({ kinds, result }: Pick<Heard, 'kinds' | 'result'>): unknown[] {
  return [kinds, result.finalOutput, result.sessionId, result.usage?.totalTokens, result.costUsd]
}

/** From `*-live-turns.jsonl`: a plain answer, one with a tool and two model calls, and another plain one. */
export function threeTurns(sessionId: string): unknown[] {
  const plain = ['started', 'output', 'complete']
  const withTool = ['started', 'tool_use', 'tool_result', 'output', 'complete']
  const cost = 0.000_474_75
  return [
    [plain, 'Answer to one', sessionId, 135, expect.closeTo(cost, 10)],
    [withTool, 'Tool done', sessionId, 270, expect.closeTo(2 * cost, 10)],
    [plain, 'Answer to three', sessionId, 135, expect.closeTo(cost, 10)],
  ]
}
