/** Checks shared by the cases, and how they read what an agent or the model received. */
import assert from 'node:assert/strict'
import type { AgentResult, TokenUsage } from '../src/backends/types.js'
import type { Failure } from './expectations.js'
import type { ModelRequest } from './protocols/types.js'
import type { Stage, Turn } from './stage.js'

export function continuationOf({ result: { sessionId, sessionUsage } }: Turn) {
  assert.ok(sessionId, 'the turn has a session')
  return { sessionId, ...(sessionUsage && { sessionUsage }) }
}

export function assertAnswer(result: AgentResult, text: string, usage: TokenUsage): void {
  assert.deepEqual(
    { failure: result.failure, finalOutput: result.finalOutput, usage: result.usage },
    { failure: undefined, finalOutput: text, usage },
  )
}

export function assertFailure({ model }: Stage, { failure }: AgentResult, expected: Failure): void {
  const { host } = new URL(model.url)
  const general = (text = '') => text.replaceAll(host, '{model}')
  const report = general(failure?.report)
  const isAsExpected = expected.report instanceof RegExp && expected.report.test(report)
  assert.deepEqual(
    { reason: failure?.reason, message: general(failure?.message), report: isAsExpected ? expected.report : report },
    { ...expected },
  )
}

/** How often each text occurs in what the model received besides the conversation. */
export function assertSystem(request: ModelRequest | undefined, times: Record<string, number>): void {
  const seen = Object.keys(times).map((text) => [text, (request?.system.split(text).length ?? 0) - 1])
  assert.deepEqual(Object.fromEntries(seen), times)
}

/** Without anything that varies from run to run. */
export function toolEvents({ events }: Turn): object[] {
  return events.flatMap((event) => {
    if (event.type !== 'tool_use' && event.type !== 'tool_result') return []
    const { timestamp: _timestamp, toolId: _toolId, metadata: _metadata, ...rest } = event
    return [rest]
  })
}

export function textOf({ events }: Turn): string {
  return events.map((event) => (event.type === 'output' ? event.content : '')).join('')
}

export function lastText(request: ModelRequest | undefined, role: 'user' | 'tool'): string {
  return request?.messages.findLast((message) => message.role === role)?.text ?? ''
}

export function lastUserText(request: ModelRequest | undefined): string {
  return lastText(request, 'user')
}

export function times(factor: number, usage: TokenUsage): TokenUsage {
  return {
    inputTokens: factor * usage.inputTokens,
    outputTokens: factor * usage.outputTokens,
    cacheReadTokens: factor * usage.cacheReadTokens,
    cacheWriteTokens: factor * usage.cacheWriteTokens,
    reasoningTokens: factor * usage.reasoningTokens,
    totalTokens: factor * usage.totalTokens,
  }
}

export function describe({ reason, message }: Failure): string {
  return `${reason}: ${message}`
}

export function quote(text: string): string {
  // A zero-width space would be invisible.
  return JSON.stringify(text).replaceAll('\u200B', '\\u200b')
}
