// The five command lines, and what the suites need to know about each.

import { ClaudeCodeBackend } from '../../src/backends/claude/backend.js'
import { CodexBackend } from '../../src/backends/codex/backend.js'
import { GeminiBackend } from '../../src/backends/gemini/backend.js'
import { OpenCodeBackend } from '../../src/backends/opencode/backend.js'
import { PiBackend } from '../../src/backends/pi/backend.js'
import type { BackendName } from '../../src/backends/types.js'
import type { BackendSetup } from './backend-contract.js'

type Setup = Omit<BackendSetup, 'name'>

const UUIDS = {
  newSession: '11111111-1111-4111-8111-111111111111',
  knownSession: '22222222-2222-4222-8222-222222222222',
  otherSession: '33333333-3333-4333-8333-333333333333',
  wrongSessions: ['ses_2222222222222222', '22222222-2222-4222-8222-222222222222\n', '2'.repeat(36)],
}
const session_id = UUIDS.knownSession

const claudeResult = { type: 'result', subtype: 'success', is_error: false, result: 'Hello', session_id }
const claudeLines = [
  { type: 'system', subtype: 'init', session_id },
  { type: 'assistant', message: { content: [{ type: 'text', text: 'Hello' }] }, session_id },
  claudeResult,
]

const claude: Setup = {
  ...UUIDS,
  create: (config, dependencies) => new ClaudeCodeBackend(config, dependencies),
  label: 'Claude',
  unknownSession: [
    {
      print: `${JSON.stringify({
        type: 'result',
        subtype: 'error_during_execution',
        is_error: true,
        session_id,
        errors: [`No conversation found with session ID: ${session_id}`],
      })}\n`,
    },
    { exit: 1 },
  ],
  startsAnew: false,
  isCounted: false,
  shellTool: 'Bash',
  tellsFinishedTools: false,
  tellsThoughts: true,
  documents: {
    'array on one line': JSON.stringify(claudeLines),
    'array over many lines': JSON.stringify(claudeLines, undefined, 2),
    'array of the result alone': JSON.stringify([claudeResult]),
    'single object': JSON.stringify(claudeResult),
    'single object over many lines': JSON.stringify(claudeResult, undefined, 2),
    'object without is_error': JSON.stringify({ type: 'result', result: 'Hello', session_id }),
    lines: claudeLines.map((line) => JSON.stringify(line)).join('\n'),
  },
  sent: (prompt) => (prompt.startsWith('/') ? ` ${prompt}` : prompt),
  promptLimit: '10000000 bytes',
  ownVariable: 'ANTHROPIC_API_KEY',
  foreignVariable: 'OPENAI_API_KEY',
}

const codexMessage = { type: 'message', role: 'assistant', content: 'Hello', session_id }
const codexLines = [
  { type: 'thread.started', thread_id: session_id },
  { type: 'turn.started' },
  { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: 'Hello' } },
  { type: 'turn.completed', usage: { input_tokens: 1, cached_input_tokens: 0, output_tokens: 1 } },
]

const codex: Setup = {
  ...UUIDS,
  create: (config, dependencies) => new CodexBackend(config, dependencies),
  label: 'Codex',
  unknownSession: [
    { printOnStderr: 'WARNING: proceeding, even though we could not create PATH aliases\n' },
    { printOnStderr: `Error: thread/resume: thread/resume failed: no rollout found for thread id ${session_id}\n` },
    { exit: 1 },
  ],
  startsAnew: true,
  isCounted: false,
  shellTool: 'command_execution',
  tellsFinishedTools: false,
  tellsThoughts: true,
  documents: {
    message: JSON.stringify(codexMessage),
    'message over many lines': JSON.stringify(codexMessage, undefined, 2),
    'array over many lines': JSON.stringify([codexMessage], undefined, 2),
    lines: codexLines.map((line) => JSON.stringify(line)).join('\n'),
  },
  sent: (prompt) => prompt,
  promptLimit: '1048576 characters',
  ownVariable: 'CODEX_API_KEY',
  foreignVariable: 'ANTHROPIC_API_KEY',
}

const geminiAnswer = { response: 'Hello', session_id, stats: {} }
const geminiLines = [
  { type: 'init', session_id, model: 'gemini-2.5-flash' },
  { type: 'message', role: 'assistant', content: 'Hello', delta: true },
  { type: 'result', status: 'success', stats: {} },
]

const gemini: Setup = {
  ...UUIDS,
  create: (config, dependencies) => new GeminiBackend(config, dependencies),
  label: 'Gemini',
  unknownSession: [
    {
      printOnStderr: `Error resuming session: Invalid session identifier "${session_id}".\n  Searched for sessions.\n`,
    },
    { exit: 42 },
  ],
  startsAnew: false,
  isCounted: false,
  shellTool: 'run_shell_command',
  tellsFinishedTools: false,
  tellsThoughts: false,
  documents: {
    response: JSON.stringify({ response: 'Hello', session_id }),
    'response over many lines': JSON.stringify(geminiAnswer, undefined, 2),
    'array over many lines': JSON.stringify([geminiAnswer], undefined, 2),
    lines: geminiLines.map((line) => JSON.stringify(line)).join('\n'),
  },
  sent: (prompt) => (prompt.startsWith('/') ? ` ${prompt}` : prompt.replaceAll('@', '\\@')),
  promptLimit: '8388608 bytes',
  ownVariable: 'GEMINI_API_KEY',
  foreignVariable: 'ANTHROPIC_API_KEY',
}

const sessionID = 'ses_2222222222222222'
const opencodeResult = { type: 'result', text: 'Hello', session_id: sessionID }
const opencodeLines = [
  { type: 'step_start', sessionID, part: {} },
  { type: 'text', sessionID, part: { text: 'Hello' } },
  { type: 'step_finish', sessionID, part: { reason: 'stop' } },
]

const opencode: Setup = {
  newSession: 'ses_1111111111111111',
  knownSession: sessionID,
  otherSession: 'ses_3333333333333333',
  wrongSessions: ['ses_', 'ses_1 --share', 'ses_1111111111111111\n', session_id],
  create: (config, dependencies) => new OpenCodeBackend(config, dependencies),
  label: 'OpenCode',
  unknownSession: [{ printOnStderr: '\u001B[91m\u001B[1mError: \u001B[0mSession not found\n' }, { exit: 1 }],
  startsAnew: false,
  isCounted: true,
  shellTool: 'bash',
  tellsFinishedTools: true,
  tellsThoughts: true,
  documents: {
    result: JSON.stringify(opencodeResult),
    'result over many lines': JSON.stringify(opencodeResult, undefined, 2),
    'array over many lines': JSON.stringify([opencodeResult], undefined, 2),
    lines: opencodeLines.map((line) => JSON.stringify(line)).join('\n'),
  },
  sent: (prompt) => prompt,
  ownVariable: 'OPENROUTER_API_KEY',
  foreignVariable: 'OPENCODE_PASSWORD',
}

const piMessage = { role: 'assistant', content: [{ type: 'text', text: 'Hello' }], stopReason: 'stop' }
const piLines = [
  { type: 'session', version: 3, id: session_id },
  { type: 'message_update', assistantMessageEvent: { type: 'text_delta', delta: 'Hello' } },
  { type: 'message_end', message: piMessage },
  { type: 'agent_end', messages: [] },
]

const pi: Setup = {
  ...UUIDS,
  create: (config, dependencies) => new PiBackend(config, dependencies),
  label: 'Pi',
  unknownSession: [{ printOnStderr: `No session found matching '${session_id}'\n` }, { exit: 1 }],
  startsAnew: true,
  isCounted: true,
  shellTool: 'bash',
  tellsFinishedTools: false,
  tellsThoughts: true,
  documents: {
    lines: piLines.map((line) => JSON.stringify(line)).join('\n'),
    'array over many lines': JSON.stringify(piLines, undefined, 2),
  },
  sent: (prompt) => (prompt.startsWith('/') ? `\u200B${prompt}` : prompt),
  ownVariable: 'ANTHROPIC_API_KEY',
  foreignVariable: 'DISCORD_BOT_TOKEN',
}

export const SETUPS: Record<BackendName, Setup> = { claude, codex, gemini, opencode, pi }
