import { oneLine } from '../../core/one-line.js'

const MAX_CHARACTERS = 120

/** One short line, escaped: text of others must not affect the formatting of its line. */
export function plainLine(text: string): string {
  return oneLine(text, MAX_CHARACTERS).replaceAll(/[\\`*_~|<>[\]#]/g, String.raw`\$&`)
}
