import { oneLine } from '../../core/one-line.js'
import type { ChatView } from '../chat-session.js'
import type { HistoryEntry } from '../control/protocol.js'
import { type Output, TurnPrinter } from '../turn-printer.js'
import { localDateTime } from '../../core/local-time.js'

export const OWN_COMMANDS = '/history: show the last messages\n/quit: leave'

/** A chat as plain text, for pipes and simple terminals: answers on stdout, everything else on stderr. */
export class PlainView implements ChatView {
  readonly help: string = OWN_COMMANDS
  protected printer: TurnPrinter

  constructor(
    private readonly stdout: Output,
    private readonly stderr: Output,
    readonly width: number,
    protected readonly now: () => number,
  ) {
    this.printer = new TurnPrinter(stdout, stderr, now)
  }

  newPrinter(): TurnPrinter {
    this.printer = new TurnPrinter(this.stdout, this.stderr, this.now)
    return this.printer
  }

  note(text: string): void {
    this.printer.note(text)
  }

  showHistory(entries: HistoryEntry[]): void {
    const lastMessage = entries.findLastIndex(({ kind }) => kind === 'message')
    for (const [index, entry] of entries.entries()) {
      const who = entry.kind === 'message' ? entry.author : entry.isError ? 'error' : 'agent'
      const isWhole = entry.kind === 'reply' && index > lastMessage && !entry.question
      // The answer to the last message may not have been read yet: show it in full.
      const text = isWhole ? entry.text : oneLine(entry.text, Math.max(this.width - 42, 20))
      this.stdout.write(`${localDateTime(entry.at)}  ${oneLine(who, 20)}: ${text}\n`)
      if (!isWhole) continue
      for (const file of entry.shownFiles ?? []) if ('place' in file) this.newPrinter().file(file.place)
    }
  }

  idle(): void {}
}
