import { messageOf } from '../../errors.js'
import { classifyFailure, type Failed, type FailureSign, PARSE_FAILURE } from './failures.js'
import { isObject, type JsonObject, JsonReader } from './jsonl.js'
import { isSessionLost, lostSession } from './starting-over.js'
import type { Turn } from './turn.js'
import type { AgentEventBody, AgentResult, BackendEventResult, FailureReason, TokenUsage } from '../types.js'

/** What the CLI itself said about how the turn ended. */
export type Verdict =
  | { isError: false; text: string }
  | ({ isError: true; message: string; reason?: FailureReason } & ServerError)

/** What the model server said about a failure; `status` is its HTTP status. */
interface ServerError {
  status?: number
  retryAfterMs?: number
}

export type Figures = Pick<AgentResult, 'usage' | 'sessionUsage' | 'costUsd' | 'metadata'>

/** Its `tool_use` had the tool's name. */
type ToolResult = Omit<Extract<AgentEventBody, { type: 'tool_result' }>, 'type' | 'toolName'>

/**
 * Turns a CLI's output during one turn into events, and remembers the outcome.
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
  /** The latest final word; absent until there is one. */
  verdict?: Verdict
  /** Whether the turn is over with that verdict: the CLI has not resumed work since. */
  isFinished = false
  /** The latest problem, in case there never is a final word. */
  lastProblem?: string
  /** Set if continuing would be wrong, as in somebody else's session: the run ends with this failure. */
  mustStop?: Failed
  /** How many values it has accepted. */
  acceptedCount = 0

  #hasOutput = false
  #isInText = false
  #endsWithNewline = true
  #turns = 0
  #unknownKinds = new Set<string>()
  #unreadableCount = 0

  /** Without a turn, it reads a complete output of unknown origin. */
  constructor(
    private readonly forward: (event: AgentEventBody) => void,
    protected readonly turn?: Turn,
  ) {}

  /** What the CLI reported besides its answer. */
  get figures(): Figures {
    const { usage, sessionUsage, costUsd, metadata } = this
    return {
      ...(usage && { usage }),
      ...(sessionUsage && { sessionUsage }),
      ...(costUsd !== undefined && { costUsd }),
      ...(metadata && { metadata }),
    }
  }

  protected abstract translate(value: JsonObject): void

  accept(value: JsonObject): void {
    this.acceptedCount += 1
    try {
      this.translate(value)
    } catch (error) {
      this.#unreadable(`The agent sent an invalid event: ${nameOf(value['type'])} (${messageOf(error)})`)
    }
  }

  /** Takes a line that is not JSON. */
  acceptText(line: string): void {
    this.#unreadable(excerpt(line))
  }

  /** A malformed id is ignored: the answer that comes with it matters more. */
  protected setSession(sessionId: unknown): void {
    if (typeof sessionId === 'string') this.sessionId = sessionId
  }

  protected started(sessionId: unknown, model?: unknown): void {
    this.setSession(sessionId)
    this.emit({
      type: 'started',
      ...(this.sessionId && { sessionId: this.sessionId }),
      ...(typeof model === 'string' && { model }),
    })
  }

  /** If nothing was streamed, the answer is. */
  protected succeeded(answer: string): void {
    if (!this.#hasOutput) this.output(answer)
    this.verdict = { isError: false, text: text(answer) }
    this.isFinished = true
  }

  /** If no reason is given, it is derived from the status and the message. */
  protected failed(
    message = 'The agent gave no reason.',
    reason?: FailureReason,
    { status, retryAfterMs }: { status?: unknown; retryAfterMs?: number | undefined } = {},
  ): void {
    this.verdict = {
      isError: true,
      message: text(message),
      ...(reason && { reason }),
      ...(typeof status === 'number' && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
    this.isFinished = true
  }

  /** The verdict was not, or may not be, the end: the CLI is still working. */
  protected keepsWorking(): void {
    this.isFinished = false
  }

  private emit(event: AgentEventBody): void {
    this.keepsWorking()
    this.forward(event)
  }

  /** Something went wrong, but the CLI may still recover. */
  protected reportProblem(message: string): void {
    this.lastProblem = text(message)
    this.notice(message)
  }

  /** For a CLI that silently starts a new session if it cannot find the requested one, which is then lost. */
  protected isRequestedSession(sessionId: unknown): boolean {
    const asked = this.turn?.sessionId
    if (asked === undefined || typeof sessionId !== 'string') return true
    // The operator's arguments may ask for another session, such as a fork.
    if (this.turn?.command?.sessionArgs) return true
    if (asked.toLowerCase() === sessionId.toLowerCase()) return true
    this.mustStop = lostSession(`The agent could not find the session ${asked}.`)
    return false
  }

  /** Called after each round of tools, for a CLI without a turn limit of its own. */
  protected countTurn(): void {
    const { maxTurns = 0 } = this.turn ?? {}
    this.#turns += 1
    if (this.#turns !== maxTurns) return
    this.mustStop = { reason: 'max_turns', message: `Reached the maximum number of turns (${maxTurns}).` }
  }

  /** Text for the user. Separate parts, such as before and after a tool, are separated by a blank line. */
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
    if (isDeeperThan(toolInput, MAX_INPUT_DEPTH)) throw new RangeError('the tool input is nested too deeply')
    this.endText()
    this.emit({ type: 'tool_use', toolId: text(toolId), toolName: text(toolName), toolInput })
  }

  protected toolResult({ toolId, content, ...rest }: ToolResult): void {
    this.emit({ type: 'tool_result', toolName: '', toolId: text(toolId), content: text(content), ...rest })
  }

  /** Adds to the tokens of the turn. */
  protected count(counts: Counts): void {
    const usage = tokenUsage(counts)
    this.usage = this.usage ? combineUsage(this.usage, usage) : usage
  }

  /** Adds to the cost of the turn. */
  protected spent(dollars: unknown): void {
    if (Number.isFinite(dollars)) this.costUsd = (this.costUsd ?? 0) + Number(dollars)
  }

  protected notice(content: string): void {
    this.forward({ type: 'notice', content })
  }

  /** CLIs add new kinds of events every week: each is reported once. */
  protected unknown(kind: unknown): void {
    const name = nameOf(kind)
    if (this.#unknownKinds.has(name) || this.#unreadableCount >= MAX_UNREADABLE) return
    this.#unknownKinds.add(name)
    this.#unreadable(`The agent sent an unknown event: ${name}`)
  }

  /** Limits the notices in a flood of unreadable lines. */
  #unreadable(content: string): void {
    this.#unreadableCount += 1
    if (this.#unreadableCount <= MAX_UNREADABLE) this.#technicalNotice(content)
    if (this.#unreadableCount !== MAX_UNREADABLE) return
    this.#technicalNotice('Further unreadable lines are skipped.')
  }

  #technicalNotice(content: string): void {
    this.forward({ type: 'notice', content, isTechnical: true })
  }
}

/** The reader that feeds a translation, from a stream or a complete output. */
export function readInto(
  translation: Translation,
  maxCharacters: number,
  onText?: (line: string) => void,
  scrub: (line: string) => string = (line) => line,
): JsonReader {
  const sink = {
    object: (value: JsonObject) => translation.accept(value),
    text(unread: string) {
      // Before it is truncated.
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
  return { isError: true, responseText: verdict.message, ...(!isSessionLost({ reason }) && sessionId) }
}

type Counts = { [Name in Exclude<keyof TokenUsage, 'totalTokens'>]?: unknown }

/** Counts that a CLI does not report are 0. */
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
  const sum = { ...a }
  for (const name of Object.keys(sum) as Array<keyof TokenUsage>) sum[name] += sign * b[name]
  return sum
}

/** Checks that a supposed string really is one, since consumers rely on it. */
function text(claimed: string): string {
  if (typeof claimed === 'string') return claimed
  throw new TypeError(`expected a string, not ${typeof claimed}`)
}

/** No real input is deeper, and printing one that is would overflow the stack. */
const MAX_INPUT_DEPTH = 200

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

const MAX_UNREADABLE = 100

const EXCERPT_CHARACTERS = 500

function excerpt(text: string): string {
  return text.length <= EXCERPT_CHARACTERS ? text : `${text.slice(0, EXCERPT_CHARACTERS)}…`
}
