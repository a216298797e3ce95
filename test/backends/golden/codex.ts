// Codex 0.166.0. How each was captured is in test/fixtures/codex, in the *.meta.json beside it.

import { tokenUsage } from '../../../src/backends/engine/translation.js'
import type { ExpectedCaptures } from './captures.js'

/** The usage of the turn in plain.jsonl. */
const PLAIN_USAGE = tokenUsage({ inputTokens: 253, outputTokens: 20, cacheReadTokens: 40, reasoningTokens: 5 })

export const codexCaptures: ExpectedCaptures = {
  'error-400.jsonl': {
    events: [
      'started <session>',
      'notice {"error":{"message":"Bad thing in request.","type":"invalid_request_error","code":"bad"}}',
      'error refused',
    ],
    session: '01a1e0fc-7d1b-7232-90c9-654611ce175d',
    failure: { reason: 'refused', message: 'Bad thing in request.', report: 'stderr' },
    parsed: '{"error":{"message":"Bad thing in request.","type":"invalid_request_error","code":"bad"}}',
  },
  'error-401-with-retries.jsonl': {
    events: [
      'started <session>',
      ...reconnecting(
        'unexpected status 401 Unauthorized: Incorrect API key provided: test-key., url: http://127.0.0.1:4501/v1/responses',
      ),
      'notice unexpected status 401 Unauthorized: Incorrect API key provided: test-key., url: http://127.0.0.1:4501/v1/responses',
      'error auth',
    ],
    session: '01a1e0fc-4997-7603-8fe1-640050d3112c',
    failure: {
      reason: 'auth',
      message:
        'unexpected status 401 Unauthorized: Incorrect API key provided: test-key., url: http://127.0.0.1:4501/v1/responses',
      report: 'stderr',
    },
  },
  'error-401.jsonl': {
    events: [
      'started <session>',
      'notice unexpected status 401 Unauthorized: Incorrect API key provided: test-key., url: http://127.0.0.1:4501/v1/responses',
      'error auth',
    ],
    session: '01a1e0fc-6368-7950-b0a1-f46e0a6eebc1',
    failure: {
      reason: 'auth',
      message:
        'unexpected status 401 Unauthorized: Incorrect API key provided: test-key., url: http://127.0.0.1:4501/v1/responses',
      report: 'stderr',
    },
  },
  'error-429-quota.jsonl': {
    events: ['started <session>', 'notice Quota exceeded. Check your plan and billing details.', 'error rate_limit'],
    session: '01a1e0fc-7ae9-7cd2-99b4-b7de7bf886ed',
    failure: {
      reason: 'rate_limit',
      message: 'Quota exceeded. Check your plan and billing details.',
      report: 'stderr',
    },
  },
  'error-429.jsonl': {
    events: [
      'started <session>',
      'notice exceeded retry limit, last status: 429 Too Many Requests',
      'error rate_limit',
    ],
    session: '01a1e0fc-79ac-7ee1-b3fe-e60408727dd0',
    failure: {
      reason: 'rate_limit',
      message: 'exceeded retry limit, last status: 429 Too Many Requests',
      report: 'stderr',
    },
  },
  'error-500.jsonl': {
    events: [
      'started <session>',
      'notice We’re currently experiencing high demand, which may cause temporary errors.',
      'error exit',
    ],
    session: '01a1e0fc-7bff-73e2-ae85-2f196ec975c9',
    failure: {
      reason: 'exit',
      message: 'We’re currently experiencing high demand, which may cause temporary errors.',
      report: 'stderr',
    },
  },
  'error-empty-stdin.jsonl': {
    events: ['error exit'],
    failure: { reason: 'exit', message: 'No prompt provided via stdin.', report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'error-idle-timeout.jsonl': {
    events: [
      'started <session>',
      'notice stream disconnected before completion: idle timeout waiting for SSE',
      'error exit',
    ],
    session: '01a1e0fc-827c-7a20-968d-cf6122c62184',
    failure: {
      reason: 'exit',
      message: 'stream disconnected before completion: idle timeout waiting for SSE',
      report: 'stderr',
    },
  },
  'error-missing-key.jsonl': {
    events: ['started <session>', 'notice Missing environment variable: `MOCK_KEY`.', 'error auth'],
    session: '01a1e0fc-8184-76e3-baa0-4cff0245e63f',
    failure: { reason: 'auth', message: 'Missing environment variable: `MOCK_KEY`.', report: 'stderr' },
  },
  'error-not-git-repo.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message: 'Not inside a trusted directory and --skip-git-repo-check was not specified.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  // The only line on stderr is an unrelated warning.
  'error-server-down-never-ends-killed-at-8s.jsonl': {
    events: [
      'started <session>',
      'notice Reconnecting... waiting for network (Connection failed: error sending request)',
      'notice Reconnecting... waiting for network (Connection failed: error sending request)',
      'error exit',
    ],
    session: '01a1e0fc-8970-7ee3-866e-a26dcc7c09f7',
    failure: {
      reason: 'exit',
      message: 'Reconnecting... waiting for network (Connection failed: error sending request)',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-stream-cut.jsonl': {
    events: [
      'started <session>',
      'notice stream disconnected before completion: Transport error: network error: error decoding response body',
      'error exit',
    ],
    session: '01a1e0fc-7f40-75f1-a009-c7323a8786ab',
    failure: {
      reason: 'exit',
      message: 'stream disconnected before completion: Transport error: network error: error decoding response body',
      report: 'stderr',
    },
  },
  'error-unknown-flag.jsonl': {
    events: ['error exit'],
    failure: { reason: 'exit', message: "error: unexpected argument '--bogus' found", report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'error-unknown-model.jsonl': {
    events: [
      'started <session>',
      'notice Model metadata for `unknown-model` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.',
      "notice The model 'unknown-model' does not exist or you do not have access to it.",
      'error model_unknown',
    ],
    session: '01a1e0fc-8078-75e2-b6a7-042bbcf6c252',
    failure: {
      reason: 'model_unknown',
      message: "The model 'unknown-model' does not exist or you do not have access to it.",
      report: 'stderr',
    },
  },
  'output-schema.jsonl': {
    events: ['started <session>', 'output "{\\"answer\\":\\"42\\"}"'],
    session: '01a1e0fc-47ff-7d30-8a1a-176e11fb1599',
    answer: '{"answer":"42"}',
    usage: '274 in + 20 out (5 reasoning) + 40 read + 0 written = 334',
    sessionUsage: '274 in + 20 out (5 reasoning) + 40 read + 0 written = 334',
  },
  'plain.jsonl': {
    events: ['started <session>', 'output "Hello from the mock model. ünïcödé ✓"'],
    session: '01a1e0fc-0f97-7400-8c79-14e24c555679',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '253 in + 20 out (5 reasoning) + 40 read + 0 written = 313',
    sessionUsage: '253 in + 20 out (5 reasoning) + 40 read + 0 written = 313',
  },
  // The thread's previous usage is unknown.
  'resume-model-switch.jsonl': {
    request: { sessionId: '01a1e0fc-0f97-7400-8c79-14e24c555679' },
    events: [
      'started <session>',
      'notice This session was recorded with model `gpt-6.1-sol` but is resuming with `gpt-5.5`. Consider switching back to `gpt-6.1-sol` as it may affect Codex performance.',
      'output "Hello from the mock model. ünïcödé ✓"',
    ],
    session: '01a1e0fc-0f97-7400-8c79-14e24c555679',
    answer: 'Hello from the mock model. ünïcödé ✓',
    sessionUsage: '1020 in + 80 out (20 reasoning) + 160 read + 0 written = 1260',
  },
  // No other thread was requested here; see codex/backend.test.ts for that case.
  'resume-not-a-uuid-starts-new-thread.jsonl': {
    events: ['started <session>', 'output "Hello from the mock model. ünïcödé ✓"'],
    session: '01a1e0fc-128b-7cc3-8f78-3b48703d1f00',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '255 in + 20 out (5 reasoning) + 40 read + 0 written = 315',
    sessionUsage: '255 in + 20 out (5 reasoning) + 40 read + 0 written = 315',
  },
  'resume-garbled.jsonl': {
    request: { sessionId: '01a1ec12-ef8e-7330-9943-8d2618c59d15' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message:
        'Error: thread/resume: thread/resume failed: failed to read thread: thread-store internal error: failed to read session metadata /home/user/.codex/sessions/2026/11/18/rollout-2026-11-18T00-33-46-01a1ec12-ef8e-7330-9943-8d2618c59d15.jsonl: thread-store … 6/11/18/rollout-2026-11-18T00-33-46-01a1ec12-ef8e-7330-9943-8d2618c59d15.jsonl: rollout at /home/user/.codex/sessions/2026/11/18/rollout-2026-11-18T00-33-46-01a1ec12-ef8e-7330-9943-8d2618c59d15.jsonl does not start with session metadata (code -32603)',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume-truncated.jsonl': {
    request: { sessionId: '01a1ec12-d01f-7dd0-a597-5a96f4851018' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message:
        'Error: thread/resume: thread/resume failed: failed to read thread: thread-store internal error: failed to read session metadata /home/user/.codex/sessions/2026/11/18/rollout-2026-11-18T00-33-38-01a1ec12-d01f-7dd0-a597-5a96f4851018.jsonl: thread-store … ome/user/.codex/sessions/2026/11/18/rollout-2026-11-18T00-33-38-01a1ec12-d01f-7dd0-a597-5a96f4851018.jsonl: rollout at /home/user/.codex/sessions/2026/11/18/rollout-2026-11-18T00-33-38-01a1ec12-d01f-7dd0-a597-5a96f4851018.jsonl is empty (code -32603)',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume-unknown.jsonl': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message:
        'Error: thread/resume: thread/resume failed: no rollout found for thread id 00000000-0000-4000-8000-000000000000 (code -32600)',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  // Codex reports totals of the whole thread.
  'resume.jsonl': {
    request: { sessionId: '01a1e0fc-0f97-7400-8c79-14e24c555679', sessionUsage: PLAIN_USAGE },
    events: ['started <session>', 'output "I saw 3 user messages."'],
    session: '01a1e0fc-0f97-7400-8c79-14e24c555679',
    answer: 'I saw 3 user messages.',
    usage: '254 in + 20 out (5 reasoning) + 40 read + 0 written = 314',
    sessionUsage: '507 in + 40 out (10 reasoning) + 80 read + 0 written = 627',
  },
  'tool-codemode-default-model.jsonl': {
    events: [
      'started <session>',
      'thinking "**Planning** I will run a command."',
      'output "Let me run a command."',
      'tool_use #1 command_execution {"command":"/bin/bash -lc \'echo hello-from-tool\'"}',
      'tool_result #1 command_execution ok {"exitCode":0} "hello-from-tool\\n"',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: '01a1e0fc-146e-7b51-83e0-5d08606409a5',
    answer: 'The command ran. Final answer.',
    usage: '517 in + 40 out (10 reasoning) + 80 read + 0 written = 637',
    sessionUsage: '517 in + 40 out (10 reasoning) + 80 read + 0 written = 637',
  },
  'tool-file-change.jsonl': {
    events: [
      'started <session>',
      'thinking "**Planning** I will run a command."',
      'tool_use #1 file_change {"changes":[{"path":"/workspace/fix.txt","kind":"add"}]}',
      'tool_result #1 file_change ok "[{\\"path\\":\\"/workspace/fix.txt\\",\\"kind\\":\\"add\\"}]"',
      'output "The command ran. Final answer."',
    ],
    session: '01a1e0fc-183c-7cc1-b385-303e3b7748b0',
    answer: 'The command ran. Final answer.',
    usage: '529 in + 40 out (10 reasoning) + 80 read + 0 written = 649',
    sessionUsage: '529 in + 40 out (10 reasoning) + 80 read + 0 written = 649',
  },
  'tool-sandbox-readonly.jsonl': {
    events: [
      'started <session>',
      'thinking "**Planning** I will run a command."',
      'output "Let me run a command.\\n\\nThe command ran. Final answer."',
    ],
    session: '01a1e0fc-432b-7721-890a-dbe732ec1c6d',
    answer: 'The command ran. Final answer.',
    usage: '541 in + 40 out (10 reasoning) + 80 read + 0 written = 661',
    sessionUsage: '541 in + 40 out (10 reasoning) + 80 read + 0 written = 661',
  },
  'tool-shell-fails.jsonl': {
    events: [
      'started <session>',
      'thinking "**Planning** I will run a command."',
      'output "Let me run a command."',
      'tool_use #1 command_execution {"command":"/bin/bash -lc \'echo out; echo err >&2; exit 3\'"}',
      'tool_result #1 command_execution failed {"exitCode":3} "out\\nerr\\n"',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: '01a1e0fc-170e-7340-90d2-c4b50d0aa09f',
    answer: 'The command ran. Final answer.',
    usage: '525 in + 40 out (10 reasoning) + 80 read + 0 written = 645',
    sessionUsage: '525 in + 40 out (10 reasoning) + 80 read + 0 written = 645',
  },
  'tool-shell.jsonl': {
    events: [
      'started <session>',
      'thinking "**Planning** I will run a command."',
      'output "Let me run a command."',
      'tool_use #1 command_execution {"command":"/bin/bash -lc \'echo hello-from-tool\'"}',
      'tool_result #1 command_execution ok {"exitCode":0} "hello-from-tool\\n"',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: '01a1e0fc-15dc-73b2-b79e-7e8ce7c6e3f4',
    answer: 'The command ran. Final answer.',
    usage: '521 in + 40 out (10 reasoning) + 80 read + 0 written = 641',
    sessionUsage: '521 in + 40 out (10 reasoning) + 80 read + 0 written = 641',
  },
  'warning-unknown-model-metadata.jsonl': {
    events: [
      'started <session>',
      'notice Model metadata for `mock-model` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.',
      'output "Hello from the mock model. ünïcödé ✓"',
    ],
    session: '01a1e0fc-4526-7851-ba38-978e84c3d5b6',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '272 in + 20 out (5 reasoning) + 40 read + 0 written = 332',
    sessionUsage: '272 in + 20 out (5 reasoning) + 40 read + 0 written = 332',
  },
}

function reconnecting(problem: string): string[] {
  return [1, 2, 3, 4, 5].map((attempt) => `notice Reconnecting... ${attempt}/5 (${problem})`)
}
