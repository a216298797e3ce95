import type { PodAddress, PodProblem } from '../kubernetes/types.js'
import type { BackendName } from './agents.js'

/**
 * The contract between the gateway and a coding agent.
 *
 * `BackendAdapter` is what other code calls; `AgentBackend` adds the one method everything is built on, `run`.
 */

export { BACKEND_NAMES, type BackendName } from './agents.js'

/** Whether an agent's process ends with its turn (`oneshot`) or stays warm for the next (`live`). `auto` means `live` if
 *  the installed version is known to work as a warm process. */
export const AGENT_MODES = ['oneshot', 'live', 'auto'] as const

export type AgentMode = (typeof AGENT_MODES)[number]

/** Whether an agent uses its tools freely or asks a person first. */
export const PERMISSIONS = ['allow', 'ask'] as const

export type Permissions = (typeof PERMISSIONS)[number]

export interface BackendAdapterConfig {
  /** A name looked up in PATH, or a path to the executable. */
  cliPath: string
  workingDir: string
  queryTimeoutMs: number
  /** The agent's own tool names; empty means every tool. */
  allowedTools: string[]
  maxTurns: number
  /** False if `maxTurns` is a default: an agent that cannot enforce it then need not warn. */
  isMaxTurnsChosen?: boolean
  model?: string
}

export interface BackendEventResult {
  responseText?: string
  sessionId?: string
  isError: boolean
}

/** Contract: called with deltas in order, one call at a time; a slow or failing call never disturbs the run. */
export type StreamCallback = (text: string) => Promise<void>

export interface BackendAdapter {
  name(): string
  execute(
    prompt: string,
    systemPrompt: string,
    sessionId?: string,
    onStream?: StreamCallback,
  ): Promise<BackendEventResult>
  validate(): Promise<boolean>
}

export interface AgentBackend extends BackendAdapter {
  name(): BackendName

  /**
   * Runs one turn.
   *
   * Small pieces of text may be combined into larger ones; the first is never held back.
   *
   * Contract: yields `started` at most once, before any other event, and `complete` exactly once, last, even after a
   * kill, a time-out, a crash or garbage on stdout. Every `tool_use` is closed by a `tool_result`. If the agent fails,
   * `complete` has `isError`; `run` throws only if it is called wrongly. When the iterator ends, even because the
   * consumer left early, no process of the run is alive, except a warm agent.
   */
  run(request: AgentRequest, signal: AbortSignal): AsyncIterable<AgentEvent>

  capabilities(): AgentCapabilities

  /** The models the installed CLI lists; others may work too. Sends nothing to a model. Contract: never rejects; empty
   *  if the CLI lists none. */
  models(): Promise<string[]>

  /** Reads the installed CLI's version, its login and its known problems. Sends nothing to a model. */
  probe(options?: ProbeOptions): Promise<AgentProbe>
}

export interface AgentRequest {
  prompt: string
  /** The prompt is one of the CLI's own commands, such as `/review`, and must reach it as such. A CLI without commands
   *  refuses it. `/compact` is understood for every agent that supports it: the session is summarised to make room,
   *  with the words after it as its focus if the agent takes one. */
  isCommand?: boolean
  /** Marks the processes of this run; generated if left out. */
  runId?: string
  systemPrompt?: string
  /** The CLI's own id of the conversation to continue. */
  sessionId?: string
  /** The session's usage before this turn, from its last `AgentResult.sessionUsage`. */
  sessionUsage?: TokenUsage
  /** This and the following fields override the backend's configuration for this turn. */
  mode?: AgentMode
  model?: string
  allowedTools?: string[]
  /** If left out, a session this backend has seen continues in the directory where it began. */
  workingDir?: string
  /** The pod the CLI runs in; if left out, it runs on this machine. In a pod, `workingDir` is a directory in the
   *  container and defaults to `/workspace`. */
  pod?: PodAddress
  timeoutMs?: number
  /** The longest the agent may stay silent; 0 turns the watchdog off. */
  idleTimeoutMs?: number
  maxTurns?: number
  /** Nothing in the working directory may configure the agent or run unasked. If that cannot be guaranteed, the turn
   *  fails with `refused`. */
  isUntrusted?: boolean
  /** Variables for this run's processes only. */
  environment?: Record<string, string>
  /** Files for this run only, removed when it ends; the variable holds the path. */
  secretFiles?: SecretFile[]
  /** Data the caller sent along with the prompt, under its own names. No built-in agent reads it. */
  metadata?: Record<string, string>
  /** How the operator wants the CLI started. */
  command?: AgentCommand
  /** Called for each tool call the agent wants approved. If left out, it need not ask. An agent that cannot ask fails with
   *  `refused`. */
  approve?: Approve
  /** Receives a way to steer the agent while it works, as soon as there is one. Not every agent has one. */
  onSteerable?(steer: Steer): void
}

/** A tool call that an agent wants approved. */
export interface ApprovalRequest {
  toolName: string
  toolInput: Record<string, unknown>
}

/** `message` is passed on to the agent. */
export type ApprovalAnswer = { isAllowed: true } | { isAllowed: false; message: string }

/** Contract: never rejects; settles soon after the signal. The turn's clock is paused meanwhile. */
export type Approve = (request: ApprovalRequest, signal: AbortSignal) => Promise<ApprovalAnswer>

/** Contract: never rejects; true once the agent has taken the text into the running turn, false if it never will. */
export type Steer = (text: string) => Promise<boolean>

/** The expanded command template of the operator. It adds to the arguments the backend passes itself. */
export interface AgentCommand {
  /** A name looked up in PATH, or a path; defaults to the configured one. */
  executable?: string
  /** In addition to the backend's own. Contract: user text is never at the start of an argument that begins with `-`. */
  args: string[]
  /** `args` before substitution; if left out, nothing was substituted. The meaning of each element is read from these, so
   *  user text cannot change it. */
  template?: string[]
  /** Replaces the backend's own arguments for continuing or beginning a session. */
  sessionArgs?: string[]
  /** The CLI's output format; defaults to the backend's preferred one. `text` has neither session nor usage. */
  format?: 'text' | 'json'
  /** Codex runs read-only, unless `args` say otherwise. */
  isReadOnly?: boolean
}

export interface SecretFile {
  variable: string
  content: string
}

/** Tokens of one turn. `inputTokens` excludes cache reads and writes. */
export interface TokenUsage {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** Part of `outputTokens`, if the CLI reports it. */
  reasoningTokens: number
  totalTokens: number
}

/** `metadata` holds agent-specific details. */
export type AgentEventBody = { metadata?: Record<string, unknown> } & (
  | { type: 'started'; sessionId?: string; model?: string }
  | { type: 'output'; content: string; stream: 'stdout' }
  | { type: 'thinking'; content: string }
  | { type: 'tool_use'; toolId: string; toolName: string; toolInput: Record<string, unknown> }
  | { type: 'tool_result'; toolId: string; toolName: string; content: string; isError: boolean }
  /** `isTechnical`: for developers and the log, of no use to a person. */
  | { type: 'notice'; content: string; isTechnical?: true }
  | { type: 'error'; content: string; reason: FailureReason }
  | { type: 'complete'; result: AgentResult }
)

/** `timestamp` is milliseconds since the epoch. */
export type AgentEvent = AgentEventBody & { timestamp: number }

export interface AgentResult {
  isError: boolean
  /** The answer of record: the CLI's own final text, character for character. */
  finalOutput?: string
  sessionId?: string
  /** Absent if no process ran, or it did not exit on its own after its answer. A process ended by a signal has 128 plus
   *  the signal's number, as in a shell. */
  exitCode?: number
  durationMs: number
  /** Of this turn. Absent if the CLI did not report it, or counts per session without `sessionUsage` being given. */
  usage?: TokenUsage
  /** Of the whole session, if the CLI counts that way; to be passed in with the next request. */
  sessionUsage?: TokenUsage
  costUsd?: number
  failure?: AgentFailure
  metadata?: Record<string, unknown>
}

/**
 * - `exit`: the agent ended with an error not covered below, such as a crash or a failing model server
 * - `timeout`: total time or silence exceeded
 * - `auth`: not logged in, or the key was refused
 * - `model_unknown`: the model does not exist, or this login may not use it
 * - `prompt_too_long`: the conversation with the prompt is longer than the model can take
 * - `session_lost`: the session to continue does not exist here, or is damaged
 * - `refused`: the model, the CLI or the gateway refused
 * - `spawn`: the process could not be started
 * - `no_result`: the process ended normally, but without the agent's own final word
 */
export type FailureReason =
  | 'exit'
  | 'timeout'
  | 'cancelled'
  | 'auth'
  | 'rate_limit'
  | 'model_unknown'
  | 'prompt_too_long'
  | 'session_lost'
  | 'max_turns'
  | 'refused'
  | 'spawn'
  | 'no_result'

export interface AgentFailure {
  reason: FailureReason
  /** For people: the agent's own words, if it had any. */
  message: string
  /** For callers of `execute`: a sentence with fixed wording. */
  report: string
  /** When a rate limit ends, in milliseconds since the epoch, if the agent said so. */
  retryAt?: number
  /** Permanent: a retry cannot succeed until somebody fixes the cause. */
  isLasting?: boolean
  /** The problem with the pod, if the agent runs in one and the pod caused the failure. */
  podProblem?: PodProblem
  /** The beginning and end of the CLI's stderr, if any. */
  stderr?: string
}

export interface AgentCapabilities {
  provider: BackendName
  supportsSessionContinuation: boolean
  supportsModelSelection: boolean
  supportsToolControl: boolean
  supportsMaxTurns: boolean
  /** Whether its session keeps a turn that was stopped at the turn limit. */
  remembersPausedTurns: boolean
  /** Whether it can take a prompt that begins with a slash as one of its own commands. */
  supportsCommands: boolean
  /** Whether it takes `/compact`, by a command or otherwise. */
  supportsCompact: boolean
  /** Whether text arrives while the model is still writing it. */
  supportsStreaming: boolean
  /** The last result of `models`; empty if it was never called, or the CLI lists none. Others may work too. */
  supportedModels: string[]
  /** The configured model; if absent, the CLI chooses. */
  defaultModel?: string
  /** In bytes or characters, as the CLI counts; 0 is unlimited. */
  maxPromptLength: number
}

export interface ProbeOptions {
  /** A name looked up in PATH, or a path; defaults to the configured one. */
  executable?: string
  /** Names of variables that turns get in addition to the environment, such as those of stored credentials. */
  storedVariables?: readonly string[]
}

/**
 * Whether an agent is logged in, as far as that is known without a request to its model. Nothing here is secret.
 *
 * - `how`: by what, such as the name of a variable; follows "logged in with"
 * - `why`: why it is unknown, as a sentence
 * - `fix`: the command that logs it in, for the first time or again, in a terminal on the gateway's machine
 * - `next`: what to do in the program that this command starts, if it does not ask
 */
export type AgentLogin = { fix: string; next?: string } & (
  | { state: 'logged-in'; how: string }
  | { state: 'logged-out' }
  | { state: 'unknown'; why: string }
)

export interface AgentProbe {
  isFound: boolean
  /** Path of the executable if found, or the address of the server. */
  path?: string
  version?: string
  /** The command that installs it if it was not found, or its newest version if it is too old. Absent if the configuration
   *  names a path: that is not where it would be installed. */
  install?: string
  /** It is the built-in demo agent, which is always ready. */
  isDemo?: true
  /** Absent if it was not found, and for the demo agent, which needs no login. */
  login?: AgentLogin
  /** The default model, if the configuration or the CLI's own settings name one. */
  model?: string
  /** What the operator should know or do, one sentence each. */
  problems: string[]
  /** How its turns run, if it was found. */
  mode?: Exclude<AgentMode, 'auto'>
  /** Why its process is not kept warm even though that is enabled, as a sentence. */
  whyNotLive?: string
}
