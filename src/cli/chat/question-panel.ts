// An agent's question, answered with a key.
//
// Invariant: a key answers only what is on the screen, only while the input line is empty, and only if no other key was
// pressed just before. Typing a message never allows anything.

import { oneLine } from '../../core/one-line.js'
import type { OpenQuestion, ParametersOf } from '../control/protocol.js'
import { hardWrap, type Line, span, truncate, wrap } from './styled-text.js'
import type { Transcript } from './transcript.js'

export type Decision = ParametersOf<'approvals.answer'>

/** How long no key may have been pressed before one counts as an answer. */
const QUIET_MS = 700
const NAME_CHARACTERS = 80
const SUMMARY_CHARACTERS = 300

const HINTS = {
  free: 'The agent waits for your answer',
  writing: 'The agent waits for your answer: clear the line to answer with a key',
  refusing: 'Enter denies with this reason, Esc goes back',
}

interface PanelOptions {
  transcript: Transcript
  width(): number
  now(): number
  onChange(): void
}

export class QuestionPanel {
  #open: OpenQuestion[] = []
  #current: OpenQuestion | undefined
  #quietSince = 0
  #timer: NodeJS.Timeout | undefined
  /** Answered here; the record may still list them as open. */
  readonly #answered = new Set<string>()

  constructor(private readonly options: PanelOptions) {}

  get current(): OpenQuestion | undefined {
    return this.#current
  }

  get count(): number {
    return this.#open.length
  }

  /** Shows one question at a time, and the next when it has ended. */
  update(questions: OpenQuestion[]): void {
    this.#open = questions.filter(({ id }) => !this.#answered.has(id))
    if (this.#open.some(({ id }) => id === this.#current?.id)) return
    this.#current = this.#open[0]
    if (this.#current) this.#show(this.#current)
    this.options.onChange()
  }

  /** A key was pressed: for a moment, no key counts as an answer. */
  disturb(): void {
    this.#quietSince = this.options.now()
    clearTimeout(this.#timer)
    if (this.#current) this.#waitForQuiet()
  }

  isReady(isLineEmpty: boolean): boolean {
    return this.#current !== undefined && isLineEmpty && this.options.now() - this.#quietSince > QUIET_MS
  }

  /** What a key decides; `reason` if a reason must be entered first. Contract: undefined for every other key. */
  decisionOf(key: string): Decision | 'reason' | undefined {
    const question = this.#current
    if (!question) return undefined
    if (key === 'd') return 'reason'
    if (key === 'n') return { id: question.id, decision: 'deny' }
    if (key === 'y') return { id: question.id, decision: 'allow' }
    return key === 'a' && question.remembers ? { id: question.id, decision: 'allow', remember: 'this' } : undefined
  }

  /** Contract: rejects if it could not be answered; the question is then shown again. */
  async decide(decision: Decision, answer: (decision: Decision) => Promise<void>): Promise<void> {
    this.#answered.add(decision.id)
    this.update(this.#open)
    try {
      await answer(decision)
    } catch (error) {
      this.#answered.delete(decision.id)
      throw error
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  hintLines(line: 'free' | 'writing' | 'refusing'): Line[] {
    const question = this.#current
    if (!question) return []
    const { now, width } = this.options
    // The question may have scrolled away.
    const about = truncate([span(`Allow ${oneLine(question.summary, SUMMARY_CHARACTERS)}?`, 'bold')], width())
    const expiry = `expires in ${timeLeft(question.deadline - now())}`
    if (!this.isReady(line === 'free')) {
      return [about, ...wrap([span(`${HINTS[line]} · ${expiry}`, 'dim')], width())]
    }
    const always = question.remembers === 'file' ? 'always for this file' : 'always exactly this'
    const keys: [string, string][] = [
      ['y', 'allow'],
      ...(question.remembers ? ([['a', always]] as [string, string][]) : []),
      ['n', 'deny'],
      ['d', 'deny with a reason'],
    ]
    const spans = keys.flatMap(([key, meaning]) => [span(key, 'bold', 'yellow'), span(` ${meaning} · `)])
    return [about, ...wrap([...spans, span(expiry, 'dim')], width())]
  }

  /** A timer may fire early by the clock: it counts from when the event loop last read the time. */
  #waitForQuiet(): void {
    const leftMs = this.#quietSince + QUIET_MS + 1 - this.options.now()
    if (leftMs <= 0) this.options.onChange()
    else this.#timer = setTimeout(() => this.#waitForQuiet(), Math.min(leftMs, QUIET_MS + 1))
  }

  #show({ backend, toolName, request }: OpenQuestion): void {
    const { transcript, width } = this.options
    this.disturb()
    const title = [
      span('? ', 'bold', 'yellow'),
      span(`${backend} wants to use ${oneLine(toolName, NAME_CHARACTERS)}`, 'bold'),
    ]
    const lines = request.split('\n')
    const body = lines.flatMap((line) => hardWrap([span(line)], Math.max(8, width() - 4)))
    const bar = span('  │ ', 'yellow')
    transcript.separate()
    transcript.add('question', [...wrap(title, width()), ...body.map((line) => [bar, ...line])])
  }
}

function timeLeft(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 100) return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`
}
