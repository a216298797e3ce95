import { printableLines } from '../core/one-line.js'
import type { Output } from './turn-printer.js'

/** Keeps untrusted text from manipulating a terminal. Files and pipes get every character. */
export function terminalSafe(stream: Output & { isTTY?: boolean }): Output {
  return stream.isTTY ? { write: (text) => stream.write(printableLines(String(text))) } : stream
}
