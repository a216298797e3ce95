/** Linux accepts no longer path, so anything longer was not meant as one. */
const MAX_PATH_LENGTH = 4096
const TOKEN = 'MEDIA:'
/** Several tokens on one line. */
const SEVERAL = /\sMEDIA:/
const QUOTES = ['"', "'", '`']
const EXTENSION = /\.[\p{L}\d]{1,15}$/u

export interface MediaTokens {
  /** The text without the lines that name files. */
  text: string
  /**
   * Paths and URLs as the agent wrote them, without duplicates. Nothing about them has been checked: see
   * `openOutgoingFile` and `fetchPublic`.
   */
  media: string[]
}

/**
 * Extracts the lines `MEDIA:<path or URL>` from an agent's answer.
 *
 * Contract: never throws, and a text without such a line is returned unchanged. Only a whole line counts, and only
 * outside code fences: an agent that mentions the token, or quotes a file containing it, sends nothing. All other lines
 * stay exactly as they are. If removing a line would leave two adjacent blank lines, one is dropped; the beginning and
 * the end of the text count as blank lines.
 */
export function readMediaTokens(text: string): MediaTokens {
  if (!text.includes(TOKEN)) return { text, media: [] }
  const media = new Set<string>()
  const kept: string[] = []
  const lines = text.split('\n')
  const fences = new Fences()
  let lastRemoved: number | undefined
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    const named = fences.holds(line) ? [] : mediaOf(line)
    if (named.length === 0) {
      kept.push(line)
      continue
    }
    for (const item of named) media.add(item)
    lastRemoved = index
    if (isBlank(kept.at(-1)) && isBlank(lines[index + 1])) index += 1
  }
  if (lastRemoved === lines.length - 1) endWithoutBreak(kept)
  return { text: kept.join('\n'), media: [...media] }
}

/** Whether it is a URL rather than a path. */
export function isWebAddress(media: string): boolean {
  return /^https?:\/\//i.test(media)
}

/** Tracks which lines of a Markdown text are fenced code. */
class Fences {
  #open = ''

  /** Whether the next line is a fence or inside one. */
  holds(line: string): boolean {
    const [, marker = '', info = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/s.exec(line) ?? []
    if (this.#open !== '') {
      if (marker.startsWith(this.#open) && info.trim() === '') this.#open = ''
      return true
    }
    // Three backticks followed by another backtick on the same line are inline code.
    if (marker === '' || (marker.startsWith('`') && info.includes('`'))) return false
    this.#open = marker
    return true
  }
}

/** Empty if any of them is ambiguous: the line then stays, for the person to see. */
function mediaOf(line: string): string[] {
  if (!line.startsWith(TOKEN)) return []
  const named = line.slice(TOKEN.length).split(SEVERAL).map(readOne)
  return named.every((item) => item !== undefined) ? named : []
}

function readOne(text: string): string | undefined {
  const trimmed = text.trim()
  const item = unquote(trimmed)
  if (item === undefined || item.length > MAX_PATH_LENGTH) return undefined
  if (isWebAddress(item)) return !/[\s\p{Cc}]/u.test(item) && URL.canParse(item) ? item : undefined
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(item)?.[1]?.toLowerCase()
  if (scheme !== undefined) return scheme === 'file' ? decode(item.slice('file://'.length)) : undefined
  // More likely words of a sentence than a file name.
  if (item === trimmed && /\s/.test(item) && !item.includes('/') && !EXTENSION.test(item)) return undefined
  return item
}

/** Undefined if it is empty, or if it is unclear where the path ends. */
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
    // Written by hand, with a literal percent sign.
    return path
  }
}

/** Also true before the first line and after the last. */
function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === ''
}

/** The last line was removed: what is now the last needs no blank line or line ending after it. */
function endWithoutBreak(lines: string[]): void {
  if (lines.length > 0 && isBlank(lines.at(-1))) lines.pop()
  const last = lines.pop()
  if (last !== undefined) lines.push(last.replace(/\r$/, ''))
}
