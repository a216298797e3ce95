// Pi as a warm process. Wire types captured from `pi --mode rpc`, CLI 0.73.1; see test/fixtures/pi/live-*.jsonl and
// docs/backends/pi.md.
//
// Traps that a careless edit would fall into:
// - `agent_end` is not the end: Pi may try again or summarise. It says so at once behind that line, so the answer to a
//   question asked then comes after it. Until then, and while it summarises, no other prompt may come.
// - The end of its input ends the process at once, in the middle of a turn.
// - An `abort` before the agent works is for nothing, and one may be answered before the agent has told its end.
// - What it is to be told while it works and has not read at its end would be read in the next turn, and cannot be taken back.

import type { ShortenLine } from '../../processes/line-splitter.js'
import type { JsonObject } from '../engine/jsonl.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody, Steer } from '../types.js'
import type { WarmConnection, WarmDriver, WarmTurn } from '../engine/warm/types.js'

type Send = (message: JsonObject) => void
type Translate = (emit: (event: AgentEventBody) => void, turn: Turn) => Translation

type PiMessage =
  | { type: 'response'; id?: string; command: string; success: boolean; error?: string; data?: PiState }
  | { type: 'extension_ui_request'; id: string; method: string }
  | { type: 'agent_start' | 'agent_end' | 'auto_retry_start' | 'auto_retry_end' | 'compaction_start' }
  | { type: 'compaction_end'; willRetry?: boolean }
  | { type: 'message_start'; message: { role: string } }

interface PiState {
  sessionId: string
  isStreaming: boolean
  isCompacting: boolean
}

export class PiWarmDriver implements WarmDriver {
  readonly isShared = false
  readonly oldestKnown = '0.73.1'

  constructor(
    readonly launch: WarmDriver['launch'],
    private readonly translation: Translate,
  ) {}

  /** All but the message itself stands on the command line; the turns are counted here. */
  keyOf({
    prompt: _prompt,
    sessionId: _sessionId,
    sessionUsage: _sessionUsage,
    maxTurns: _maxTurns,
    ...fixed
  }: Turn): string {
    return JSON.stringify(fixed)
  }

  /** Beside each delta stands, twice, all that was written so far. In a text its quotes would be escaped. */
  readonly shorten: ShortenLine = (beginning, end) => {
    const isUpdate = beginning.subarray(0, UPDATE.length).equals(UPDATE) && end.subarray(-2).equals(CLOSED)
    const used = isUpdate ? beginning.indexOf(REPEATED) : -1
    return used === -1 ? undefined : `${beginning.toString('utf8', 0, used)}}}`
  }

  connect(send: Send): WarmConnection {
    return new PiConnection(send, this.translation)
  }
}

const UPDATE = Buffer.from('{"type":"message_update","assistantMessageEvent":{"type":"text_delta",')
const REPEATED = Buffer.from(',"partial":{"role":"assistant",')
const CLOSED = Buffer.from('}}')

/** What an extension asks the person, and waits for. */
const QUESTIONS = ['select', 'confirm', 'input', 'editor']

class PiConnection implements WarmConnection {
  readonly ready: Promise<void>
  #sessionId = ''
  #setReady = (): void => {}
  /** Until Pi is at rest, which may be after its answer. */
  #turn: PiTurn | undefined
  #next: PiTurn | undefined
  #isCompacting = false
  #setAnswered = (): void => {}

  constructor(
    private readonly send: Send,
    private readonly translation: Translate,
  ) {
    this.ready = new Promise((resolve) => {
      this.#setReady = resolve
    })
    send({ id: READY, type: 'get_state' })
  }

  ping(): Promise<void> {
    this.send({ id: PING, type: 'get_state' })
    return new Promise((resolve) => {
      this.#setAnswered = resolve
    })
  }

  begin(turn: Turn, emit: (event: AgentEventBody) => void): WarmTurn {
    const translation = this.translation(emit, turn)
    // As the first line of one-shot.
    translation.accept({ type: 'session', id: this.#sessionId })
    const begun = new PiTurn(this.send, translation, turn.prompt)
    if (!translation.mustStop) {
      this.#next = begun
      this.#goOn()
    }
    return begun
  }

  receive(message: JsonObject): void {
    const line = message as PiMessage
    switch (line.type) {
      case 'response':
        if (line.id === READY) this.#isReady(line.data)
        else if (line.id === PING) this.#setAnswered()
        else this.#turn?.answered(line)
        break
      case 'extension_ui_request':
        if (QUESTIONS.includes(line.method)) {
          this.send({ type: 'extension_ui_response', id: line.id, cancelled: true })
        }
        break
      case 'compaction_start':
        this.#isCompacting = true
        this.#turn?.heard(message)
        break
      case 'compaction_end':
        this.#isCompacting = false
        this.#turn?.heard(message)
        break
      default:
        this.#turn?.heard(message)
    }
    this.#goOn()
  }

  #isReady(state: PiState | undefined): void {
    this.#sessionId = state?.sessionId ?? ''
    this.#setReady()
  }

  #goOn(): void {
    if (this.#turn?.isOver) this.#turn = undefined
    if (this.#turn || this.#isCompacting || !this.#next) return
    if (!this.#next.isOver) {
      this.#turn = this.#next
      this.#turn.ask()
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

interface Offer {
  id: string
  text: string
  resolve(isTaken: boolean): void
}

class PiTurn implements WarmTurn {
  readonly done: Promise<void>
  /** Pi is at rest, or was not asked. */
  isOver = false
  #settle = (): void => {}
  #isAsked = false
  #isTaken = false
  #isRunning = false
  /** It will be running again by itself. */
  #willRetry = false
  #isInterrupted = false
  #stateCount = 0
  /** The agent has read the prompt. */
  #isRead = false
  /** What it was to be told and has not read, in order. */
  #offers: Offer[] = []
  /** What it had answered in full before it read more. */
  #answers: string[] = []
  #offerCount = 0

  constructor(
    private readonly send: Send,
    readonly translation: Translation,
    private readonly prompt: string,
  ) {
    this.done = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  ask(): void {
    this.#isAsked = true
    this.send({ id: PROMPT, type: 'prompt', message: this.prompt })
  }

  interrupt(): void {
    this.#isInterrupted = true
    if (!this.#isAsked) return this.#finish()
    if (this.#isRunning || this.#willRetry) this.send({ id: ABORT, type: 'abort' })
  }

  readonly steer: Steer = (text) => {
    // Pi has a meaning of its own for it.
    if (text.startsWith('/')) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#offerCount += 1
      const offer = { id: `${STEER}-${this.#offerCount}`, text, resolve }
      this.#offers.push(offer)
      if (this.#isRead) this.#tell(offer)
    })
  }

  get isSpent(): boolean {
    return this.#isRead && this.#offers.length > 0
  }

  answered({ id, success, error, data }: Extract<PiMessage, { type: 'response' }>): void {
    const refused = success ? -1 : this.#offers.findIndex((offer) => offer.id === id)
    if (refused !== -1) {
      const [offer] = this.#offers.splice(refused, 1)
      offer?.resolve(false)
    } else if (id === PROMPT && !success) {
      // As it tells of an error itself.
      this.translation.accept({
        type: 'message_end',
        message: { role: 'assistant', stopReason: 'error', errorMessage: error },
      })
      this.#finish()
    } else if (id === PROMPT) {
      this.#isTaken = true
      this.#look()
    } else if (id === `${STATE}-${this.#stateCount}` && data) this.#judge(data)
  }

  heard(message: JsonObject): void {
    this.translation.accept(message)
    const line = message as PiMessage
    switch (line.type) {
      case 'agent_start':
        this.#isRunning = true
        this.#willRetry = false
        if (this.#isInterrupted) this.send({ id: ABORT, type: 'abort' })
        break
      case 'message_start':
        if (line.message.role === 'user') this.#reads()
        break
      case 'agent_end':
        this.#isRunning = false
        this.#joinAnswers()
        this.#look()
        if (this.#hasAnswered) this.#settle()
        break
      case 'auto_retry_start':
        this.#willRetry = true
        break
      case 'auto_retry_end':
        this.#willRetry = false
        if (!this.#isRunning) this.#look()
        break
      case 'compaction_end':
        this.#willRetry = line.willRetry === true
        this.#look()
        break
      default:
        break
    }
  }

  /** First the prompt, then what it is told. */
  #reads(): void {
    if (this.#isRead) {
      const { verdict } = this.translation
      if (verdict?.isError === false) this.#answers.push(verdict.text)
      return this.#offers.shift()?.resolve(true)
    }
    this.#isRead = true
    for (const offer of this.#offers) this.#tell(offer)
  }

  /** Pi answers what it reads late apart from what it was asked first. */
  #joinAnswers(): void {
    const { verdict } = this.translation
    if (verdict?.isError !== false) return
    this.translation.verdict = { isError: false, text: [...this.#answers.splice(0), verdict.text].join('\n\n') }
  }

  #tell({ id, text }: Offer): void {
    this.send({ id, type: 'steer', message: text })
  }

  get #hasAnswered(): boolean {
    return this.translation.verdict?.isError === false
  }

  /** Asks where it stands; what it does by itself is told before the answer comes. */
  #look(): void {
    this.#stateCount += 1
    this.send({ id: `${STATE}-${this.#stateCount}`, type: 'get_state' })
  }

  #judge({ isStreaming, isCompacting }: PiState): void {
    if (!this.#isTaken || isStreaming || this.#isRunning || this.#willRetry) return
    // What it summarises after an answer is for the next turn.
    if (isCompacting && !this.#hasAnswered) return
    this.#finish()
  }

  #finish(): void {
    this.isOver = true
    this.#settle()
  }
}
