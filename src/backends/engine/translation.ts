import { messageOf } from '../../errors.js'
import type { PodProblem } from '../../kubernetes/types.js'
import { classifyFailure, type FailureSign } from './failures.js'
import { isObject, type JsonObject, JsonReader } from './jsonl.js'
import type { Turn } from './turn.js'
import type { AgentEventBody, BackendEventResult, FailureReason, TokenUsage } from '../types.js'

/** What the CLI itself said about how the turn ended. */
export type Verdict =
  | { isError: false; text: string }
  | { isError: true; message: string; reason?: FailureReason; retryAfterMs?: number }

/** A failure we decide ourselves. */
export interface Failed {
  reason: FailureReason
  message: string
  /** As in `AgentFailure`. */
  isLasting?: boolean
  podProblem?: PodProblem
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
  /** Whether the turn is over with that verdict: the CLI has not gone on working since. */
  isFinished = false
  /** What went wrong last, in case there never is a final word. */
  complaint?: string
  /** Set when going on would be wrong, such as in somebody else's session: the run is ended with this failure. */
  mustStop?: Failed
  /** How many values it was given. */
  acceptedCount = 0

  #hasOutput = false
  #isInText = false
  #endsWithNewline = true
  #turns = 0
  #unknownKinds = new Set<string>()
  #unreadableCount = 0

  /** Without a turn, a finished output is read and nothing is known about how it came to be. */
  constructor(
    private readonly tell: (event: AgentEventBody) => void,
    protected readonly turn?: Turn,
  ) {}

  protected abstract translate(value: JsonObject): void

  accept(value: JsonObject): void {
    this.acceptedCount += 1
    try {
      this.translate(value)
    } catch (error) {
      this.#unreadable(`Not understood: an event of the kind ${nameOf(value['type'])} (${messageOf(error)})`)
    }
  }

  /** A line that is no JSON. */
  acceptText(line: string): void {
    this.#unreadable(excerpt(line))
  }

  /** An id that is none is left out: the answer beside it counts more. */
  protected inSession(sessionId: unknown): void {
    if (typeof sessionId === 'string') this.sessionId = sessionId
  }

  protected started(sessionId: unknown, model?: unknown): void {
    this.inSession(sessionId)
    this.emit({
      type: 'started',
      ...(this.sessionId && { sessionId: this.sessionId }),
      ...(typeof model === 'string' && { model }),
    })
  }

  /** The answer is also what streams, if nothing did. */
  protected succeeded(answer: string): void {
    if (!this.#hasOutput) this.output(answer)
    this.verdict = { isError: false, text: text(answer) }
    this.isFinished = true
  }

  /** Without a reason, the message tells it. */
  protected failed(message = 'The agent gave no reason.', reason?: FailureReason, retryAfterMs?: number): void {
    this.verdict = {
      isError: true,
      message: text(message),
      ...(reason && { reason }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
    this.isFinished = true
  }

  /** The verdict was not the end, or may not be: the CLI works on. */
  protected goesOn(): void {
    this.isFinished = false
  }

  private emit(event: AgentEventBody): void {
    this.goesOn()
    this.tell(event)
  }

  /** Something went wrong, but the CLI may still get over it. */
  protected complained(message: string): void {
    this.complaint = text(message)
    this.notice(message)
  }

  /** For a CLI that starts a new session where it does not find the one it was asked for: that one is lost. */
  protected isAskedSession(sessionId: unknown): boolean {
    const asked = this.turn?.sessionId
    if (asked === undefined || typeof sessionId !== 'string') return true
    // Arguments of the operator may want another one, such as a fork.
    if (this.turn?.command?.sessionArgs) return true
    if (asked.toLowerCase() === sessionId.toLowerCase()) return true
    this.mustStop = { reason: 'session_lost', message: `The agent did not find the session ${asked}.` }
    return false
  }

  /** A round of tools is over and the model would be asked again, for a CLI that has no limit of its own. */
  protected countTurn(): void {
    const { maxTurns = 0 } = this.turn ?? {}
    this.#turns += 1
    if (this.#turns !== maxTurns) return
    this.mustStop = { reason: 'max_turns', message: `Reached the maximum number of turns (${maxTurns}).` }
  }

  /** Text for the person. Parts the agent wrote separately, such as before and after a tool, are set apart. */
  protected output(part: string): void {
    if (text(part) === '') return
    this.#hasOutput = true
    const gap = this.#isInText || this.#endsWithNewline ? '' : '\n\n'
    this.#isInText = true
    this.#endsWithNewline = part.endsWith('\n')
    this.emit({ type: 'output', content: gap + part, stream: 'stdout' })
  }

  /** The next text is a new part. */
  protected endText(): void {
    this.#isInText = false
  }

  protected thinking(part: string): void {
    if (text(part) !== '') this.emit({ type: 'thinking', content: part })
  }

  protected toolUse(toolId: string, toolName: string, input: unknown): void {
    const toolInput = isObject(input) ? input : input === undefined ? {} : { value: input }
    if (isDeeperThan(toolInput, DEEPEST_INPUT)) throw new RangeError('the input of the tool is nested too deeply')
    this.endText()
    this.emit({ type: 'tool_use', toolId: text(toolId), toolName: text(toolName), toolInput })
  }

  protected toolResult({ toolId, content, ...rest }: ToolResult): void {
    this.emit({ type: 'tool_result', toolName: '', toolId: text(toolId), content: text(content), ...rest })
  }

  /** Adds to what the turn has cost so far. */
  protected spent(dollars: unknown): void {
    if (Number.isFinite(dollars)) this.costUsd = (this.costUsd ?? 0) + Number(dollars)
  }

  protected notice(content: string): void {
    this.tell({ type: 'notice', content })
  }

  /** CLIs grow new kinds of events every week: each is told once. */
  protected unknown(kind: unknown): void {
    const name = nameOf(kind)
    if (this.#unknownKinds.has(name) || this.#unreadableCount >= MOST_UNREADABLE) return
    this.#unknownKinds.add(name)
    this.#unreadable(`The agent sent an event of an unknown kind: ${name}`)
  }

  /** Not every line of a flood is told. */
  #unreadable(content: string): void {
    this.#unreadableCount += 1
    if (this.#unreadableCount <= MOST_UNREADABLE) this.notice(content)
    if (this.#unreadableCount === MOST_UNREADABLE) this.notice('Further lines that cannot be read are left out.')
  }
}

export const PARSE_FAILURE = 'Failed to parse CLI output'

/** The reader that feeds a translation: the same for a stream and for a finished output. */
export function readInto(
  translation: Translation,
  maxCharacters: number,
  onText?: (line: string) => void,
  scrub: (line: string) => string = (line) => line,
): JsonReader {
  const sink = {
    object: (value: JsonObject) => translation.accept(value),
    text(unread: string) {
      // Before a part of it is cut off.
      const line = scrub(unread)
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
  reader: Pick<JsonReader, 'line' | 'end'> = readInto(translation, Infinity),
): BackendEventResult {
  for (const line of stdout.split('\n')) reader.line(line)
  reader.end()

  const { verdict } = translation
  const sessionId = translation.sessionId === undefined ? {} : { sessionId: translation.sessionId }
  if (verdict === undefined) return { isError: true, responseText: PARSE_FAILURE, ...sessionId }
  if (!verdict.isError) return { isError: false, responseText: verdict.text, ...sessionId }
  const reason = verdict.reason ?? classifyFailure(verdict.message, failureSigns)
  return { isError: true, responseText: verdict.message, ...(reason !== 'session_lost' && sessionId) }
}

type Counts = { [Name in Exclude<keyof TokenUsage, 'totalTokens'>]?: unknown }

/** What a CLI does not count is 0. */
export function tokenUsage(counts: Counts): TokenUsage {
  const inputTokens = count(counts.inputTokens)
  const outputTokens = count(counts.outputTokens)
  const cacheReadTokens = count(counts.cacheReadTokens)
  const cacheWriteTokens = count(counts.cacheWriteTokens)
  const reasoningTokens = count(counts.reasoningTokens)
  const totalTokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, totalTokens }
}

function count(claimed: unknown): number {
  return typeof claimed === 'number' && Number.isFinite(claimed) ? claimed : 0
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

/** What arrives is only claimed to be a string; a consumer of ours relies on it. */
function text(claimed: string): string {
  if (typeof claimed === 'string') return claimed
  throw new TypeError(`a text was expected, not ${typeof claimed}`)
}

/** Nothing honest is; whoever prints the input would run out of stack. */
const DEEPEST_INPUT = 200

function isDeeperThan(value: object, levels: number): boolean {
  if (levels === 0) return true
  for (const key in value) {
    const below: unknown = value[key as keyof typeof value]
    if (typeof below === 'object' && below !== null && isDeeperThan(below, levels - 1)) return true
  }
  return false
}

function nameOf(kind: unknown): string {
  return typeof kind === 'string' ? excerpt(kind) : `(${typeof kind})`
}

const MOST_UNREADABLE = 100

const EXCERPT_CHARACTERS = 500

function excerpt(text: string): string {
  return text.length <= EXCERPT_CHARACTERS ? text : `${text.slice(0, EXCERPT_CHARACTERS)}…`
}
