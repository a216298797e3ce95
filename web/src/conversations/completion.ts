// What is being typed that can be completed: a command at the beginning, or a file anywhere. Pure.

export interface Completing {
  kind: 'command' | 'file'
  /** Where it begins, with its sign. */
  start: number
  query: string
}

/** Contract: nothing in the middle of a word, and no command but at the very beginning. */
export function completingAt(text: string, caret: number): Completing | undefined {
  const before = text.slice(0, caret)
  const command = /^\/(\w*)$/.exec(before)
  if (command) return { kind: 'command', start: 0, query: command[1] ?? '' }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before)
  return file ? { kind: 'file', start: caret - 1 - (file[1] ?? '').length, query: file[1] ?? '' } : undefined
}

/** The text with what was chosen in the place of what was typed, and where one goes on typing. */
export function completed(
  text: string,
  { kind, start, query }: Completing,
  chosen: string,
): { text: string; caret: number } {
  // In a directory one goes on typing.
  const space = chosen.endsWith('/') ? '' : ' '
  const word = `${kind === 'command' ? '/' : '@'}${chosen}${space}`
  const rest = text.slice(start + 1 + query.length).replace(/^ /, '')
  return { text: text.slice(0, start) + word + rest, caret: start + word.length }
}
