// Pi as a warm process. Wire types captured from `pi --mode rpc`, CLI 0.73.1; see test/fixtures/pi/live-*.jsonl and
// docs/backends/pi.md.
//
// Traps:
// - `agent_end` is not the end: Pi may retry or compact. It says so right after that line, before it answers any
//   request sent in response. Until that answer, and while it compacts, no other prompt may be sent.
// - The end of its input ends the process at once, even in the middle of a turn.
// - An `abort` before the agent has started has no effect, and an `abort` may be answered before `agent_end`.
// - A steering message that is unread at the end of a turn would be read in the next one, and cannot be withdrawn.

import { deferred, type Deferred } from '../../core/async.js'
import type { ShortenLine } from '../../processes/output.js'
import type { JsonObject } from '../engine/jsonl.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { Send, WarmConnection, WarmDriver, WarmTurn } from '../engine/warm/types.js'
import type { Steer } from '../types.js'

type PiMessage =
  | { type: 'response'; id?: string; command: string; success: boolean; error?: string; data?: PiState & PiSummary }
  | { type: 'extension_ui_request'; id: string; method: string }
  | { type: 'agent_start' | 'agent_end' | 'auto_retry_start' | 'auto_retry_end' | 'compaction_start' }
  | { type: 'compaction_end'; willRetry?: boolean }
  | { type: 'message_start'; message: { role: string } }

interface PiState {
  sessionId: string
  isStreaming: boolean
  isCompacting: boolean
}

/** The answer to `compact`. */
interface PiSummary {
  /** Since 0.87. */
  usage?: JsonObject
}

export function piWarmDriver(launch: WarmDriver['launch']): WarmDriver {
  return {
    isShared: false,
    canCompact: true,
    oldestKnown: '0.73.1',
    /** Everything but the message is on the command line; turns are counted by the gateway. */
    keyOf({
      prompt: _prompt,
      sessionId: _id,
      sessionUsage: _usage,
      maxTurns: _maxTurns,
      compaction: _compaction,
      ...fixed
    }) {
      return JSON.stringify(fixed)
    },
    launch,
    shorten,
    connect: (send) => new PiConnection(send),
  }
}

/** Each delta repeats the whole text so far, twice. The marker cannot occur in the text, where its quotes are escaped. */
const shorten: ShortenLine = (beginning, end) => {
  const isUpdate = beginning.subarray(0, UPDATE.length).equals(UPDATE) && end.subarray(-2).equals(CLOSED)
  const used = isUpdate ? beginning.indexOf(REPEATED) : -1
  return used === -1 ? undefined : `${beginning.toString('utf8', 0, used)}}}`
}

const UPDATE = Buffer.from('{"type":"message_update","assistantMessageEvent":{"type":"text_delta",')
const REPEATED = Buffer.from(',"partial":{"role":"assistant",')
const CLOSED = Buffer.from('}}')

/** Requests by which an extension asks the user and waits. */
const QUESTIONS = ['select', 'confirm', 'input', 'editor']

class PiConnection implements WarmConnection {
  readonly #ready = deferred()
  readonly ready = this.#ready.promise
  #sessionId = ''
  /** Set until Pi is idle, which may be after its answer. */
  #turn: PiTurn | undefined
  #next: PiTurn | undefined
  #isCompacting = false
  #pinged: Deferred<void> | undefined

  constructor(private readonly send: Send) {
    send({ id: READY, type: 'get_state' })
  }

  ping(): Promise<void> {
    this.send({ id: PING, type: 'get_state' })
    this.#pinged = deferred()
    return this.#pinged.promise
  }

  begin(turn: Turn, translation: Translation): WarmTurn {
    // Like the first line of one-shot.
    translation.accept({ type: 'session', id: this.#sessionId })
    const begun = new PiTurn(this.send, translation, turn)
    if (!translation.mustStop) {
      this.#next = begun
      this.#advance()
    }
    return begun
  }

  receive(message: JsonObject): void {
    const line = message as PiMessage
    switch (line.type) {
      case 'response':
        if (line.id === READY) {
          this.#sessionId = line.data?.sessionId ?? ''
          this.#ready.resolve()
        } else if (line.id === PING) this.#pinged?.resolve()
        else this.#turn?.onResponse(line)
        break
      case 'extension_ui_request':
        if (QUESTIONS.includes(line.method)) {
          this.send({ type: 'extension_ui_response', id: line.id, cancelled: true })
        }
        break
      case 'compaction_start':
      case 'compaction_end':
        this.#isCompacting = line.type === 'compaction_start'
        this.#turn?.receive(message)
        break
      default:
        this.#turn?.receive(message)
    }
    this.#advance()
  }

  #advance(): void {
    if (this.#turn?.isOver) this.#turn = undefined
    if (this.#turn || this.#isCompacting || !this.#next) return
    if (!this.#next.isOver) {
      this.#turn = this.#next
      this.#turn.sendPrompt()
    }
    this.#next = undefined
  }
}

const READY = 'ready'
const PING = 'ping'
const PROMPT = 'prompt'
const STATE = 'state'
const ABORT = 'abort'
const STEER = 'steer'

/** A compaction with nothing to do is not a failure. */
const NOTHING_TO_COMPACT = /^(?:Nothing to compact|Already compacted)/

interface Steering {
  id: string
  text: string
  resolve(isTaken: boolean): void
}

class PiTurn implements WarmTurn {
  readonly #done = deferred()
  readonly done = this.#done.promise
  /** Pi is idle, or never got the prompt. */
  isOver = false
  #isPrompted = false
  #isAccepted = false
  #isRunning = false
  /** Pi will start again on its own. */
  #willRetry = false
  #isInterrupted = false
  #stateCount = 0
  /** Whether the agent has read the prompt. */
  #isRead = false
  /** Unread steering messages, in order. */
  #unread: Steering[] = []
  /** Complete answers from before it read a steering message. */
  #answers: string[] = []
  #steerCount = 0

  constructor(
    private readonly send: Send,
    readonly translation: Translation,
    private readonly turn: Pick<Turn, 'prompt' | 'compaction'>,
  ) {}

  sendPrompt(): void {
    const { prompt, compaction } = this.turn
    this.#isPrompted = true
    if (!compaction) return this.send({ id: PROMPT, type: 'prompt', message: prompt })
    const { focus } = compaction
    this.send({ id: PROMPT, type: 'compact', ...(focus !== '' && { customInstructions: focus }) })
  }

  interrupt(): void {
    this.#isInterrupted = true
    if (!this.#isPrompted) return this.#finish()
    if (this.#isRunning || this.#willRetry || this.turn.compaction) this.send({ id: ABORT, type: 'abort' })
  }

  readonly steer: Steer = (text) => {
    // Pi would run it as a command.
    if (text.startsWith('/')) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#steerCount += 1
      const steering = { id: `${STEER}-${this.#steerCount}`, text, resolve }
      this.#unread.push(steering)
      if (this.#isRead) this.#sendSteering(steering)
    })
  }

  get isSpent(): boolean {
    return this.#isRead && this.#unread.length > 0
  }

  onResponse({ id, success, error, data }: Extract<PiMessage, { type: 'response' }>): void {
    const refused = success ? -1 : this.#unread.findIndex((steering) => steering.id === id)
    if (refused !== -1) {
      const [steering] = this.#unread.splice(refused, 1)
      steering?.resolve(false)
    } else if (id === PROMPT && !success) {
      const isAnswer = this.turn.compaction && NOTHING_TO_COMPACT.test(error ?? '')
      this.#conclude(
        isAnswer ? { content: [{ type: 'text', text: error }] } : { stopReason: 'error', errorMessage: error },
      )
    } else if (id === PROMPT && this.turn.compaction) {
      this.#conclude({ usage: data?.usage })
    } else if (id === PROMPT) {
      this.#isAccepted = true
      this.#requestState()
    } else if (id === `${STATE}-${this.#stateCount}` && data) this.#onState(data)
  }

  receive(message: JsonObject): void {
    this.translation.accept(message)
    const line = message as PiMessage
    switch (line.type) {
      case 'agent_start':
        this.#isRunning = true
        this.#willRetry = false
        if (this.#isInterrupted) this.send({ id: ABORT, type: 'abort' })
        break
      case 'message_start':
        if (line.message.role === 'user') this.#onRead()
        break
      case 'agent_end':
        this.#isRunning = false
        this.#joinAnswers()
        this.#requestState()
        if (this.#hasAnswered) this.#done.resolve()
        break
      case 'auto_retry_start':
        this.#willRetry = true
        break
      case 'auto_retry_end':
        this.#willRetry = false
        if (!this.#isRunning) this.#requestState()
        break
      case 'compaction_end':
        this.#willRetry = line.willRetry === true
        this.#requestState()
        break
      default:
        break
    }
  }

  /** Pi reads first the prompt, then the steering messages. */
  #onRead(): void {
    if (this.#isRead) {
      const { verdict } = this.translation
      if (verdict?.isError === false) this.#answers.push(verdict.text)
      return this.#unread.shift()?.resolve(true)
    }
    this.#isRead = true
    for (const steering of this.#unread) this.#sendSteering(steering)
  }

  /** Pi answers a steering message that it reads late separately from the prompt. */
  #joinAnswers(): void {
    const { verdict } = this.translation
    if (verdict?.isError !== false) return
    this.translation.verdict = { isError: false, text: [...this.#answers.splice(0), verdict.text].join('\n\n') }
  }

  #sendSteering({ id, text }: Steering): void {
    this.send({ id, type: 'steer', message: text })
  }

  get #hasAnswered(): boolean {
    return this.translation.verdict?.isError === false
  }

  /** Requests its state. If Pi continues on its own, it says so before it answers. */
  #requestState(): void {
    this.#stateCount += 1
    this.send({ id: `${STATE}-${this.#stateCount}`, type: 'get_state' })
  }

  #onState({ isStreaming, isCompacting }: PiState): void {
    if (!this.#isAccepted || isStreaming || this.#isRunning || this.#willRetry) return
    // Compaction after an answer is for the next turn.
    if (isCompacting && !this.#hasAnswered) return
    this.#finish()
  }

  /** For an end that no event reports, in Pi's own format for messages. */
  #conclude(message: JsonObject): void {
    this.translation.accept({ type: 'message_end', message: { role: 'assistant', ...message } })
    this.#finish()
  }

  #finish(): void {
    this.isOver = true
    this.#done.resolve()
  }
}
