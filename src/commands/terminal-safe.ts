import type { Output } from './turn-printer.js'

/** All control characters but the end of a line and the tab. */
const ACTING = /\p{Cc}/gu

/** Keeps somebody else's text from acting on a terminal. A file or a pipe gets every character. */
export function terminalSafe(stream: Output & { isTTY?: boolean }): Output {
  return stream.isTTY ? { write: (text) => stream.write(withoutControls(String(text))) } : stream
}

function withoutControls(text: string): string {
  return text.replaceAll(ACTING, (character) => (character === '\n' || character === '\t' ? character : ''))
}
