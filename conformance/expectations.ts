/**
 * How the five real CLIs differ: the exact words and reasons of every cell. `{model}` stands for the address of the
 * scripted model.
 */
import { userInfo } from 'node:os'
import type { AgentFailure, BackendName, FailureReason, TokenUsage } from '../src/backends/types.js'

/** A pattern where the CLI's message varies from run to run. */
export interface Failure extends Pick<AgentFailure, 'reason' | 'message'> {
  report: string | RegExp
}

export interface Expectation {
  /** Whether each turn is a separate process, with an exit code. */
  hasExitCode: boolean
  /** Whether text arrives while the model is still writing it. */
  streams: boolean
  /** The usage of one reply of the model. */
  usage: TokenUsage
  /** The events of a shell command that prints `output`. */
  shell: { toolName: string; toolInput(command: string): Record<string, unknown>; content(output: string): string }
  /** A well-formed id that no session has. */
  unknownSessionId: string
  unknownSession: Failure
  unauthorized: Failure
  rateLimited: Failure
  serverError: Failure
  /** How a prompt reaches the model, if not verbatim. */
  promptChanges: Record<string, string>
  /** Whether a system prompt stays in the conversation if the next turn has a different one. */
  remembersSystemPrompt: boolean
  /** Whether a tool that is not allowed runs anyway. */
  runsUnlistedTools: boolean
  /** Whether a session can be continued after its very first answer was cut off. */
  keepsCutSession: boolean
  /** Whether it takes `/compact`. */
  compacts?: true
  /** Whether a turn that paused at the turn limit, the first of its session, continues in a fresh session. */
  forgetsPausedTurns?: true
  /** Whether one warm process serves all sessions. */
  isShared?: true
  /** Whether a warm process refuses a session during the minute in which another process began it. */
  declinesYoungSessions?: true
  /** Whether it cannot ask for approval. */
  neverAsks?: true
  /** Whether it refuses to run in an untrusted project. */
  refusesUntrusted?: true
  /** With a limit of two turns: the most requests the model gets, and how the run ends. Absent: the limit is ignored. */
  maxTurns?: Failure & { requests: number }
}

const anthropicUsage: TokenUsage = {
  inputTokens: 100,
  outputTokens: 10,
  cacheReadTokens: 20,
  cacheWriteTokens: 5,
  reasoningTokens: 0,
  totalTokens: 135,
}

const openaiUsage: TokenUsage = {
  inputTokens: 100,
  outputTokens: 10,
  cacheReadTokens: 20,
  cacheWriteTokens: 0,
  reasoningTokens: 3,
  totalTokens: 130,
}

const unknownUuid = '00000000-0000-4000-8000-000000000000'

/** A failure the CLI reported in its wire format, with nothing on stderr. */
function saidByCli(reason: FailureReason, label: string, exitCode: number, message: string): Failure {
  return { reason, message, report: `${label} CLI error (exit ${exitCode}): ${message}` }
}

/** The CLI has no limit: the backend counts and ends it, by which time the next request may be on its way. */
const countedByBackend: Failure & { requests: number } = {
  reason: 'max_turns',
  message: 'Reached the maximum number of turns (2).',
  report: 'Reached the maximum number of turns (2).',
  requests: 3,
}

const claude: Expectation = {
  hasExitCode: true,
  streams: true,
  usage: anthropicUsage,
  shell: {
    toolName: 'Bash',
    toolInput: (command) => ({ command, description: 'Run it' }),
    content: (output) => output,
  },
  unknownSessionId: unknownUuid,
  unknownSession: {
    reason: 'session_lost',
    message: `No conversation found with session ID: ${unknownUuid}`,
    report: `Claude CLI error (exit 1): No conversation found with session ID: ${unknownUuid}\n`,
  },
  unauthorized: saidByCli('auth', 'Claude', 1, 'Failed to authenticate. API Error: 401 The key is not valid.'),
  rateLimited: saidByCli('rate_limit', 'Claude', 1, 'API Error: Request rejected (429) · Too many requests.'),
  serverError: saidByCli(
    'exit',
    'Claude',
    1,
    'API Error: 500 The model is broken. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway ({model}).',
  ),
  promptChanges: { '/help': ' /help', '/memory show': ' /memory show' },
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  keepsCutSession: true,
  compacts: true,
  maxTurns: { ...saidByCli('max_turns', 'Claude', 1, 'Reached maximum number of turns (2)'), requests: 2 },
}

const noRollout = `Error: thread/resume: thread/resume failed: no rollout found for thread id ${unknownUuid} (code -32600)`

const codex: Expectation = {
  hasExitCode: true,
  streams: false,
  usage: openaiUsage,
  shell: {
    toolName: 'command_execution',
    // In the tester's login shell.
    toolInput: (command) => ({ command: `${userInfo().shell} -lc '${command}'` }),
    content: (output) => `${output}\n`,
  },
  unknownSessionId: unknownUuid,
  unknownSession: {
    reason: 'session_lost',
    message: noRollout,
    report: `Codex CLI error (exit 1): ${noRollout}\n`,
  },
  unauthorized: saidByCli(
    'auth',
    'Codex',
    1,
    'unexpected status 401 Unauthorized: The key is not valid., url: http://{model}/v1/responses',
  ),
  rateLimited: saidByCli('rate_limit', 'Codex', 1, 'exceeded retry limit, last status: 429 Too Many Requests'),
  serverError: saidByCli(
    'exit',
    'Codex',
    1,
    'We’re currently experiencing high demand, which may cause temporary errors.',
  ),
  promptChanges: {},
  // A turn's instructions stay in its history as a message.
  remembersSystemPrompt: true,
  // Its sandbox restricts what commands can reach, not which tools exist, and it does not count turns.
  runsUnlistedTools: true,
  keepsCutSession: true,
}

/** Before it fails, the Gemini CLI prints warnings, stack traces and paths with timestamps on stderr. */
function saidByGemini(reason: FailureReason, exitCode: number, message: string): Failure {
  return { reason, message, report: new RegExp(`^Gemini CLI error \\(exit ${exitCode}\\): .`) }
}

const gemini: Expectation = {
  hasExitCode: true,
  streams: true,
  usage: openaiUsage,
  shell: {
    toolName: 'run_shell_command',
    toolInput: (command) => ({ command, description: 'Run it' }),
    content: (output) => output,
  },
  unknownSessionId: unknownUuid,
  unknownSession: {
    reason: 'session_lost',
    message: 'Error resuming session: No previous sessions found for this project.',
    report: 'Gemini CLI error (exit 42): Error resuming session: No previous sessions found for this project.\n',
  },
  unauthorized: saidByGemini('auth', 145, '[API Error: The key is not valid.]'),
  rateLimited: saidByGemini(
    'rate_limit',
    173,
    '[API Error: Too many requests.]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method',
  ),
  serverError: saidByGemini('exit', 244, '[API Error: The model is broken.]'),
  // It would run its own commands and include files.
  promptChanges: {
    '/help': ' /help',
    '/memory show': ' /memory show',
    '@/etc/hostname': '\\@/etc/hostname',
    'Look at @note.txt now': 'Look at \\@note.txt now',
  },
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  keepsCutSession: true,
  forgetsPausedTurns: true,
  maxTurns: {
    ...saidByGemini(
      'max_turns',
      53,
      'Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.',
    ),
    requests: 2,
  },
}

const opencode: Expectation = {
  hasExitCode: true,
  streams: false,
  usage: openaiUsage,
  shell: {
    toolName: 'bash',
    toolInput: (command) => ({ command, description: 'Run it' }),
    content: (output) => `${output}\n`,
  },
  unknownSessionId: 'ses_000000000000aaaaaaaaaaaaaa',
  unknownSession: {
    reason: 'session_lost',
    message: 'Error: Session not found',
    report: 'OpenCode CLI error (exit 1): Error: Session not found\n',
  },
  unauthorized: saidByCli('auth', 'OpenCode', 1, 'The key is not valid.'),
  rateLimited: saidByCli('rate_limit', 'OpenCode', 1, 'Too many requests.'),
  serverError: saidByCli('exit', 'OpenCode', 1, 'The model is broken.'),
  promptChanges: {},
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  keepsCutSession: true,
  maxTurns: countedByBackend,
}

/** Pi always exits with 0, so the report is its own message, as it came from the model's server. */
function saidByPi(reason: FailureReason, status: number, type: string, message: string): Failure {
  const body = { type: 'error', error: { type, message } }
  return { reason, message: `${status} ${message}`, report: `${status} ${JSON.stringify(body)}` }
}

const pi: Expectation = {
  hasExitCode: true,
  streams: true,
  usage: anthropicUsage,
  shell: {
    toolName: 'bash',
    toolInput: (command) => ({ command }),
    content: (output) => `${output}\n`,
  },
  unknownSessionId: unknownUuid,
  unknownSession: {
    reason: 'session_lost',
    message: `No session found matching '${unknownUuid}'`,
    report: `Pi CLI error (exit 1): No session found matching '${unknownUuid}'\n`,
  },
  unauthorized: saidByPi('auth', 401, 'authentication_error', 'The key is not valid.'),
  rateLimited: saidByPi('rate_limit', 429, 'rate_limit_error', 'Too many requests.'),
  serverError: saidByPi('exit', 500, 'api_error', 'The model is broken.'),
  // It trims its input, so only a zero-width space prevents command and template lookup.
  promptChanges: { '/help': '\u200B/help', '/memory show': '\u200B/memory show' },
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  // It stores nothing before the first answer is complete.
  keepsCutSession: false,
  maxTurns: countedByBackend,
}

export const expectations: Record<BackendName, Expectation> = { claude, codex, gemini, opencode, pi }

/** A failed turn without a separate process: only the agent's message. */
function inWords({ reason, message }: Pick<Failure, 'reason' | 'message'>): Failure {
  return { reason, message, report: message }
}

function withoutProcess(expected: Expectation): Expectation {
  const { maxTurns } = expected
  return {
    ...expected,
    hasExitCode: false,
    unknownSession: inWords(expected.unknownSession),
    unauthorized: inWords(expected.unauthorized),
    rateLimited: inWords(expected.rateLimited),
    serverError: inWords(expected.serverError),
    ...(maxTurns && { maxTurns: { ...inWords(maxTurns), requests: maxTurns.requests } }),
  }
}

export const opencodeServerExpectation: Expectation = {
  ...withoutProcess(opencode),
  streams: true,
  compacts: true,
  unknownSession: inWords({ reason: 'session_lost', message: `Session not found: ${opencode.unknownSessionId}` }),
}

/** The model server's words to the Gemini CLI. */
function saidToGemini(reason: FailureReason, code: number, status: string, message: string): Failure {
  return { reason, message, report: JSON.stringify({ error: { code, message, status } }) }
}

/** For agents with a warm mode. */
export const liveExpectations: Record<Exclude<BackendName, 'opencode'>, Expectation> = {
  claude: withoutProcess(claude),
  codex: {
    ...withoutProcess(codex),
    isShared: true,
    streams: true,
    compacts: true,
    unknownSession: inWords({
      reason: 'session_lost',
      message: `no rollout found for thread id ${unknownUuid}`,
    }),
  },
  gemini: {
    ...gemini,
    hasExitCode: false,
    isShared: true,
    declinesYoungSessions: true,
    // Cached tokens are part of the input, and thinking is not counted.
    usage: {
      ...openaiUsage,
      inputTokens: 120,
      cacheReadTokens: 0,
      outputTokens: 7,
      reasoningTokens: 0,
      totalTokens: 127,
    },
    shell: {
      toolName: 'run_shell_command',
      toolInput: (command) => ({ title: command }),
      content: () => '',
    },
    unknownSession: inWords({
      reason: 'session_lost',
      message: 'No previous sessions found for this project.',
    }),
    unauthorized: saidToGemini('auth', 401, 'UNAUTHENTICATED', 'The key is not valid.'),
    rateLimited: inWords({ reason: 'rate_limit', message: 'Too many requests.' }),
    serverError: saidToGemini('exit', 500, 'INTERNAL', 'The model is broken.'),
    promptChanges: { '/help': '\\/help', '/memory show': '\\/memory show' },
    maxTurns: countedByBackend,
  },
  pi: {
    neverAsks: true,
    ...pi,
    hasExitCode: false,
    compacts: true,
    unknownSession: inWords(pi.unknownSession),
  },
}
