// OpenCode 1.18.33. How each was captured is in test/fixtures/opencode/INDEX.md.

import { NOW } from '../fake-cli.js'
import type { ExpectedCaptures } from './captures.js'

export const openCodeCaptures: ExpectedCaptures = {
  // The same error is reported twice.
  'run-error-400.stdout.jsonl': {
    events: ['started <session>', 'error prompt_too_long'],
    session: 'ses_e1f19cab2ffe0enWyATbMlHU7Z',
    failure: { reason: 'prompt_too_long', message: 'maximum context length exceeded mock', report: 'message' },
  },
  'run-error-401.stdout.jsonl': {
    events: ['started <session>', 'error auth'],
    session: 'ses_e1f19e3adfferG9NaN9yyIascL',
    failure: { reason: 'auth', message: 'Incorrect API key provided: mock', report: 'message' },
  },
  'run-error-e429.stdout.jsonl': {
    events: ['started <session>', 'error rate_limit'],
    session: 'ses_e1f183898ffesVKde0mmbS8C9S',
    failure: { reason: 'rate_limit', message: 'Rate limit reached mock', report: 'stderr' },
  },
  // The response had `retry-after: 1`.
  'run-error-e429ra.stdout.jsonl': {
    events: ['started <session>', 'error rate_limit'],
    session: 'ses_e1f183292ffeW4nUE7xdJ0Bx44',
    failure: { reason: 'rate_limit', message: 'Rate limit reached mock', report: 'stderr', retryAt: NOW + 1000 },
  },
  'run-error-e500.stdout.jsonl': {
    events: ['started <session>', 'error exit'],
    session: 'ses_e1f18336fffeSdSW1Pd5xLKf1m',
    failure: { reason: 'exit', message: 'mock internal failure', report: 'stderr' },
  },
  // Captured with logging on: only the log has the cause.
  'run-error-hang.stdout.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message:
        'timestamp=2026-11-15T20:36:05.441Z level=INFO run=3b4eaa92 message="llm runtime selected" llm.runtime=ai-sdk llm.provider=mock llm.model=hang',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'run-error-server-down.stdout.jsonl': {
    events: ['started <session>', 'error exit'],
    session: 'ses_e1f18365bffeSy32mSh92mez9S',
    failure: {
      reason: 'exit',
      message: 'Cannot connect to API: Unable to connect. Is the computer able to access the url?',
      report: 'stderr',
    },
  },
  'run-error-unknown-model.stdout.jsonl': {
    events: ['started <session>', 'error exit'],
    session: 'ses_e1f19b488ffeNRwWIc6tr2F5M0',
    failure: { reason: 'exit', message: 'Unexpected server error. Check server logs for details.', report: 'message' },
  },
  'run-error-unknown-provider.stdout.jsonl': {
    events: ['started <session>', 'error exit'],
    session: 'ses_e1f199b25ffeW8k0bplABbmVTt',
    failure: { reason: 'exit', message: 'Unexpected server error. Check server logs for details.', report: 'message' },
  },
  'run-error-garbled-database.stdout.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message:
        'database disk image is malformed (The OpenCode database is damaged. Stop everything that uses it, and move opencode.db out of its data directory. Its sessions are lost.)',
      report: { text: 'Error: Unexpected error\n\ndatabase disk image is malformed\n' },
    },
    parsed: 'Failed to parse CLI output',
  },
  'run-error-garbled-session.stdout.jsonl': {
    request: { sessionId: 'ses_e13d33bfbffeWaIJUibP3IJzfg' },
    events: ['started ses_e13d33bfbffeWaIJUibP3IJzfg', 'error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Unexpected server error. Check server logs for details.',
      report: 'stderr',
    },
    parsedSession: 'ses_e13d33bfbffeWaIJUibP3IJzfg',
  },
  'run-error-unknown-session.stdout.jsonl': {
    request: { sessionId: 'ses_unknown' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Error: Session not found',
      report: { text: 'Error: Session not found\n' },
    },
    parsed: 'Failed to parse CLI output',
  },
  'run-fork.stdout.jsonl': {
    events: ['started <session>', 'output "Hello from mock ✅"'],
    session: 'ses_e1f17495fffeBVSXwrP3QWtI8h',
    answer: 'Hello from mock ✅',
    usage: '100 in + 7 out (3 reasoning) + 20 read + 0 written = 127',
    costUsd: 0.000114,
  },
  'run-plain.stdout.jsonl': {
    events: ['started <session>', 'output "Hello from mock ✅"'],
    session: 'ses_e1f1a9d60ffel6WX6OnCmK9A2b',
    answer: 'Hello from mock ✅',
    usage: '100 in + 7 out (3 reasoning) + 20 read + 0 written = 127',
    costUsd: 0.000114,
  },
  'run-reasoning-thinking.stdout.jsonl': {
    events: ['started <session>', 'thinking "I think hard."', 'output "Reasoned answer."'],
    session: 'ses_e1f1a592affeFNsGl6aAFPiQEh',
    answer: 'Reasoned answer.',
    usage: '100 in + 7 out (3 reasoning) + 20 read + 0 written = 127',
    costUsd: 0.000114,
  },
  'run-resume.stdout.jsonl': {
    request: { sessionId: 'ses_e1f17f4b9ffelCzat9Tujj1jhM' },
    events: ['started <session>', 'output "Hello from mock ✅"'],
    session: 'ses_e1f17f4b9ffelCzat9Tujj1jhM',
    answer: 'Hello from mock ✅',
    usage: '100 in + 7 out (3 reasoning) + 20 read + 0 written = 127',
    costUsd: 0.000114,
  },
  'run-tool-fail.stdout.jsonl': {
    events: [
      'started <session>',
      'tool_use #1 bash {"command":"echo to-stderr >&2; exit 3","description":"Fail"}',
      'tool_result #1 bash failed {"exitCode":3} "to-stderr\\n"',
      'output "Hello from mock ✅"',
    ],
    session: 'ses_e1f1a6a4bffew38qWxoaQIS87W',
    answer: 'Hello from mock ✅',
    usage: '200 in + 14 out (6 reasoning) + 40 read + 0 written = 254',
    costUsd: 0.000228,
  },
  'run-tool.stdout.jsonl': {
    events: [
      'started <session>',
      'output "Let me run it. "',
      'tool_use #1 bash {"command":"echo mock-tool-$((40+2))","description":"Echo a value"}',
      'tool_result #1 bash ok {"exitCode":0} "mock-tool-42\\n"',
      'output "\\n\\nHello from mock ✅"',
    ],
    session: 'ses_e1f1a8888ffexVGXQvXc2CQD7a',
    answer: 'Hello from mock ✅',
    usage: '200 in + 14 out (6 reasoning) + 40 read + 0 written = 254',
    costUsd: 0.000228,
  },
}
