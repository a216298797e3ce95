// Gemini CLI 0.61.0. How each was captured is in test/fixtures/gemini, in the *.meta.json beside it.

import type { ExpectedCaptures } from './captures.js'

export const geminiCaptures: ExpectedCaptures = {
  'error-400-key.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error auth'],
    session: '24896eb1-dbb5-43b8-87f8-7aa8479b6e88',
    failure: {
      reason: 'auth',
      message: '[API Error: API key not valid. Please pass a valid API key.]',
      report: 'stderr',
    },
    parsed:
      '[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-401.json.json': {
    events: ['error auth'],
    failure: {
      reason: 'auth',
      message:
        'Error when talking to Gemini API Full report available at: /tmp/gemini-client-error-Turn.run-sendMessageStream-2026-11-15T20-54-06-065Z.json _ApiError: API key not valid. Please pass a valid API key.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-401.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error auth'],
    session: 'e7673825-543d-4ee0-bc0f-348f07fad6e5',
    failure: {
      reason: 'auth',
      message: '[API Error: API key not valid. Please pass a valid API key.]',
      report: 'stderr',
    },
    parsed:
      '[API Error: {"error":{"code":401,"message":"API key not valid. Please pass a valid API key.","status":"UNAUTHENTICATED"}}]',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-429-daily.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error rate_limit'],
    session: '7d23b7db-f365-4e13-b74e-9e681afa5595',
    failure: {
      reason: 'rate_limit',
      message:
        '[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-429.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error rate_limit'],
    session: 'ce7d7959-93bf-4498-83cc-dcd129408736',
    failure: {
      reason: 'rate_limit',
      message:
        '[API Error: Resource has been exhausted (e.g. check quota).]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-500.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error exit'],
    session: 'b4279fb3-3460-44af-a22c-397c7df1e6cf',
    failure: { reason: 'exit', message: '[API Error: An internal error has occurred.]', report: 'stderr' },
    parsed: '[API Error: {"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}]',
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-empty-prompt.stream-json.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message:
        'No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-max-turns.json.json': {
    events: ['error max_turns'],
    failure: {
      reason: 'max_turns',
      message:
        '"message": "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.",',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-max-turns.stream-json.jsonl': {
    events: [
      'started <session> gemini-2.5-flash',
      'output "Let me run a command."',
      'tool_use #1 run_shell_command {"command":"echo 192","description":"mock"}',
      'tool_result #1 run_shell_command ok "192"',
      'output "\\n\\nLet me run a command."',
      'tool_use #2 run_shell_command {"command":"echo 193","description":"mock"}',
      'tool_result #2 run_shell_command ok "193"',
      'error max_turns',
    ],
    session: '6dc53b5a-9625-41f4-ad88-1db86c95fa45',
    failure: {
      reason: 'max_turns',
      message:
        'Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.',
      report: 'stderr',
    },
    usage: '505 in + 50 out (10 reasoning) + 80 read + 0 written = 635',
  },
  'error-missing-auth.stream-json.jsonl': {
    events: ['error auth'],
    failure: {
      reason: 'auth',
      message: 'When using Gemini API, you must specify the GEMINI_API_KEY environment variable.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-no-auth-settings.json.json': {
    events: ['error auth'],
    failure: {
      reason: 'auth',
      message:
        '"message": "Please set an Auth method in your /home/user/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GENAI_USE_GCA",',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'error-server-down.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error exit'],
    session: '9a98e3bf-282f-4781-af3d-60f18812c22a',
    failure: {
      reason: 'exit',
      message: '[API Error: exception TypeError: fetch failed sending request]',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-slash-quit.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'error exit'],
    session: 'efb7f188-7571-41a7-a450-08e4054daad8',
    failure: {
      reason: 'exit',
      message: '[API Error: Exiting due to command result that is not supported in non-interactive mode.]',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-stream-cut.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'output "partial "', 'error exit'],
    session: '9c5d76c9-bb20-4a72-82b6-2525f626100b',
    failure: { reason: 'exit', message: '[API Error: terminated]', report: 'stderr' },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-unknown-flag.stream-json.jsonl': {
    events: ['error exit'],
    failure: { reason: 'exit', message: 'Unknown argument: bogus', report: 'stderr' },
    parsed: 'Failed to parse CLI output',
  },
  'error-unknown-model.stream-json.jsonl': {
    events: ['started <session> unknown-model', 'error model_unknown'],
    session: '79cada95-a42e-4e54-8062-d21dad322eae',
    failure: {
      reason: 'model_unknown',
      message:
        '[API Error: models/unknown-model is not found for API version v1beta, or is not supported for generateContent.]',
      report: 'stderr',
    },
    usage: '0 in + 0 out + 0 read + 0 written = 0',
  },
  'error-untrusted-dir.stream-json.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message:
        'Gemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, set the `GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this directory in interactive mode. For more details, see https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environments',
      report: {
        text: 'Gemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, set the `GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this directory in interactive mode. For more details, see https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environments\n',
      },
    },
    parsed: 'Failed to parse CLI output',
  },
  'plain-auto-model-router.json.json': {
    events: ['output "Hello from the mock model. ünïcödé ✓"'],
    session: '6b47ba79-5c80-48fd-9308-5eba37a14ca1',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '457 in + 50 out (10 reasoning) + 80 read + 0 written = 587',
  },
  'plain-auto-model-router.stream-json.jsonl': {
    events: ['started <session> auto', 'output "Hello from the mock model. ünïcödé ✓"'],
    session: 'a2d2f107-36d0-433b-8d49-9ed4cf466564',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '453 in + 50 out (10 reasoning) + 80 read + 0 written = 583',
  },
  'plain.json.json': {
    events: ['output "Hello from the mock model. ünïcödé ✓"'],
    session: '0c3990f8-82df-46a6-93e9-b90aeb8de4bf',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '225 in + 25 out (5 reasoning) + 40 read + 0 written = 290',
  },
  'plain.stream-json.jsonl': {
    events: ['started <session> gemini-2.5-flash', 'output "Hello from the mock model. ünïcödé ✓"'],
    session: 'db688cd7-e787-4602-b893-06e158e20212',
    answer: 'Hello from the mock model. ünïcödé ✓',
    usage: '224 in + 25 out (5 reasoning) + 40 read + 0 written = 289',
  },
  'resume-other-cwd.stream-json.jsonl': {
    request: { sessionId: 'db688cd7-e787-4602-b893-06e158e20212' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Error resuming session: Invalid session identifier "db688cd7-e787-4602-b893-06e158e20212".',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume-garbled.stream-json.jsonl': {
    request: { sessionId: 'fb0c16a3-f720-431c-ae00-7b22043ef5d9' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Error resuming session: No previous sessions found for this project.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume-unknown.stream-json.jsonl': {
    request: { sessionId: '00000000-0000-4000-8000-000000000000' },
    events: ['error session_lost'],
    failure: {
      reason: 'session_lost',
      message: 'Error resuming session: Invalid session identifier "00000000-0000-4000-8000-000000000000".',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'resume.stream-json.jsonl': {
    request: { sessionId: 'db688cd7-e787-4602-b893-06e158e20212' },
    events: ['started <session> gemini-2.5-flash', 'output "I saw 2 user contents."'],
    session: 'db688cd7-e787-4602-b893-06e158e20212',
    answer: 'I saw 2 user contents.',
    usage: '230 in + 25 out (5 reasoning) + 40 read + 0 written = 295',
  },
  'session-id-exists.stream-json.jsonl': {
    events: ['error exit'],
    failure: {
      reason: 'exit',
      message:
        'Error starting session: Session ID "db688cd7-e787-4602-b893-06e158e20212" already exists. Use --resume to resume it, or provide a different ID.',
      report: 'stderr',
    },
    parsed: 'Failed to parse CLI output',
  },
  'tool-denied-default-mode.stream-json.jsonl': {
    events: [
      'started <session> gemini-2.5-flash',
      'output "Let me run a command."',
      'tool_use #1 run_shell_command {"command":"echo hello-from-tool","description":"mock"}',
      'tool_result #1 run_shell_command failed "Tool \\"run_shell_command\\" not found. Did you mean one of: \\"update_topic\\", \\"grep_search\\", \\"invoke_agent\\"?"',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: 'ca374f4c-bcd1-42e8-afa2-74ccebc33f59',
    answer: 'The command ran. Final answer.',
    usage: '475 in + 50 out (10 reasoning) + 80 read + 0 written = 605',
  },
  'tool-shell.json.json': {
    events: ['output "The command ran. Final answer."'],
    session: '0d08c174-2626-4caf-93a8-21477fa8a06d',
    answer: 'The command ran. Final answer.',
    usage: '471 in + 50 out (10 reasoning) + 80 read + 0 written = 601',
  },
  'tool-shell.stream-json.jsonl': {
    events: [
      'started <session> gemini-2.5-flash',
      'output "Let me run a command."',
      'tool_use #1 run_shell_command {"command":"echo hello-from-tool","description":"mock"}',
      'tool_result #1 run_shell_command ok "hello-from-tool"',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: '056c026f-ec3b-4e3d-b2fd-d5da48261a27',
    answer: 'The command ran. Final answer.',
    usage: '463 in + 50 out (10 reasoning) + 80 read + 0 written = 593',
  },
  'tool-write-file.stream-json.jsonl': {
    events: [
      'started <session> gemini-2.5-flash',
      'output "Let me run a command."',
      'tool_use #1 write_file {"file_path":"x.txt","content":"hi"}',
      'tool_result #1 write_file ok ""',
      'output "\\n\\nThe command ran. Final answer."',
    ],
    session: '239913ec-e801-4448-ac80-572ee6fffb45',
    answer: 'The command ran. Final answer.',
    usage: '479 in + 50 out (10 reasoning) + 80 read + 0 written = 609',
  },
}
