// Pi 0.73.1, unless the name says another version. How each was captured is in test/fixtures/pi/INDEX.md.

import type { ExpectedCaptures } from './captures.js'

export const piCaptures: ExpectedCaptures = {
  'empty-answer.ndjson': {
    events: ['started <session>'],
    session: '01a1e0f1-233d-73a2-b05e-53fcbbbd568d',
    answer: '',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'empty-prompt.ndjson': {
    events: ['started <session>', 'error no_result'],
    session: '01a1e0f4-9b00-7779-812d-f0e37ba10cae',
    failure: {
      reason: 'no_result',
      message: 'Pi ended without an answer.',
      report: { whole: 'Failed to parse CLI output' },
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-400.ndjson': {
    events: ['started <session>', 'error refused'],
    session: '01a1e0f1-0d8b-738d-8dd5-485509e30c9e',
    failure: {
      reason: 'refused',
      message: '400 prompt is bad',
      report: {
        whole:
          '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is bad"},"request_id":"req_mock"}',
      },
    },
    parsed:
      '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is bad"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-401.ndjson': {
    events: ['started <session>', 'error auth'],
    session: '01a1e0f1-1284-76bd-81a8-56ca214cfd33',
    failure: {
      reason: 'auth',
      message: '401 invalid x-api-key',
      report: {
        whole:
          '401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_mock"}',
      },
    },
    parsed:
      '401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-429-retried.ndjson': {
    events: [
      'started <session>',
      ...retries(
        '429 {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"},"request_id":"req_mock"}',
      ),
      'error rate_limit',
    ],
    session: '01a1e0f2-05e4-7200-acd2-40b03a5f9027',
    failure: {
      reason: 'rate_limit',
      message: '429 Rate limited',
      report: {
        whole:
          '429 {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"},"request_id":"req_mock"}',
      },
    },
    parsed: '429 {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-500-retried.ndjson': {
    events: [
      'started <session>',
      ...retries(
        '500 {"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_mock"}',
      ),
      'error exit',
    ],
    session: '01a1e0f2-05f4-7360-a3ca-f5724f9cb520',
    failure: {
      reason: 'exit',
      message: '500 Internal server error',
      report: {
        whole:
          '500 {"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_mock"}',
      },
    },
    parsed:
      '500 {"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-529-retried.ndjson': {
    events: [
      'started <session>',
      ...retries(
        '529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_mock"}',
      ),
      'error exit',
    ],
    session: '01a1e0f2-64c4-7648-a29d-a44cbbba1df8',
    failure: {
      reason: 'exit',
      message: '529 Overloaded',
      report: {
        whole:
          '529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_mock"}',
      },
    },
    parsed: '529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-no-key.ndjson': {
    events: ['started <session>', 'error auth'],
    session: '01a1e0f2-2d19-7478-9f8f-9d6af6f63cb0',
    failure: { reason: 'auth', message: 'No API key found for anthropic.', report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'error-prompt-too-long.ndjson': {
    events: [
      'started <session>',
      'notice The agent is compacting the conversation (overflow).',
      'error prompt_too_long',
    ],
    session: '01a1e0f1-1d0c-75a9-a265-17b7157e09b0',
    failure: {
      reason: 'prompt_too_long',
      message: '400 prompt is too long: 250000 tokens > 200000 maximum',
      report: {
        whole:
          '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"},"request_id":"req_mock"}',
      },
    },
    parsed:
      '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-refusal.ndjson': {
    events: ['started <session>', 'error exit'],
    session: '01a1e0f1-2eb7-758b-a5a0-b34b850766e2',
    failure: { reason: 'exit', message: 'An unknown error occurred' },
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'error-server-down.ndjson': {
    events: ['started <session>', ...retries('Connection error.'), 'error exit'],
    session: '01a1e0f7-36e7-7666-bf36-3b513c668122',
    failure: { reason: 'exit', message: 'Connection error.' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-unknown-model.ndjson': {
    events: ['started <session>', 'error model_unknown'],
    session: '01a1e0f2-1899-73a0-b7df-2b7e6b744449',
    failure: {
      reason: 'model_unknown',
      message: '404 model: nope-model',
      report: {
        whole:
          '404 {"type":"error","error":{"type":"not_found_error","message":"model: nope-model"},"request_id":"req_mock"}',
      },
    },
    parsed:
      '404 {"type":"error","error":{"type":"not_found_error","message":"model: nope-model"},"request_id":"req_mock"}',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'fork.ndjson': {
    events: ['started <session>', 'output "Hello from the mock."'],
    session: '01a1e0f3-8b45-75a9-a69c-5fd9c1e7ecf7',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'plain.ndjson': {
    events: ['started <session>', 'output "Hello from the mock."'],
    session: '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  // The text format, which no run uses by default.
  'plain.txt': {
    events: ['notice Hello from the mock.', 'error no_result'],
    failure: {
      reason: 'no_result',
      message: 'Pi ended without an answer.',
      report: { whole: 'Failed to parse CLI output' },
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume.ndjson': {
    request: { sessionId: '01a1e0f3-6eb0-72eb-9b1a-21cd10f3b55f' },
    events: ['started <session>', 'output "Hello from the mock."'],
    session: '01a1e0f3-6eb0-72eb-9b1a-21cd10f3b55f',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'sigint-during-tool.ndjson': {
    events: [
      'started <session>',
      'output "I will run it."',
      'tool_use #1 bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 bash failed "The run ended before the tool did."',
      'error exit',
    ],
    session: '01a1e0f5-61a0-76b9-98e9-5932640e3308',
    failure: { reason: 'exit', message: 'Pi ended with exit code 130.', report: { text: 'unknown error' } },
    parsed: 'Failed to parse CLI output',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'sigterm-during-tool.ndjson': {
    events: [
      'started <session>',
      'output "I will run it."',
      'tool_use #1 bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 bash failed "The run ended before the tool did."',
      'error exit',
    ],
    session: '01a1e0f5-4bbd-75d9-91cc-49bfd1795b37',
    failure: { reason: 'exit', message: 'Pi ended with exit code 143.', report: { text: 'unknown error' } },
    parsed: 'Failed to parse CLI output',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'stderr-401-text-mode.txt': {
    events: ['error auth'],
    failure: {
      reason: 'auth',
      message: '401 invalid x-api-key',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-session-other-cwd.txt': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Session found in different project: /workspace',
      report: { whole: 'Failed to parse CLI output' },
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-unknown-flag.txt': {
    events: ['error exit'],
    failure: { reason: 'exit', message: 'Error: Unknown option: --frobnicate', report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-unknown-provider.txt': {
    events: ['error model_unknown'],
    failure: {
      reason: 'model_unknown',
      message: 'Error: Unknown provider "nosuch". Use --list-models to see available providers/models.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-session-garbled.txt': {
    request: { sessionId: '01a1ec14-4155-7656-87af-c765446f5020' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: "No session found matching '01a1ec14-4155-7656-87af-c765446f5020'",
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-session-reshaped.txt': {
    request: { sessionId: '01a1ec14-a48f-76ae-8203-8fae2573bfe5' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message:
        'at _SessionManager.buildSessionProjection (file:///usr/local/lib/node_modules/@earendil-works/pi-coding-agent/dist/bundle/chunks/chunk-OJP47DM6.js:682:4696)',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-unknown-session.txt': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: "No session found matching '00000000-0000-4000-8000-000000000000'",
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'thinking.ndjson': {
    events: ['started <session>', 'thinking "Let me think about it."', 'output "Thought and answered."'],
    session: '01a1e0f1-0789-7532-9219-d4e476b53dcb',
    answer: 'Thought and answered.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'tool-use.ndjson': {
    events: [
      'started <session>',
      'output "I will run it."',
      'tool_use #1 bash {"command":"echo hello-tool","description":"run"}',
      'tool_result #1 bash ok "hello-tool\\n"',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '01a1e0f0-fc51-74ae-a5f6-d834cb860d97',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0003015,
  },
  'tool-use-0.87.1.ndjson': {
    events: [
      'started <session>',
      'tool_use #1 bash {"command":"echo hello-tool"}',
      'tool_result #1 bash ok "hello-tool\\n"',
      'output "The tool said hello."',
    ],
    session: '01a1ec2a-003c-7435-8853-350a4d348986',
    answer: 'The tool said hello.',
    usage: '200 in + 20 out + 40 read + 10 written = 270',
    costUsd: 0.0009495,
  },
  // The text format, which no run uses by default.
  'tool-use.txt': {
    events: ['notice The tool ran; done.', 'error no_result'],
    failure: {
      reason: 'no_result',
      message: 'Pi ended without an answer.',
      report: { whole: 'Failed to parse CLI output' },
    },
    parsed: 'Failed to parse CLI output',
  },
}

function retries(error: string): string[] {
  return [1, 2, 3].map((attempt) => `notice ${error} (retry ${attempt} of 3)`)
}
