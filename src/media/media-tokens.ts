/** Linux opens no path that is longer; what is, was not meant as one. */
const LONGEST_PATH = 4096
const TOKEN = 'MEDIA:'
/** Two of them on one line. */
const SEVERAL = /\sMEDIA:/
const QUOTES = ['"', "'", '`']
const EXTENSION = /\.[\p{L}\d]{1,15}$/u

export interface MediaTokens {
  /** Without the lines that name files. */
  text: string
  /** Paths and web addresses as the agent wrote them, each once. Nothing about them has been checked: see
   *  `openOutgoingFile` and `fetchPublic`. */
  media: string[]
}

/**
 * Takes the lines `MEDIA:<path or web address>` out of an agent's answer.
 *
 * Contract: never throws, and a text without such a line comes back as it is. Only a whole line counts, and only outside
 * code fences: an agent that speaks about the token, or quotes a file that has one in it, sends nothing. Every other line
 * stays to the character. Of the two blank lines that a line taken out would leave next to each other, one goes; the
 * beginning and the end of the text count as a blank line.
 */
export function readMediaTokens(text: string): MediaTokens {
  if (!text.includes(TOKEN)) return { text, media: [] }
  const media = new Set<string>()
  const kept: string[] = []
  const lines = text.split('\n')
  const fences = new Fences()
  let lastTaken: number | undefined
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    const named = fences.holds(line) ? [] : mediaOf(line)
    if (named.length === 0) {
      kept.push(line)
      continue
    }
    for (const item of named) media.add(item)
    lastTaken = index
    if (isBlank(kept.at(-1)) && isBlank(lines[index + 1])) index += 1
  }
  if (lastTaken === lines.length - 1) endWithoutBreak(kept)
  return { text: kept.join('\n'), media: [...media] }
}

/** Whether what a line names is an address on the web and not a path. */
export function isWebAddress(media: string): boolean {
  return /^https?:\/\//i.test(media)
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

/** Nothing when one of them is not clear: the line stays then, for the person to see. */
function mediaOf(line: string): string[] {
  if (!line.startsWith(TOKEN)) return []
  const named = line.slice(TOKEN.length).split(SEVERAL).map(readOne)
  return named.every((item) => item !== undefined) ? named : []
}

function readOne(text: string): string | undefined {
  const trimmed = text.trim()
  const item = unquote(trimmed)
  if (item === undefined || item.length > LONGEST_PATH) return undefined
  if (isWebAddress(item)) return !/[\s\p{Cc}]/u.test(item) && URL.canParse(item) ? item : undefined
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(item)?.[1]?.toLowerCase()
  if (scheme !== undefined) return scheme === 'file' ? decode(item.slice('file://'.length)) : undefined
  // Words of a sentence, more likely than the name of a file.
  if (item === trimmed && /\s/.test(item) && !item.includes('/') && !EXTENSION.test(item)) return undefined
  return item
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
