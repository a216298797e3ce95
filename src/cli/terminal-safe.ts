import { showableLines } from '../core/one-line.js'
import type { Output } from './turn-printer.js'

/** Keeps somebody else's text from acting on a terminal. A file or a pipe gets every character. */
export function terminalSafe(stream: Output & { isTTY?: boolean }): Output {
  return stream.isTTY ? { write: (text) => stream.write(showableLines(String(text))) } : stream
}
