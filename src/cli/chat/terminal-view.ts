// What a chat looks like on a terminal.

import { oneLine, printable } from '../../core/one-line.js'
import type { ChatView } from '../chat-session.js'
import type { ChatPlace, HistoryEntry, OpenQuestion } from '../control/protocol.js'
import type { Candidate } from './completion.js'
import { type EditorState, isFolded, textOf } from './editor.js'
import { foldedText, inputRows } from './input-rows.js'
import { markdownLines } from './markdown.js'
import { OWN_COMMANDS } from './plain-view.js'
import { QuestionPanel } from './question-panel.js'
import type { LiveRows, Screen } from './screen.js'
import { type Line, span, truncate, wrap } from './styled-text.js'
import { clock, localTime, withLocalTimes } from '../../core/local-time.js'
import { fold } from './tool-lines.js'
import { Transcript } from './transcript.js'
import { noteLines, TurnView } from './turn-view.js'

/** The state of the input line. */
export interface InputState {
  editor: EditorState
  prompt: string
  /** Whether it is a reason for a denial, not a message. */
  isRefusing: boolean
  candidates: readonly Candidate[]
  selected: number
  /** Shown below the input. */
  hint: string
}

const REDRAW_MS = 30
const TICK_MS = 125
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const SHOWN_CANDIDATES = 6
const SHOWN_OWN_LINES = 12
const INPUT_ROWS = 10
const TOOL_CHARACTERS = 60

const KEYS = `Keys: Alt+Enter, Ctrl+J, Shift+Enter, or \\ before Enter: new line
Tab: complete a command, its argument or @file; Up, Down: earlier input
Esc: stop the agent; Ctrl-C: clear the line, stop the agent, or leave; Ctrl-D: leave
y, a, n or d on an empty line: answer the agent's question
@path: refer to a file of the project, or attach one from elsewhere`

export class TerminalView implements ChatView {
  readonly help = `${OWN_COMMANDS}\n${KEYS}`
  readonly questions: QuestionPanel
  input: InputState
  /** Which agent answers, and where, if known. */
  place: ChatPlace | undefined
  readonly #transcript = new Transcript()
  #turn: TurnView | undefined
  /** When the message that waits for its answer was sent. */
  #busySince: number | undefined
  #timer: NodeJS.Timeout | undefined
  #ticker: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(
    private readonly screen: Screen,
    input: InputState,
    private readonly now: () => number,
  ) {
    this.input = input
    const { width: _, ...shared } = this.#shared()
    this.questions = new QuestionPanel({ ...shared, width: () => this.width })
  }

  /** One column less than the terminal: some wrap a line that fills the last column. */
  get width(): number {
    return this.screen.width - 1
  }

  /** Whether a turn is running, whoever started it. */
  get isTurnRunning(): boolean {
    return this.#turn?.isRunning === true
  }

  newPrinter(): TurnView {
    this.#turn?.break()
    this.#turn = new TurnView(this.#shared())
    return this.#turn
  }

  note(text: string): void {
    if (this.#turn?.isRunning) this.#turn.note(text)
    else this.#transcript.add('note', noteLines(withLocalTimes(text, this.now()), this.width))
    this.changed()
  }

  showHistory(entries: HistoryEntry[]): void {
    const lastMessage = entries.findLastIndex(({ kind }) => kind === 'message')
    for (const [index, entry] of entries.entries()) {
      const who = entry.kind === 'message' ? entry.author : entry.isError ? 'error' : 'agent'
      const head = span(`${localTime(entry.at, this.now())}  ${printable(who)}: `, 'dim')
      // The answer to the last message may not have been read yet: show it in full.
      if (entry.kind === 'reply' && index > lastMessage && !entry.question) {
        this.#transcript.add('note', [[head]])
        this.#transcript.add('text', markdownLines(entry.text, this.width))
        const files = entry.shownFiles ?? []
        for (const file of files)
          if ('place' in file) this.#transcript.add('note', [[span(`File: ${file.place}`, 'dim')]])
      } else {
        this.#transcript.add('note', [truncate([head, span(printable(entry.text.slice(0, 1_000)), 'dim')], this.width)])
      }
    }
    this.changed()
  }

  showQuestions(questions: OpenQuestion[]): void {
    this.questions.update(questions)
    this.changed()
  }

  showHeader(place: ChatPlace, agent: string, details: string): void {
    const { model, projectId, workplace } = place
    const about = [
      agent,
      ...(model === undefined ? [] : [model]),
      projectId === undefined ? workplace : `project ${projectId}`,
    ]
    this.#transcript.add('note', wrap([span(`Aetheel · ${about.join(' · ')}`, 'bold')], this.width))
    this.#transcript.add('note', wrap([span(details, 'dim')], this.width))
    this.changed()
  }

  /** Shows what the person has sent. */
  showSent({ units }: EditorState, notes: string[]): void {
    const shown = units.map((unit) => (isFolded(unit) ? foldedText(unit) : unit)).join('')
    const { lines, more } = fold(shown.split('\n'), SHOWN_OWN_LINES)
    const rows = lines.flatMap((line) => wrap([span(line, 'bold')], this.width - 2))
    const all = more === 0 ? rows : [...rows, [span(`… ${more} more lines`, 'dim')]]
    this.#transcript.separate()
    this.#transcript.add(
      'you',
      all.map((row, index) => [span(index === 0 ? '> ' : '  ', 'cyan', 'bold'), ...row]),
    )
    for (const note of notes) this.#transcript.add('you', wrap([span(`  ${note}`, 'dim')], this.width))
    this.changed()
  }

  idle(): void {
    this.setBusy(false)
  }

  /** Sets whether a message waits for its answer. */
  setBusy(isBusy: boolean): void {
    this.#busySince = isBusy ? (this.#busySince ?? this.now()) : undefined
    if (isBusy) this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
    this.changed()
  }

  /** Schedules a redraw, which also covers later changes until then. */
  changed(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => this.draw(), REDRAW_MS)
  }

  draw(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isClosed) return
    this.screen.draw(this.#transcript.takeFinished(), this.#live())
  }

  /** Leaves only finished lines on the screen. */
  close(): void {
    this.#turn?.break()
    if (!this.#isClosed)
      this.screen.draw(this.#transcript.takeFinished(), { rows: [[]], cursor: { row: 0, column: 0 } })
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearInterval(this.#ticker)
    this.questions.stop()
    this.screen.clear()
  }

  #shared() {
    return {
      transcript: this.#transcript,
      width: () => this.width,
      now: this.now,
      directory: () => this.place?.directory,
      onChange: () => this.changed(),
    }
  }

  #tick(): void {
    if (this.#busySince === undefined && !this.isTurnRunning) {
      clearInterval(this.#ticker)
      this.#ticker = undefined
    }
    this.draw()
  }

  #live(): LiveRows {
    const { height } = this.screen
    const { editor, prompt, isRefusing } = this.input
    const maxInput = Math.max(1, Math.min(INPUT_ROWS, Math.floor(height / 3)))
    const input = inputRows(editor, span(prompt, 'cyan', 'bold'), this.width, maxInput)
    const below = this.#belowInput(Math.max(1, Math.floor(height / 4)))
    const status = [
      ...this.questions.hintLines(isRefusing ? 'refusing' : textOf(editor) === '' ? 'free' : 'writing'),
      ...this.#statusLines(),
    ]
    const room = height - input.rows.length - below.length - status.length - 2
    const turn = room > 0 ? (this.#turn?.live(room) ?? []) : []
    const gap = height > 8 ? [[]] : []
    const above = [...turn, ...gap, ...status]
    const cursor = { row: above.length + input.cursor.row, column: input.cursor.column }
    return { rows: [...above, ...input.rows, ...below], cursor }
  }

  #statusLines(): Line[] {
    const turn = this.isTurnRunning ? this.#turn : undefined
    const since = this.#busySince ?? turn?.startedAt
    if (since === undefined || (this.#busySince === undefined && !turn)) return []
    const passed = this.now() - since
    const frame = FRAMES[Math.floor(passed / TICK_MS) % FRAMES.length] ?? ''
    const tool = turn?.runningTool
    const doing = this.questions.current
      ? 'Waiting for your answer'
      : tool === undefined
        ? (turn?.activity ?? 'Waiting')
        : `Running ${oneLine(tool, TOOL_CHARACTERS)}`
    const words = [doing, clock(passed), ...(turn?.model === undefined ? [] : [turn.model]), 'Esc stops']
    return [truncate([span(`${frame} `, 'cyan'), span(words.join(' · '), 'dim')], this.width)]
  }

  #belowInput(maxRows: number): Line[] {
    const { candidates, selected, hint } = this.input
    if (candidates.length === 0) return hint === '' ? [] : [truncate([span(hint, 'dim')], this.width)]
    const rows = Math.min(SHOWN_CANDIDATES, maxRows)
    const first = Math.max(0, Math.min(selected - Math.floor(rows / 2), candidates.length - rows))
    const shown = candidates.slice(first, first + rows)
    const widest = Math.min(40, Math.max(...shown.map(({ label }) => label.length)))
    return shown.map(({ label, hint: about }, index) => {
      const isSelected = first + index === selected
      const name = span(
        `${isSelected ? '› ' : '  '}${label.padEnd(widest)}`,
        ...(isSelected ? (['cyan', 'bold'] as const) : []),
      )
      return truncate([name, span(`  ${about}`, 'dim')], this.width)
    })
  }
}
