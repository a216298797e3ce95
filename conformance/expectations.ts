/**
 * What each real command line does, where the five differ: the exact words and reasons of every cell.
 * `{model}` stands for the address of the scripted model.
 */
import { userInfo } from 'node:os'
import type { AgentFailure, BackendName, FailureReason, TokenUsage } from '../src/backends/types.js'

/** A pattern stands where the CLI's words hold what differs from run to run. */
export interface Failure extends Pick<AgentFailure, 'reason' | 'message'> {
  report: string | RegExp
}

export interface Expectation {
  /** Whether a turn is a process, which has an exit code. */
  hasExitCode: boolean
  /** Whether text arrives while the model is still writing it. */
  streams: boolean
  /** What one reply of the model counts as. */
  usage: TokenUsage
  /** The events of a shell command that prints `output`. */
  shell: { toolName: string; toolInput(command: string): Record<string, unknown>; content(output: string): string }
  /** An id of the right form that no session has. */
  unknownSessionId: string
  unknownSession: Failure
  unauthorized: Failure
  rateLimited: Failure
  serverError: Failure
  /** How a prompt reaches the model where it is not as it was given. */
  promptChanges: Record<string, string>
  /** Whether a system prompt stays in the conversation when the next turn has another. */
  remembersSystemPrompt: boolean
  /** Whether a tool that is not among the allowed ones runs all the same. */
  runsUnlistedTools: boolean
  /** Whether a session goes on whose very first answer was cut off. */
  keepsCutSession: boolean
  /** Whether one process that stays is for all sessions. */
  isShared?: true
  /** Whether a process that stays takes no session in the minute in which that began, unless it began there. */
  declinesYoungSessions?: true
  /** Whether it has no way to ask before it uses a tool. */
  neverAsks?: true
  /** Whether it does not work where the project is not trusted. */
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

/** The CLI knows no limit: the backend counts and ends it, and by then the next request may be on its way. */
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
  maxTurns: { ...saidByCli('max_turns', 'Claude', 1, 'Reached maximum number of turns (2)'), requests: 2 },
}

const noRollout = `Error: thread/resume: thread/resume failed: no rollout found for thread id ${unknownUuid} (code -32600)`

const codex: Expectation = {
  hasExitCode: true,
  streams: false,
  usage: openaiUsage,
  shell: {
    toolName: 'command_execution',
    // In the login shell of whoever runs the tests.
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
  // What a turn was told stays in its history as a message.
  remembersSystemPrompt: true,
  // Its sandbox restricts what commands can reach, not which tools there are, and it counts no turns.
  runsUnlistedTools: true,
  keepsCutSession: true,
}

/** On stderr the Gemini CLI prints warnings, stack traces and paths with the time in them before it fails. */
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
  // It would run its own commands and put files before the model.
  promptChanges: {
    '/help': ' /help',
    '/memory show': ' /memory show',
    '@/etc/hostname': '\\@/etc/hostname',
    'Look at @note.txt now': 'Look at \\@note.txt now',
  },
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  keepsCutSession: true,
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

/** Pi ends with exit code 0 whatever happened, so the report is what it said, as it came from the model's server. */
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
  // It trims its input, so only a space of no width keeps commands and templates from being looked up.
  promptChanges: { '/help': '\u200B/help', '/memory show': '\u200B/memory show' },
  remembersSystemPrompt: false,
  runsUnlistedTools: false,
  // It writes nothing down before the first answer is whole.
  keepsCutSession: false,
  maxTurns: countedByBackend,
}

export const expectations: Record<BackendName, Expectation> = { claude, codex, gemini, opencode, pi }

/** A failure of a turn that is no process of its own: nothing but the words of the agent. */
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
  unknownSession: inWords({ reason: 'session_lost', message: `Session not found: ${opencode.unknownSessionId}` }),
}

/** As the model's server said it to the Gemini CLI. */
function saidToGemini(reason: FailureReason, code: number, status: string, message: string): Failure {
  return { reason, message, report: JSON.stringify({ error: { code, message, status } }) }
}

/** Of those whose process can stay. */
export const liveExpectations: Record<Exclude<BackendName, 'opencode'>, Expectation> = {
  claude: withoutProcess(claude),
  codex: {
    ...withoutProcess(codex),
    isShared: true,
    streams: true,
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
    // What the cache held is in the input, and thinking is left out.
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
    unknownSession: inWords(pi.unknownSession),
  },
}
