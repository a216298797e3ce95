// What can be completed while typing: a command at the beginning, or a file anywhere. Pure.

export interface Completing {
  kind: 'command' | 'file'
  /** Where it begins, including the sign. */
  start: number
  query: string
}

/** Contract: nothing in the middle of a word, and a command only at the very beginning. */
export function completingAt(text: string, caret: number): Completing | undefined {
  const before = text.slice(0, caret)
  const command = /^\/(\w*)$/.exec(before)
  if (command) return { kind: 'command', start: 0, query: command[1] ?? '' }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before)
  return file ? { kind: 'file', start: caret - 1 - (file[1] ?? '').length, query: file[1] ?? '' } : undefined
}

/** The text with the completion in place of the typed part, and where the caret goes. */
export function completed(
  text: string,
  { kind, start, query }: Completing,
  chosen: string,
): { text: string; caret: number } {
  // After a directory, typing continues.
  const space = chosen.endsWith('/') ? '' : ' '
  const word = `${kind === 'command' ? '/' : '@'}${chosen}${space}`
  const rest = text.slice(start + 1 + query.length).replace(/^ /, '')
  return { text: text.slice(0, start) + word + rest, caret: start + word.length }
}
