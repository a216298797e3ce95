// A chat on a terminal: what each key does.

import { join } from 'node:path'
import type { ReadStream, WriteStream } from 'node:tty'
import { COMMANDS } from '../../conversation/command-descriptions.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { describeBytes } from '../../media/byte-size.js'
import type { ChatSession } from '../chat-session.js'
import type { ChatPlace } from '../control/protocol.js'
import { isCommand as isGatewayCommand } from '../../turns/accept.js'
import { attachmentsIn, mentionsOf } from './attachments.js'
import { accept, type Candidate, complete, type Completion } from './completion.js'
import {
  continued,
  type EditorState,
  EMPTY,
  insert,
  isFolded,
  moveLine,
  paste,
  pasteFolded,
  press,
  textOf,
  typedText,
  withText,
} from './editor.js'
import { InputHistory, LONGEST_ENTRY } from './input-history.js'
import type { Input } from './keys.js'
import type { Decision } from './question-panel.js'
import { RawTerminal } from './raw-terminal.js'
import { Screen } from './screen.js'
import { painter } from './styled-text.js'
import { TerminalView } from './terminal-view.js'

interface TerminalChatOptions {
  stdin: ReadStream
  stdout: WriteStream
  environment: NodeJS.ProcessEnv
  historyFile: string
  conversation: string
  log: Log
  now(): number
}

const PROMPT = '> '
const REASON_PROMPT = 'Reason: '
/** A second Ctrl-C within this time leaves. */
const LEAVE_MS = 3_000
const MAX_REASON = 2_000
const OWN_COMMANDS = [
  { name: 'history', meaning: 'show the last messages', isQuestion: true },
  { name: 'quit', meaning: 'leave', isQuestion: false },
]

const HISTORY_FILE = 'chat-history'

export class TerminalChat {
  readonly view: TerminalView
  /** Settles when the person leaves. */
  readonly left: Promise<void>
  #leave = (): void => {}
  readonly #terminal: RawTerminal
  readonly #screen: Screen
  readonly #history: InputHistory
  #session: ChatSession | undefined
  #editor: EditorState = EMPTY
  #completion: Completion | undefined
  #selected = 0
  #hasSelected = false
  #completing = 0
  /** The question being denied with a reason. */
  #refusing: string | undefined
  #hint = ''
  #hintTimer: NodeJS.Timeout | undefined
  #isReady = false
  /** The Tab press whose completion is being looked up. */
  #tabbing: object | undefined
  /** Input that waits: messages cannot be taken yet, or a completion is being looked up. */
  #held: Input[] = []
  #isStopping = false
  #taking: Promise<void> = Promise.resolve()
  readonly #resized = (): void => this.view.draw()

  constructor(private readonly options: TerminalChatOptions) {
    const { stdin, stdout, environment, historyFile, log, now } = options
    this.#screen = new Screen(stdout, painter(!environment['NO_COLOR']))
    this.view = new TerminalView(this.#screen, this.#inputState(), now)
    this.left = new Promise((resolve) => {
      this.#leave = resolve
    })
    this.#history = new InputHistory(historyFile, now, (error) => {
      log.warn('chat-history.not-written', { error: messageOf(error) })
    })
    this.#terminal = new RawTerminal({
      ...{ stdin, stdout },
      onInput: (input) => this.#take(input),
      onEnd: () => this.#leave(),
    })
  }

  /** Takes keys from now on; what is sent before `ready` waits. */
  open(): void {
    this.#terminal.open()
    this.options.stdout.on('resize', this.#resized)
    this.view.draw()
  }

  /** Shows which agent answers, and where. */
  async greet(session: ChatSession, agentOf: (place: ChatPlace) => string, gateway: string): Promise<void> {
    await this.#readPlace(session)
    this.#session = session
    const { place } = this.view
    if (place) this.view.showHeader(place, agentOf(place), `${gateway} · /help lists commands and keys`)
  }

  /** Messages can be taken. */
  ready(): void {
    this.#isReady = true
    this.#takeHeld()
  }

  close(): void {
    clearTimeout(this.#hintTimer)
    this.options.stdout.off('resize', this.#resized)
    this.view.close()
    this.#terminal.close()
  }

  /** Settles when the running turn is stopped; leaves if there is none. */
  async interrupt(): Promise<void> {
    if (this.#isStopping || !this.#isWorking) return this.#leave()
    await this.#stop()
  }

  get #isWorking(): boolean {
    return this.#session?.control !== undefined && (this.#session.isBusy || this.view.isTurnRunning)
  }

  async #readPlace(session: ChatSession): Promise<void> {
    try {
      const { conversation: address } = this.options
      this.view.place = await session.control?.call('chat.place', { address })
    } catch (error) {
      // An older gateway does not support it: no header, and no file completion.
      this.options.log.debug('chat.place-unknown', { error: messageOf(error) })
    }
  }

  #take(input: Input): void {
    if (this.#holds(input)) return
    if (this.#answers(input)) return
    this.#apply(input)
  }

  #apply(input: Input): void {
    this.view.questions.disturb()
    // A second Ctrl-C must find the hint still there.
    if (input.kind !== 'key' || input.name !== 'ctrl-c') this.#setHint('')
    if (input.kind === 'key') this.#press(input.name)
    else if (input.kind === 'text') this.#edit(insert(this.#editor, input.text), true)
    else this.#edit(this.#pasted(input.text), false)
    this.#show()
  }

  /** Whether it has to wait for earlier input. */
  #holds(input: Input): boolean {
    const name = input.kind === 'key' ? input.name : ''
    if (name === 'ctrl-c') this.#cancelHeld()
    if (name === 'ctrl-c' || name === 'ctrl-d') return false
    const isWaiting = this.#tabbing !== undefined || this.#held.length > 0 || (!this.#isReady && name === 'enter')
    if (!isWaiting) return false
    this.#held.push(input)
    this.view.questions.disturb()
    return true
  }

  /** Held keys never answer a question: another one may have been shown when they were pressed. */
  #takeHeld(): void {
    const held = this.#held.splice(0)
    for (const input of held) if (!this.#holds(input)) this.#apply(input)
  }

  #cancelHeld(): void {
    this.#held = []
    if (this.#tabbing) this.#closeCompletion()
    this.#tabbing = undefined
  }

  #pasted(text: string): EditorState {
    const isFile = this.#refusing === undefined ? mentionsOf(text) : undefined
    if (isFile !== undefined) return insert(this.#editor, `${isFile} `)
    // Folded, so that files named in pasted text are not attached.
    return namesFile(text, this.view.place?.directory) ? pasteFolded(this.#editor, text) : paste(this.#editor, text)
  }

  #press(name: string): void {
    switch (name) {
      case 'enter':
        return this.#enter()
      case 'tab':
        return void this.#tab()
      case 'shift-tab':
        return this.#select(-1)
      case 'up':
      case 'ctrl-p':
        return this.#up(-1)
      case 'down':
      case 'ctrl-n':
        return this.#up(1)
      case 'escape':
        return this.#escape()
      case 'ctrl-c':
        return this.#ctrlC()
      case 'ctrl-d':
        return textOf(this.#editor) === '' ? this.#leave() : this.#edit(press(this.#editor, name), false)
      case 'ctrl-l':
        return this.#clearScreen()
      case 'ctrl-z':
        this.#screen.clear()
        return this.#terminal.suspend(() => this.view.draw())
      default:
        this.#edit(press(this.#editor, name), name === 'backspace' && this.#completion !== undefined)
    }
  }

  #edit(next: EditorState, offersCompletion: boolean): void {
    if (next === this.#editor) return
    this.#editor = next
    this.#closeCompletion()
    if (offersCompletion && this.#refusing === undefined) void this.#offer()
  }

  #enter(): void {
    const candidate = this.#completion?.candidates[this.#selected]
    if (this.#completion && this.#hasSelected && candidate) return this.#accept(this.#completion, candidate)
    const next = continued(this.#editor)
    if (next) return this.#edit(next, false)
    this.#closeCompletion()
    if (this.#refusing === undefined) this.#submit()
    else void this.#refuse(this.#refusing, textOf(this.#editor).trim())
  }

  #submit(): void {
    const text = textOf(this.#editor)
    const session = this.#session
    if (text.trim() === '' || !session) return
    const isCommand = isGatewayCommand(text)
    const { directory } = this.view.place ?? {}
    const files = isCommand ? [] : attachmentsIn(typedText(this.#editor.units), directory)
    // Pasted text must not attach files when it is recalled from the history, either.
    if (!this.#editor.units.some((unit) => isFolded(unit) && namesFile(unit, directory))) this.#history.add(text)
    this.view.showSent(
      this.#editor,
      files.map(({ name, bytes }) => `Attached: ${name} (${describeBytes(bytes)})`),
    )
    this.#editor = { ...EMPTY, cut: this.#editor.cut }
    if (text.trim() === '/quit') return this.#leave()
    const paths = files.map(({ path }) => path)
    if (!isCommand) this.view.setBusy(true)
    this.#taking = this.#taking.then(async () => {
      await session.take(text, paths)
      if (isCommand) await this.#readPlace(session)
      this.view.setBusy(session.isBusy)
    })
  }

  #escape(): void {
    if (this.#completion) return this.#closeCompletion()
    if (this.#refusing !== undefined) return this.#endReason()
    if (this.#isWorking) void this.#stop()
  }

  #ctrlC(): void {
    if (this.#refusing !== undefined) return this.#endReason()
    if (textOf(this.#editor) !== '') {
      this.#closeCompletion()
      this.#editor = { units: [], cursor: 0, cut: this.#editor.units }
      return
    }
    if (this.#isWorking && !this.#isStopping) return void this.#stop()
    if (this.#hintTimer) return this.#leave()
    this.#setHint('Press Ctrl-C again to leave.')
  }

  async #stop(): Promise<void> {
    this.#isStopping = true
    await this.#session?.stopTurn()
    this.#isStopping = false
  }

  /** Whether the input was a key that answers a question. */
  #answers(input: Input): boolean {
    const { questions } = this.view
    const isFree = textOf(this.#editor) === '' && this.#refusing === undefined
    if (input.kind !== 'text' || !questions.isReady(isFree)) return false
    const decision = questions.decisionOf(input.text)
    if (decision === undefined) return false
    if (decision === 'reason') this.#refusing = questions.current?.id
    else void this.#decide(decision)
    this.#show()
    return true
  }

  async #refuse(id: string, reason: string): Promise<void> {
    if (reason === '') return this.#endReason()
    if (reason.length > MAX_REASON) return this.#setHint(`A reason can have at most ${MAX_REASON} characters.`)
    this.#endReason()
    await this.#decide({ id, decision: 'deny', message: reason })
  }

  #endReason(): void {
    this.#refusing = undefined
    this.#editor = { ...EMPTY, cut: this.#editor.cut }
  }

  async #decide(decision: Decision): Promise<void> {
    try {
      await this.view.questions.decide(decision, async (given) => this.#session?.answerQuestion(given))
    } catch (error) {
      this.view.note(`Error: ${messageOf(error)}`)
    }
  }

  #up(direction: -1 | 1): void {
    if (this.#completion) return this.#select(direction)
    const moved = moveLine(this.#editor, direction)
    if (moved) return this.#edit(moved, false)
    const entry = this.#refusing === undefined ? this.#history.step(direction, textOf(this.#editor)) : undefined
    if (entry !== undefined) this.#edit(withText(this.#editor, entry), false)
  }

  /** Accepts the candidate; on the first Tab, only if it is the only one. */
  async #tab(): Promise<void> {
    if (this.#refusing !== undefined) return
    const open = this.#completion
    const tabbing = {}
    this.#tabbing = tabbing
    const completion = open ?? (await this.#offer())
    // Ctrl-C was pressed in the meantime.
    if (this.#tabbing !== tabbing) return
    const candidate = completion?.candidates[this.#selected]
    if (completion && candidate && (open || completion.candidates.length === 1)) this.#accept(completion, candidate)
    this.#tabbing = undefined
    this.#takeHeld()
    this.#show()
  }

  #accept(completion: Completion, candidate: Candidate): void {
    this.#editor = accept(this.#editor, completion, candidate)
    this.#closeCompletion()
    // Next come an argument, or the files in the directory.
    if (/[ /]$/.test(candidate.text)) void this.#offer()
  }

  async #offer(): Promise<Completion | undefined> {
    const editor = this.#editor
    this.#completing += 1
    const turn = this.#completing
    const { conversation: address } = this.options
    const found = await complete(editor, {
      commands: [...COMMANDS, ...OWN_COMMANDS],
      directory: this.view.place?.directory,
      suggest: async (command, typed) => {
        const answer = await this.#session?.control
          ?.call('chat.suggest', { address, command, typed })
          .catch(() => undefined)
        return answer?.suggestions ?? []
      },
    })
    if (turn !== this.#completing || this.#editor !== editor) return undefined
    this.#completion = found
    this.#show()
    return found
  }

  #select(step: -1 | 1): void {
    const count = this.#completion?.candidates.length ?? 0
    if (count === 0) return
    this.#selected = (this.#selected + step + count) % count
    this.#hasSelected = true
  }

  #closeCompletion(): void {
    this.#completing += 1
    this.#completion = undefined
    this.#selected = 0
    this.#hasSelected = false
  }

  #clearScreen(): void {
    this.#screen.clear()
    this.options.stdout.write('\u001B[H\u001B[2J')
  }

  #setHint(hint: string): void {
    clearTimeout(this.#hintTimer)
    this.#hintTimer = undefined
    this.#hint = hint
    if (hint === '') return
    this.#hintTimer = setTimeout(() => {
      this.#setHint('')
      this.#show()
    }, LEAVE_MS)
  }

  #show(): void {
    this.view.input = this.#inputState()
    this.view.draw()
  }

  #inputState() {
    const isRefusing = this.#refusing !== undefined
    return {
      editor: this.#editor,
      prompt: isRefusing ? REASON_PROMPT : PROMPT,
      isRefusing,
      candidates: this.#completion?.candidates ?? [],
      selected: this.#selected,
      hint: this.#hint,
    }
  }
}

/** Huge texts are not searched: they are folded and not remembered anyway. */
function namesFile(text: string, directory: string | undefined): boolean {
  return text.length <= LONGEST_ENTRY && attachmentsIn(text, directory).length > 0
}

export function historyFileIn(home: string): string {
  return join(home, HISTORY_FILE)
}
