/** Linux opens no path that is longer; what is, was not meant as one. */
const LONGEST_PATH = 4096
const TOKEN = 'MEDIA:'
const QUOTES = ['"', "'", '`']

export interface MediaTokens {
  /** Without the lines that name files. */
  text: string
  /** As the agent wrote them, each once. Nothing about them has been checked: see `openOutgoingFile`. */
  paths: string[]
}

/**
 * Takes the lines `MEDIA:<path>` out of an agent's answer.
 *
 * Contract: never throws, and a text without such a line comes back as it is. Only a whole line counts, and only outside
 * code fences: an agent that speaks about the token, or quotes a file that has one in it, sends nothing. Every other line
 * stays to the character. Of the two blank lines that a line taken out would leave next to each other, one goes; the
 * beginning and the end of the text count as a blank line.
 */
export function readMediaTokens(text: string): MediaTokens {
  if (!text.includes(TOKEN)) return { text, paths: [] }
  const paths = new Set<string>()
  const kept: string[] = []
  const lines = text.split('\n')
  const fences = new Fences()
  let lastTaken: number | undefined
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    const path = fences.holds(line) ? undefined : pathOf(line)
    if (path === undefined) {
      kept.push(line)
      continue
    }
    paths.add(path)
    lastTaken = index
    if (isBlank(kept.at(-1)) && isBlank(lines[index + 1])) index += 1
  }
  if (lastTaken === lines.length - 1) endWithoutBreak(kept)
  return { text: kept.join('\n'), paths: [...paths] }
}

/** Walks over the lines of a Markdown text and knows which of them are code between fences. */
class Fences {
  #open = ''

  /** Whether the next line is a fence or stands between two. */
  holds(line: string): boolean {
    const [, marker = '', info = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/s.exec(line) ?? []
    if (this.#open !== '') {
      if (marker.startsWith(this.#open) && info.trim() === '') this.#open = ''
      return true
    }
    // Three backticks with another after them are code within a line.
    if (marker === '' || (marker.startsWith('`') && info.includes('`'))) return false
    this.#open = marker
    return true
  }
}

function pathOf(line: string): string | undefined {
  if (!line.startsWith(TOKEN)) return undefined
  const path = unquote(line.slice(TOKEN.length).trim())
  if (path === undefined || path.length > LONGEST_PATH) return undefined
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(path)?.[1]?.toLowerCase()
  if (scheme === undefined) return path
  // An address on the web is something to read, not a file of ours.
  return scheme === 'file' ? decode(path.slice('file://'.length)) : undefined
}

/** Nothing when there is nothing in it, or when it is not clear where the path ends. */
function unquote(text: string): string | undefined {
  const quote = QUOTES.find((quote) => text.startsWith(quote))
  if (quote === undefined) return text === '' ? undefined : text
  const inner = text.slice(1, -1)
  const isWhole = text.length > 2 && text.endsWith(quote) && !inner.includes(quote) && inner.trim() !== ''
  return isWhole ? inner : undefined
}

function decode(path: string): string | undefined {
  if (path === '') return undefined
  try {
    return decodeURIComponent(path)
  } catch {
    // Written by hand, with a percent sign that stands for itself.
    return path
  }
}

/** Also what is before the first line and after the last. */
function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === ''
}

/** The last line is gone: what stood before it, now last, needs no blank line and no end of line after it. */
function endWithoutBreak(lines: string[]): void {
  if (lines.length > 0 && isBlank(lines.at(-1))) lines.pop()
  const last = lines.pop()
  if (last !== undefined) lines.push(last.replace(/\r$/, ''))
}
