// Claude Code 2.1.197. How each was captured is in test/fixtures/claude/INDEX.md.

import type { ExpectedCaptures } from './captures.js'

export const claudeCaptures: ExpectedCaptures = {
  'background-task-stopped.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'tool_use #1 Bash {"command":"sleep 30; echo BGDONE","run_in_background":true}',
      'tool_result #1 Bash ok "Command running in background with ID: b270gv4vx. Output is being written to: /tmp/claude-0/-workspace/89e4091e-fbdc-41cf-8315-7e88e596961a/tasks/b270gv4vx.output. You will be notified when it completes. To check interim output, use Read on that file path."',
      'output "The tool ran; done."',
    ],
    session: '89e4091e-fbdc-41cf-8315-7e88e596961a',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  // Its `usage` is 0 because the answer was retried; the tokens actually billed are in `modelUsage`.
  'disconnect-midstream.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock. (cut)"'],
    session: 'd8b797a6-afc7-411c-9342-8e23f4de21b1',
    answer: 'Hello from the mock. (cut)',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'empty-answer.json': {
    events: [],
    session: '2a42d7f8-d234-468c-a156-71fadb6b34ed',
    answer: '',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'error-400.json': {
    events: ['error refused'],
    session: '0f212541-fcdc-4475-93dc-79133bdbb3cc',
    failure: { reason: 'refused', message: 'API Error: 400 prompt is bad', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-401-noretry.json': {
    events: ['error auth'],
    session: 'efa89091-f320-4b73-b9c3-699123ca7319',
    failure: { reason: 'auth', message: 'Invalid API key · Fix external API key', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-401-retried.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('authentication_failed', 10, 10), 'error auth'],
    session: '64c78b59-221f-4c26-925f-d2a586af1257',
    failure: { reason: 'auth', message: 'Invalid API key · Fix external API key', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-403.json': {
    events: ['error auth'],
    session: 'a6258298-88a1-4c7f-b475-84485391d7cd',
    failure: { reason: 'auth', message: 'Failed to authenticate. API Error: 403 forbidden', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-429-noretry.json': {
    events: ['error rate_limit'],
    session: '1bcb1740-6c6a-44dd-a174-b75c275eca2f',
    failure: { reason: 'rate_limit', message: 'API Error: Request rejected (429) · Rate limited', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-429-retried.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('rate_limit', 10, 10), 'error rate_limit'],
    session: 'd4e5cebb-cbfd-40ff-826d-66e2687d186e',
    failure: { reason: 'rate_limit', message: 'API Error: Request rejected (429) · Rate limited', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-500-retried.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('server_error', 10, 10), 'error exit'],
    session: '711f7d9e-d4d4-450d-8e8d-7fac8338c943',
    failure: {
      reason: 'exit',
      message:
        'API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:4710).',
      report: 'message',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-502-html.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('server_error', 10, 10), 'error exit'],
    session: '46b20a44-5671-4412-b2ba-49f6a85a6c90',
    failure: {
      reason: 'exit',
      message:
        'API Error: 502 <html>bad gateway</html>. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:4710).',
      report: 'message',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-529-retried.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('overloaded', 10, 10), 'error exit'],
    session: 'f2c9fdc7-05d6-45ed-af12-2bbe85a12278',
    failure: {
      reason: 'exit',
      message:
        'API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:4710).',
      report: 'message',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-not-logged-in.json': {
    events: ['error auth'],
    session: '395a714b-30f8-4bdb-9221-43afb54028b6',
    failure: { reason: 'auth', message: 'Not logged in · Please run /login', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-prompt-too-long.json': {
    events: ['error prompt_too_long'],
    session: '1976c628-06cc-48b5-b405-0dec78ffa408',
    failure: {
      reason: 'prompt_too_long',
      message:
        'Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~1536 tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context.',
      report: 'message',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-server-down.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', ...retries('unknown', 10, 10), 'error exit'],
    session: '004fe8d2-20b6-4e10-8406-5975c1bd69b9',
    failure: { reason: 'exit', message: 'API Error: Unable to connect to API (ConnectionRefused)', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-timeout.json': {
    events: ['error exit'],
    session: 'd5fa99d3-aac0-4a4f-be0b-3f10b97f35c5',
    failure: { reason: 'exit', message: 'Request timed out', report: 'message' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'error-unknown-model.json': {
    events: ['error model_unknown'],
    session: 'a148b40a-a49d-43f6-b43f-dea360dc7835',
    failure: {
      reason: 'model_unknown',
      message:
        "There's an issue with the selected model (nope-model). It may not exist or you may not have access to it. Run --model to pick a different model.",
      report: 'message',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'fallback-model.ndjson': {
    events: [
      'started <session> claude-opus-4-8',
      ...retries('overloaded', 2, 3),
      'notice claude-opus-4-8 is overloaded. Switching to claude-sonnet-5.',
      'output "Hello from the mock. (s529m)"',
    ],
    session: '1cec165b-037d-4803-8cca-cfd8a8f887b1',
    answer: 'Hello from the mock. (s529m)',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00015075,
  },
  'fork.json': {
    events: ['output "Hello from the mock."'],
    session: 'b934bf8f-6aea-4395-ac42-dfe4613a2e69',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  // Its `usage` is 0 because the answer was retried; the tokens actually billed are in `modelUsage`.
  'hang-midstream-300s.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock. (hangmid)"'],
    session: 'e4619aca-f541-490f-8bbd-696c881a29d0',
    answer: 'Hello from the mock. (hangmid)',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'max-turns.json': {
    events: ['error max_turns'],
    session: '7b167f2f-de97-4168-9448-84d019f559ff',
    failure: { reason: 'max_turns', message: 'Reached maximum number of turns (2)', report: 'message' },
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'max-turns.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "step 0. "',
      'tool_use #1 Bash {"command":"echo 0","description":"loop"}',
      'tool_result #1 Bash ok "0"',
      'output "\\n\\nstep 1. "',
      'tool_use #2 Bash {"command":"echo 1","description":"loop"}',
      'tool_result #2 Bash ok "1"',
      'error max_turns',
    ],
    session: '7120d334-115e-4797-bf04-9eac744f37e5',
    failure: { reason: 'max_turns', message: 'Reached maximum number of turns (2)', report: 'message' },
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  // The text format, which no run uses by default.
  'max-turns.txt': {
    events: ['notice Error: Reached max turns (1)', 'error max_turns'],
    failure: {
      reason: 'max_turns',
      message: 'Error: Reached max turns (1)',
      report: 'message',
    },
    parsed: 'Failed to parse CLI output',
  },
  // As above: `usage` lacks half of what was billed.
  'overloaded-in-sse.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock. (ssererr)"'],
    session: '74486c8f-9cc2-4226-97a0-456848313d35',
    answer: 'Hello from the mock. (ssererr)',
    usage: '44 in + 10 out + 20 read + 12 written = 86',
    costUsd: 0.0005549999999999999,
  },
  'partial.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock."'],
    session: 'cf36b5c8-6367-479f-805c-fc88d9dc853d',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'permission-denied.ndjson': {
    events: [
      'started <session> claude-sonnet-5',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"make -v","description":"run"}',
      'tool_result #1 Bash failed "This command requires approval"',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '8596ac52-4123-497f-b8ed-3b80453a0728',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0003015,
  },
  // Denied tools do not fail the turn.
  'permission-dontask.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"make -v","description":"run"}',
      'tool_result #1 Bash failed "Permission to use Bash has been denied because Claude Code is running in don\'t ask mode. IMPORTANT: You *may* attempt to accomplish this action using other tools that might naturally be used to accomplish this goal, e.g. using head instead of cat. But you *should not* attempt to work around this denial in malicious ways, e.g. do not use your ability to run tests to execute non-test actions. You should only try to work around this restriction in reasonable ways that do not attempt to bypass the intent behind this denial. If you believe this capability is essential to complete the user\'s request, STOP and explain to the user what you were trying to do and why you need this permission. Let the user decide how to proceed."',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '66296d31-8236-46db-a764-5ae5803613f0',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'plain-verbose-array.json': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock."'],
    session: 'c07067c5-02df-44eb-9ef0-89fbd06ebee9',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'plain.json': {
    events: ['output "Hello from the mock."'],
    session: '1b528d84-be7d-4655-9f46-d82ea07f84f0',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'plain.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'output "Hello from the mock."'],
    session: '7007f3ec-31f6-4ae1-a987-cfb0eaf83031',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'resume-garbled.ndjson': {
    request: { sessionId: '6a73f8a5-cf74-4f74-8908-797efc4158d7' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'No conversation found with session ID: 6a73f8a5-cf74-4f74-8908-797efc4158d7',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'resume-unknown.ndjson': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'No conversation found with session ID: 00000000-0000-4000-8000-000000000000',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'resume.ndjson': {
    request: { sessionId: '956b3719-3756-4772-ab26-934278a96d23' },
    events: ['started <session> claude-opus-4-8', 'output "Hello from the mock."'],
    session: '956b3719-3756-4772-ab26-934278a96d23',
    answer: 'Hello from the mock.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  // Its counts are totals of the session, except those since the last result.
  'resume-2.1.326.ndjson': {
    request: { sessionId: '32a99a37-d922-4f0e-96b9-a669bb1f0b1b' },
    events: ['started <session> claude-sonnet-4-5', 'output "Second answer."'],
    session: '32a99a37-d922-4f0e-96b9-a669bb1f0b1b',
    answer: 'Second answer.',
    usage: '100 in + 10 out + 20 read + 5 written = 135',
    costUsd: 0.00047475,
  },
  // Its `errors` contain a line meant only for its developers.
  'sigint-during-tool.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 Bash failed "The user doesn\'t want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."',
      'error exit',
    ],
    session: 'c4b8213c-063b-4394-800f-e4c3be4d023c',
    failure: { reason: 'exit', message: 'The agent gave no reason.' },
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'sigkill-during-tool.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 Bash failed "The run ended before the tool did."',
      'error exit',
    ],
    session: '43f7370e-d365-4b59-9fb5-dbf9efca6f43',
    failure: { reason: 'exit', message: 'Claude ended with exit code 137.', report: { text: 'unknown error' } },
    parsed: 'Failed to parse CLI output',
  },
  'sigterm-during-tool.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 Bash failed "Exit code 137"',
      'error exit',
    ],
    session: '0993eed0-07aa-4fc7-b46f-cb8dc616b9fc',
    failure: { reason: 'exit', message: 'Claude ended with exit code 143.', report: { text: 'unknown error' } },
    parsed: 'Failed to parse CLI output',
  },
  // The tool was stopped from outside, and the model answered all the same.
  'sigterm-false-success.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"sleep 987","description":"run"}',
      'tool_result #1 Bash failed "Exit code 137"',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '80814d6c-ebc6-486e-adeb-531c9e8c68d8',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'sigterm-model-hangs.ndjson': {
    events: ['started <session> claude-opus-4-8[1m]', 'error exit'],
    session: 'ef45be59-4643-4576-9133-82d747a5e6da',
    failure: { reason: 'exit', message: 'Claude ended with exit code 143.', report: { text: 'unknown error' } },
    parsed: 'Failed to parse CLI output',
  },
  'slash-unknown.json': {
    events: ['output "Unknown command: /nosuchcmd"'],
    session: '2a8c8087-7332-48d8-8fb3-2b8ca1ac17a9',
    answer: 'Unknown command: /nosuchcmd',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
    costUsd: 0,
  },
  'stderr-empty-prompt.txt': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message: 'Error: Input must be provided either through stdin or as a prompt argument when using --print',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-not-a-uuid.txt': {
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message:
        'Error: --resume requires a valid session ID or session title when used with --print. Usage: claude -p --resume <session-id|title>. Provided value "not-a-uuid" is not a UUID and does not match any session title.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-resume-unknown-json-format.txt': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'No conversation found with session ID: 00000000-0000-4000-8000-000000000000',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-session-id-in-use.txt': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message: 'Error: Session ID 12345678-1234-4234-8234-123456789abc is already in use.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-stream-json-needs-verbose.txt': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message: 'Error: When using --print, --output-format=stream-json requires --verbose',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'stderr-unknown-flag.txt': {
    events: ['error exit'],
    failure: { reason: 'exit', message: "error: unknown option '--frobnicate'", report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'structured-output.json': {
    events: ['output "{\\"name\\":\\"bob\\"}"'],
    session: '9e11812b-5be7-403f-b9f5-3fddb05ffbed',
    answer: '{"name":"bob"}',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'thinking-partial.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'thinking "Let me think about it."',
      'output "Thought and answered."',
    ],
    session: '30012a0f-a956-497f-bf49-953fd83a061d',
    answer: 'Thought and answered.',
    usage: '11 in + 7 out + 5 read + 3 written = 26',
    costUsd: 0.00025125,
  },
  'tool-use-partial.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"echo hello-tool","description":"run"}',
      'tool_result #1 Bash ok "hello-tool"',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '9b4b739a-63e5-4fdb-bfdd-2bc85b3bd2d9',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'tool-use.json': {
    events: ['output "The tool ran; done."'],
    session: 'd1def096-2313-41ce-88b3-a39d9603a9a4',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
  'tool-use.ndjson': {
    events: [
      'started <session> claude-opus-4-8[1m]',
      'output "I will run it."',
      'tool_use #1 Bash {"command":"echo hello-tool","description":"run"}',
      'tool_result #1 Bash ok "hello-tool"',
      'output "\\n\\nThe tool ran; done."',
    ],
    session: '6012be6c-1e72-4abe-8131-6a91627b6846',
    answer: 'The tool ran; done.',
    usage: '22 in + 14 out + 10 read + 6 written = 52',
    costUsd: 0.0005025,
  },
}

function retries(error: string, count: number, of: number): string[] {
  return Array.from(
    { length: count },
    (_, index) => `notice The model did not answer (${error}). Retry ${index + 1} of ${of}.`,
  )
}
