import { describe, expect, it } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import type { BackendName } from '../../../src/backends/types.js'
import { parseReply } from '../../../src/turns/inbound-reply/parse-reply.js'
import { readCapture } from '../../backends/golden/captures.js'
import { adapterConfig } from '../../kit/adapter-config.js'

function backend(name: BackendName) {
  return createBackend(name, adapterConfig({ maxTurns: 0 }))
}

function parseCapture(name: BackendName, capture: string) {
  return parseReply(backend(name), String(readCapture(name, capture).stdout))
}

function usage(
  inputTokens: number,
  outputTokens: number,
  cacheReadTokens = 0,
  cacheWriteTokens = 0,
  reasoningTokens = 0,
) {
  const totalTokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, totalTokens }
}

describe('the output of an agent has an answer and details:', () => {
  it('Claude, one object', () => {
    expect(parseCapture('claude', 'plain.json')).toEqual({
      text: 'Hello from the mock.',
      meta: {
        isError: false,
        sessionId: expect.stringMatching(/^[\da-f-]{36}$/),
        usage: usage(11, 7, 5, 3),
        costUsd: expect.any(Number),
        metadata: { turns: 1, permissionDenials: [] },
      },
    })
  })

  it('Codex, a thread with a tool', () => {
    const { text, meta } = parseCapture('codex', 'tool-shell.jsonl')
    expect([text, meta?.isError, meta?.sessionId, meta?.usage]).toEqual([
      'The command ran. Final answer.',
      false,
      expect.stringMatching(/^[\da-f-]{36}$/),
      meta?.sessionUsage,
    ])
  })

  it('Gemini, one object over many lines', () => {
    expect(parseCapture('gemini', 'plain.json.json')).toEqual({
      text: 'Hello from the mock model. ünïcödé ✓',
      meta: {
        isError: false,
        sessionId: '0c3990f8-82df-46a6-93e9-b90aeb8de4bf',
        usage: usage(225, 25, 40, 0, 5),
      },
    })
  })

  it('OpenCode, events of a turn', () => {
    const { text, meta } = parseCapture('opencode', 'run-plain.stdout.jsonl')
    expect([text, meta?.sessionId]).toEqual([expect.any(String), expect.stringMatching(/^ses_/)])
  })

  it('Pi, events of a turn', () => {
    const { text, meta } = parseCapture('pi', 'plain.ndjson')
    expect([text, meta?.usage]).toEqual(['Hello from the mock.', usage(11, 7, 5, 3)])
  })

  it('any, plain text', () => {
    expect(parseReply(backend('pi'), '\n{"a": 1}\n\n  two  \n\n', 'text')).toEqual({
      text: '{"a": 1}\n\n  two  ',
      meta: { isError: false },
    })
  })
})

it('the files that an answer names stand beside it', () => {
  const stdout = JSON.stringify({ type: 'result', result: 'Here it is.\nMEDIA: out/chart.png' })
  expect(parseReply(backend('claude'), stdout)).toEqual({
    text: 'Here it is.',
    mediaUrls: ['out/chart.png'],
    meta: { isError: false, metadata: {} },
  })
})

it('a failure is reported as such', () => {
  expect(parseReply(backend('gemini'), '{"error":{"message":"No key"}}')).toEqual({
    text: 'No key',
    meta: { isError: true },
  })
})

it('other output has no text', () => {
  expect(parseReply(backend('claude'), 'Killed\n')).toEqual({ meta: { isError: true } })
})
