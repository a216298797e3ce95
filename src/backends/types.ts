import type { PodAddress, PodProblem } from '../kubernetes/types.js'
import { AGENTS } from './agents.js'

/**
 * The contract between the gateway and a coding agent.
 *
 * `BackendAdapter` is what other code calls; `AgentBackend` adds the one method everything is built on, `run`.
 */

export type BackendName = keyof typeof AGENTS

export const BACKEND_NAMES = Object.keys(AGENTS) as readonly BackendName[]

/** Whether the process of an agent ends with its turn (`oneshot`) or stays warm for the next; `auto` is `live` where the
 *  installed version is known to work so. */
export const AGENT_MODES = ['oneshot', 'live', 'auto'] as const

export type AgentMode = (typeof AGENT_MODES)[number]

/** Whether an agent uses its tools without asking, or asks a person before. */
export const PERMISSIONS = ['allow', 'ask'] as const

export type Permissions = (typeof PERMISSIONS)[number]

export interface BackendAdapterConfig {
  /** Name looked up in PATH, or a path to the executable. */
  cliPath: string
  workingDir: string
  queryTimeoutMs: number
  /** The agent's own tool names; empty means every tool. */
  allowedTools: string[]
  maxTurns: number
  /** False where `maxTurns` is a default: an agent that cannot keep to it then need not warn. */
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
   * Text that comes in many small pieces may be yielded in fewer, larger ones; the first is not held back.
   *
   * Contract: yields `started` at most once, before any other event, and `complete` exactly once, last: also after
   * a kill, a time-out, a crash or garbage on stdout. Every `tool_use` is closed by a `tool_result`. Failures of the
   * agent are a `complete` with `isError`; it throws only when called wrongly. When the iterator ends, whether by
   * itself or because the consumer left early, no process of the run is alive, except a warm agent.
   */
  run(request: AgentRequest, signal: AbortSignal): AsyncIterable<AgentEvent>

  capabilities(): AgentCapabilities

  /** Reads the version of the installed CLI and what is known about it; `doctor` and `start` show it. */
  probe(): Promise<AgentProbe>
}

export interface AgentRequest {
  prompt: string
  /** Marks the processes of this run; made up when left out. */
  runId?: string
  systemPrompt?: string
  /** The CLI's own id of the conversation to continue. */
  sessionId?: string
  /** What the session had used before this turn, as its last `AgentResult.sessionUsage` said. */
  sessionUsage?: TokenUsage
  /** The rest overrides the backend's configuration for this one turn. */
  mode?: AgentMode
  model?: string
  allowedTools?: string[]
  /** Left out, a session this backend has seen is continued where it began. */
  workingDir?: string
  /** Where the CLI runs; left out, here. `workingDir` is then a directory of the container, `/workspace` if left out. */
  pod?: PodAddress
  timeoutMs?: number
  /** Longest silence of the agent; 0 switches the watchdog off. */
  idleTimeoutMs?: number
  maxTurns?: number
  /** Nothing in the working directory may configure the agent or run by itself; where that cannot be had, `refused`. */
  isUntrusted?: boolean
  /** Variables for the processes of this run alone. */
  environment?: Record<string, string>
  /** Files for this run alone, gone with it; the agent finds the path in the variable. */
  secretFiles?: SecretFile[]
  /** What whoever asked said beside the prompt, by names of their own. No agent that is built in takes anything from it. */
  metadata?: Record<string, string>
  /** How the operator wants the CLI to be started. */
  command?: AgentCommand
  /** Asked before each tool for which the agent wants to be allowed; left out, it need not ask. An agent that cannot ask is
   *  `refused`. */
  approve?: Approve
  /** Gets a way to talk to the agent while it works, as soon as there is one. An agent may have none. */
  onSteerable?(steer: Steer): void
}

/** What an agent wants to be allowed. */
export interface ApprovalRequest {
  toolName: string
  toolInput: Record<string, unknown>
}

/** `message` is told to the agent. */
export type ApprovalAnswer = { isAllowed: true } | { isAllowed: false; message: string }

/** Contract: never rejects; settles soon after the signal. While it is waited for, the time of the turn stands still. */
export type Approve = (request: ApprovalRequest, signal: AbortSignal) => Promise<ApprovalAnswer>

/** Contract: never rejects; true when the agent has taken the words into the turn under way, false when it never will. */
export type Steer = (text: string) => Promise<boolean>

/** What a command template of the operator has come to. It adds to what the backend itself gives its CLI. */
export interface AgentCommand {
  /** A name looked up in PATH, or a path; left out, the configured one. */
  executable?: string
  /** Beside the backend's own. Contract: no text of a person stands at the beginning of one that begins with `-`. */
  args: string[]
  /** `args` before anything was put in; left out, nothing was. What an element means is read from these, so that nobody
   *  changes it by what they write. */
  template?: string[]
  /** In place of those by which the backend continues a session, or begins one. */
  sessionArgs?: string[]
  /** How the CLI prints; left out, as the backend likes best. `text` has neither session nor usage. */
  format?: 'text' | 'json'
  /** Codex only looks, unless `args` say otherwise. */
  isReadOnly?: boolean
}

export interface SecretFile {
  variable: string
  content: string
}

/** Tokens of one turn. `inputTokens` leaves out what came from or went to the cache. */
export interface TokenUsage {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** Part of `outputTokens`, where the CLI tells. */
  reasoningTokens: number
  totalTokens: number
}

/** `metadata` holds what only one agent tells. */
export type AgentEventBody = { metadata?: Record<string, unknown> } & (
  | { type: 'started'; sessionId?: string; model?: string }
  | { type: 'output'; content: string; stream: 'stdout' }
  | { type: 'thinking'; content: string }
  | { type: 'tool_use'; toolId: string; toolName: string; toolInput: Record<string, unknown> }
  | { type: 'tool_result'; toolId: string; toolName: string; content: string; isError: boolean }
  | { type: 'notice'; content: string }
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
  /** Absent when no process ran, or it did not exit by itself after its answer. A process ended by a signal has 128 plus its number, as in a shell. */
  exitCode?: number
  durationMs: number
  /** Of this turn. Absent when the CLI did not tell, or counts per session and `sessionUsage` was not given. */
  usage?: TokenUsage
  /** Of the whole session, from a CLI that counts that way; goes back in with the next request. */
  sessionUsage?: TokenUsage
  costUsd?: number
  failure?: AgentFailure
  metadata?: Record<string, unknown>
}

/**
 * - `exit`: the agent ended with an error that has no more special name, such as a crash or a failing model server
 * - `timeout`: total time or silence exceeded
 * - `auth`: not logged in, or the key was refused
 * - `session_lost`: the session to continue does not exist here, or is damaged
 * - `refused`: the model, the CLI or we would not do this
 * - `spawn`: the process could not be started
 * - `no_result`: the process ended well without the agent's own final word
 */
export type FailureReason =
  | 'exit'
  | 'timeout'
  | 'cancelled'
  | 'auth'
  | 'rate_limit'
  | 'session_lost'
  | 'max_turns'
  | 'refused'
  | 'spawn'
  | 'no_result'

export interface AgentFailure {
  reason: FailureReason
  /** For people: the agent's own words where it had any. */
  message: string
  /** For callers of `execute`: the sentence the gateway document prescribes. */
  report: string
  /** Milliseconds since the epoch when a rate limit is over, if the agent said so. */
  retryAt?: number
  /** It stays so until somebody has put it right. */
  isLasting?: boolean
  /** What it was, where the agent runs in a pod and it is the pod's fault. */
  podProblem?: PodProblem
  /** The beginning and the end of what the CLI printed on stderr, if anything. */
  stderr?: string
}

export interface AgentCapabilities {
  provider: BackendName
  supportsSessionContinuation: boolean
  supportsModelSelection: boolean
  supportsToolControl: boolean
  supportsMaxTurns: boolean
  /** Whether text arrives while the model is still writing it. */
  supportsStreaming: boolean
  /** Models known by name; empty where any the provider has may be named. */
  supportedModels: string[]
  /** The one configured; without it the CLI chooses. */
  defaultModel?: string
  /** In bytes or characters, as the CLI counts; 0 is unlimited. */
  maxPromptLength: number
}

export interface AgentProbe {
  isFound: boolean
  /** Where the executable is, when found; or where a server is looked for. */
  path?: string
  version?: string
  /** What an operator should know or do, one sentence each. */
  problems: string[]
  /** How its turns are taken, where it is found. */
  mode?: Exclude<AgentMode, 'auto'>
  /** Why its process does not stay although it might: a sentence. */
  whyNotLive?: string
}
