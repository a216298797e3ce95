// A chat at a simple terminal, which can only read and print lines.

import { messageOf } from '../../errors.js'
import type { ChatSession } from '../chat-session.js'
import type { OpenQuestion } from '../control/protocol.js'
import type { Output } from '../turn-printer.js'
import { OWN_COMMANDS, PlainView } from './plain-view.js'
import { type Decision, QuestionPanel } from './question-panel.js'
import { painter } from './styled-text.js'
import { Transcript } from './transcript.js'

const LINES = `Several lines: paste them, or end every line except the last with \\
y, a, n or d on a line: answer the agent's question`

const KEYS = new Map(Object.entries({ y: 'y', yes: 'y', a: 'a', always: 'a', n: 'n', no: 'n', d: 'd' }))

export class PlainChatView extends PlainView {
  override readonly help = `${OWN_COMMANDS}\n${LINES}`
  readonly questions: QuestionPanel
  readonly #transcript = new Transcript()
  readonly #painter = painter(false)
  /** Whether the possible answers were shown. */
  #isOffered = false

  constructor(stdout: Output, stderr: Output, width: number, now: () => number) {
    super(stdout, stderr, width, now)
    const onChange = (): void => this.#print()
    this.questions = new QuestionPanel({ transcript: this.#transcript, width: () => width, now, onChange })
  }

  showQuestions(questions: OpenQuestion[]): void {
    this.questions.update(questions)
  }

  /** Prints the question and, once it can be answered, how. */
  #print(): void {
    const lines = this.#transcript.takeFinished()
    if (lines.length > 0) this.#isOffered = false
    if (!this.#isOffered && this.questions.isReady(true)) {
      lines.push(...this.questions.hintLines('free'))
      this.#isOffered = true
    }
    for (const line of lines) this.printer.line(this.#painter.paint(line))
  }
}

export class PlainChat {
  /** The question being denied with a reason. */
  #refusing: string | undefined

  constructor(
    private readonly view: PlainChatView,
    private readonly session: ChatSession,
  ) {}

  async take(text: string): Promise<void> {
    const { questions } = this.view
    const refusing = this.#refusing
    this.#refusing = undefined
    if (refusing !== undefined) return this.#refuse(refusing, text.trim())
    const decision = questions.decisionOf(KEYS.get(text.trim().toLowerCase()) ?? '')
    if (decision === undefined) return this.session.take(text)
    // The line was written before the question could be read.
    if (!questions.isReady(true)) return this.view.note('! The question has only just appeared. Answer it again.')
    if (decision !== 'reason') return this.#decide(decision)
    this.#refusing = questions.current?.id
    this.view.note('Reason:')
  }

  async #refuse(id: string, reason: string): Promise<void> {
    if (reason === '') return this.view.note('! No reason given. The question still waits for your answer.')
    await this.#decide({ id, decision: 'deny', message: reason })
  }

  async #decide(decision: Decision): Promise<void> {
    try {
      await this.view.questions.decide(decision, (given) => this.session.answerQuestion(given))
    } catch (error) {
      this.view.note(`Error: ${messageOf(error)}`)
    }
  }
}
