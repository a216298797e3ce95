import { messageOf } from '../errors.js'
import { classifyFailure, type FailureSign } from './failures.js'
import { type JsonObject, JsonReader } from './jsonl.js'
import type { Turn } from './turn.js'
import type { AgentEventBody, BackendEventResult, FailureReason, TokenUsage } from './types.js'

/** What the CLI itself said about how the turn ended. */
export type Verdict =
  | { isError: false; text: string }
  /** Without a reason, the message tells it. */
  | { isError: true; message: string; reason?: FailureReason | undefined; retryAt?: number }

/** A failure we decide ourselves. */
export interface Failed {
  reason: FailureReason
  message: string
}

interface ToolResult {
  toolId: string
  /** May be left out when its `tool_use` had it. */
  toolName?: string
  content: string
  isError: boolean
  metadata?: Record<string, unknown>
}

/**
 * Turns what one CLI prints during one turn into events, and remembers what the turn came to.
 *
 * A subclass knows one wire format. It may trust the shapes it captured: a value that breaks them makes `translate`
 * throw, and `accept` turns that into a notice.
 */
export abstract class Translation {
  sessionId?: string
  usage?: TokenUsage
  sessionUsage?: TokenUsage
  costUsd?: number
  metadata?: Record<string, unknown>
  /** The final word so far; a later one replaces it. Absent until the CLI has spoken it. */
  verdict?: Verdict
  /** Set when going on would be wrong, such as in somebody else's session: the run is ended with this failure. */
  mustStop?: Failed

  #isInText = false
  #endsWithNewline = true
  #turns = 0
  #unknownKinds = new Set<string>()

  /** Without a turn, a finished output is read and nothing is known about how it came to be. */
  constructor(
    private readonly emit: (event: AgentEventBody) => void,
    protected readonly turn?: Turn,
  ) {}

  protected abstract translate(value: JsonObject): void

  accept(value: JsonObject): void {
    try {
      this.translate(value)
    } catch (error) {
      this.notice(`Not understood from the agent: ${excerpt(JSON.stringify(value))} (${messageOf(error)})`)
    }
  }

  /** A line that is no JSON. */
  acceptText(line: string): void {
    this.notice(excerpt(line))
  }

  protected started(sessionId: string | undefined, model?: string): void {
    if (sessionId !== undefined) this.sessionId = sessionId
    this.emit({ type: 'started', ...(this.sessionId && { sessionId: this.sessionId }), ...(model && { model }) })
  }

  /** As `started`, for a CLI that starts a new session where it does not find the one it was asked for. */
  protected startedOrLost(sessionId: string): void {
    const asked = this.turn?.sessionId
    if (asked === undefined || asked.toLowerCase() === sessionId.toLowerCase()) this.started(sessionId)
    else this.mustStop = { reason: 'session_lost', message: `The agent did not find the session ${asked}.` }
  }

  /** A round of tools is over and the model would be asked again, for a CLI that has no limit of its own. */
  protected countTurn(): void {
    const { maxTurns = 0 } = this.turn ?? {}
    this.#turns += 1
    if (this.#turns !== maxTurns) return
    this.mustStop = { reason: 'max_turns', message: `Reached the maximum number of turns (${maxTurns}).` }
  }

  /** Text for the person. Parts the agent wrote separately, such as before and after a tool, are set apart. */
  protected output(text: string): void {
    if (text === '') return
    const gap = this.#isInText || this.#endsWithNewline ? '' : '\n\n'
    this.#isInText = true
    this.#endsWithNewline = text.endsWith('\n')
    this.emit({ type: 'output', content: gap + text, stream: 'stdout' })
  }

  /** The next text is a new part. */
  protected endText(): void {
    this.#isInText = false
  }

  protected thinking(text: string): void {
    if (text !== '') this.emit({ type: 'thinking', content: text })
  }

  protected toolUse(toolId: string, toolName: string, toolInput: Record<string, unknown>): void {
    this.endText()
    this.emit({ type: 'tool_use', toolId, toolName, toolInput })
  }

  protected toolResult(result: ToolResult): void {
    this.emit({ type: 'tool_result', toolName: '', ...result })
  }

  protected notice(content: string): void {
    this.emit({ type: 'notice', content })
  }

  /** CLIs grow new kinds of events every week: each is told once. */
  protected unknown(kind: unknown): void {
    const name = excerpt(String(kind))
    if (this.#unknownKinds.has(name)) return
    this.#unknownKinds.add(name)
    this.notice(`The agent sent an event of an unknown kind: ${name}`)
  }
}

export const PARSE_FAILURE = 'Failed to parse CLI output'

/** The reader that feeds a translation: the same for a stream and for a finished output. */
export function readInto(translation: Translation, maxCharacters: number, onText?: (line: string) => void): JsonReader {
  const sink = {
    object: (value: JsonObject) => translation.accept(value),
    text(line: string) {
      onText?.(line)
      translation.acceptText(line)
    },
  }
  return new JsonReader(sink, maxCharacters)
}

export function foldOutput(
  stdout: string,
  translation: Translation,
  failureSigns: readonly FailureSign[],
): BackendEventResult {
  const reader = readInto(translation, Infinity)
  for (const line of stdout.split('\n')) reader.line(line)
  reader.end()

  const { verdict } = translation
  const sessionId = translation.sessionId === undefined ? {} : { sessionId: translation.sessionId }
  if (verdict === undefined) return { isError: true, responseText: PARSE_FAILURE, ...sessionId }
  if (!verdict.isError) return { isError: false, responseText: verdict.text, ...sessionId }
  const reason = verdict.reason ?? classifyFailure(verdict.message, failureSigns)
  return { isError: true, responseText: verdict.message, ...(reason !== 'session_lost' && sessionId) }
}

type Counts = { [Name in Exclude<keyof TokenUsage, 'totalTokens'>]?: number | undefined }

/** What a CLI does not count is 0. */
export function tokenUsage(counts: Counts): TokenUsage {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = counts
  const totalTokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, totalTokens }
}

export function combineUsage(a: TokenUsage, b: TokenUsage, sign: 1 | -1 = 1): TokenUsage {
  return {
    inputTokens: a.inputTokens + sign * b.inputTokens,
    outputTokens: a.outputTokens + sign * b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + sign * b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + sign * b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + sign * b.reasoningTokens,
    totalTokens: a.totalTokens + sign * b.totalTokens,
  }
}

const EXCERPT_CHARACTERS = 500

function excerpt(text: string): string {
  return text.length <= EXCERPT_CHARACTERS ? text : `${text.slice(0, EXCERPT_CHARACTERS)}…`
}
