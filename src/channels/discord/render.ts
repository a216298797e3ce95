// Discord renders less Markdown than agents write: no tables, no deep headings, no images, and only fences of three
// backticks. Whatever it does render stays as it is, character for character.

import {
  type Fence,
  findInlineCode,
  findOpener,
  isCloser,
  type MarkdownLine,
  readMarkdown,
  type Span,
} from '../markdown-lines.js'
import { type CodeFile, languageIn, nameCodeFile } from './code-file.js'
import { isTableHead, renderTable } from './render-table.js'

/** Longer code becomes a file: it would be torn across too many messages. */
const MAX_CODE_CHARACTERS = 4_000
const MAX_CODE_LINES = 150

/** A text with none of these stays as it is. */
const MARKUP = /[`~#|[*_-]/
const MARKER = '```'
const RULE = '─'.repeat(20)
const QUOTES = String.raw`(?:[ \t]*>)*[ \t]*`
const RULE_LINE = /^[ \t]*([-*_])(?:[ \t]*\1){2,}$/
const HEADING = new RegExp(String.raw`^(${QUOTES})#{4,6}[ \t]+(\S.*)$`, 's')
const TASK = new RegExp(String.raw`^(${QUOTES}(?:[-*+]|\d{1,9}[.)])[ \t]+)\[([ xX])\](?=[ \t])`)
const TARGET = String.raw`<?([^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+(?:"[^"]*"|'[^']*'))?[ \t]*`
const IMAGE = String.raw`!\[([^[\]]*)\]\(${TARGET}\)`
const IMAGES = new RegExp(String.raw`(?<!\\)(?:\[${IMAGE}\]\(${TARGET}\)|${IMAGE})`, 'g')

/** What may follow the language of a fence: `title=x`, `{1,3}`, `[x.ts]`, a file name. */
const FENCE_ATTRIBUTE = /[={}[\]:]|\.\w+$/

export interface RenderedText {
  text: string
  files: CodeFile[]
}

/** The text as Discord can render it, and the code blocks that are too long for a message. */
export function renderForDiscord(text: string): RenderedText {
  if (!MARKUP.test(text)) return { text, files: [] }
  return new Renderer(separateFenceWords(text)).render()
}

class Renderer {
  readonly #lines: MarkdownLine[]
  readonly #inlineCode: Span[]
  readonly #files: CodeFile[] = []
  readonly #output: string[] = []
  /** The end of the text handled so far. */
  #position = 0
  /** The index of the first inline code at or after the current line. */
  #inlineIndex = 0

  constructor(private readonly text: string) {
    this.#lines = readMarkdown(text)
    this.#inlineCode = findInlineCode(text, this.#lines)
  }

  render(): RenderedText {
    for (let index = 0; index < this.#lines.length;) {
      index = this.#renderFence(index) ?? this.#renderTable(index) ?? this.#renderLine(index)
    }
    this.#output.push(this.text.slice(this.#position))
    return { text: this.#output.join(''), files: this.#files }
  }

  /** Returns the index of the next line, like the other `#render…` methods. */
  #renderFence(index: number): number | undefined {
    const opener = this.#lines[index]
    const fence = opener?.kind === 'open' ? opener.fence : undefined
    if (!opener || !fence) return undefined
    let next = index + 1
    while (this.#lines[next]?.fence === fence) next += 1
    const closer = this.#lines.slice(index + 1, next).findLast(({ kind }) => kind === 'close')
    const code = this.#lines.slice(index + 1, closer ? next - 1 : next)
    const end = (code.at(-1) ?? opener).end
    const codeLength = end - (code[0]?.start ?? end)
    const isLong = codeLength > MAX_CODE_CHARACTERS || code.length > MAX_CODE_LINES
    const afterPrefix = opener.start + fence.prefix.length

    if (fence.quote === '' && (isLong || this.text.slice(end - codeLength, end).includes(MARKER))) {
      this.#replace({ start: afterPrefix, end: closer?.end ?? end }, this.#attach(fence, code))
      return next
    }
    const marker = fence.quote === '' ? MARKER : fence.marker
    if (fence.quote === '') {
      if (!/^```[\w+.#-]*$/.test(this.text.slice(afterPrefix, opener.end))) {
        this.#replace({ start: afterPrefix, end: opener.end }, `${marker}${languageIn(fence.info)}`)
      }
      const markerStart = closer ? this.text.indexOf(fence.marker, closer.start) : 0
      if (closer) this.#replace({ start: markerStart, end: closer.end }, marker)
    }
    // An open fence would be shown literally, and swallow the notes posted below it.
    if (!closer && next === this.#lines.length) {
      this.#replace({ start: end, end: this.text.length }, `\n${fence.prefix}${marker}`)
    }
    return next
  }

  /** Discord ends code at the first three backticks, so code that contains them becomes a file too. */
  #attach(fence: Fence, code: MarkdownLine[]): string {
    const indentation = new RegExp(`^[ \\t]{0,${fence.prefix.length}}`)
    const content = code.map(({ start, end }) => `${this.text.slice(start, end).replace(indentation, '')}\n`).join('')
    const name = nameCodeFile(fence.info, this.#files)
    this.#files.push({ name, content })
    return `📎 ${name} (${code.length} ${code.length === 1 ? 'line' : 'lines'})`
  }

  #renderTable(index: number): number | undefined {
    const [head, delimiter] = [this.#lines[index], this.#lines[index + 1]]
    if (!head || !this.#isRow(head) || !delimiter || !this.#isRow(delimiter) || delimiter.isAfterBlank) return undefined
    if (!isTableHead(this.#textOf(head), this.#textOf(delimiter))) return undefined
    let next = index + 2
    for (let line = this.#lines[next]; line && this.#isRow(line) && !line.isAfterBlank; line = this.#lines[next])
      next += 1
    const lines = this.#lines.slice(index, next)
    const indentation = /^[ \t]*/.exec(this.#textOf(head))?.[0] ?? ''
    const rendered = renderTable(lines.map((line) => this.#textOf(line)))
    this.#replace(
      { start: head.start, end: (lines.at(-1) ?? head).end },
      rendered.map((line) => (line === '' ? '' : `${indentation}${line}`)).join('\n'),
    )
    return next
  }

  #isRow(line: MarkdownLine): boolean {
    return line.kind === 'text' && !line.isDeep && !line.isItem && /^[^>]*\|/.test(this.#textOf(line))
  }

  #renderLine(index: number): number {
    const line = this.#lines[index]
    if (!line || line.kind !== 'text' || line.isDeep) return index + 1
    const shown = this.#textOf(line)
    const isHeading = HEADING.test(shown)
    const inline = this.#outsideCode(line, (text) =>
      isHeading ? renderImages(text).replaceAll('**', '') : renderImages(text),
    )
    const rendered = RULE_LINE.test(shown)
      ? RULE
      : inline
          .replace(HEADING, (_, quotes: string, title: string) => `${quotes}${bold(withoutClosingMarks(title))}`)
          .replace(TASK, (_, item: string, mark: string) => `${item}${mark === ' ' ? '☐' : '☑'}`)
    if (rendered !== shown) this.#replace(line, rendered)
    return index + 1
  }

  #outsideCode({ start, end }: Span, render: (text: string) => string): string {
    while ((this.#inlineCode[this.#inlineIndex]?.end ?? Infinity) <= start) this.#inlineIndex += 1
    const parts: string[] = []
    let position = start
    for (let index = this.#inlineIndex; index < this.#inlineCode.length; index += 1) {
      const span = this.#inlineCode[index]
      if (!span || span.start >= end) break
      const codeStart = Math.max(start, span.start)
      const codeEnd = Math.min(end, span.end)
      parts.push(render(this.text.slice(position, codeStart)), this.text.slice(codeStart, codeEnd))
      position = codeEnd
    }
    return [...parts, render(this.text.slice(position, end))].join('')
  }

  #replace({ start, end }: Span, shown: string): void {
    this.#output.push(this.text.slice(this.#position, start), shown)
    this.#position = end
  }

  #textOf({ start, end }: Span): string {
    return this.text.slice(start, end)
  }
}

/** An image becomes a link; Discord previews its target. */
function renderImages(text: string): string {
  if (!text.includes('![')) return text
  return text.replace(IMAGES, (_, ...found: (string | undefined)[]) => {
    const [linkedLabel, linkedImage = '', link, label = '', image = ''] = found
    return link === undefined ? linkTo(image, label) : linkTo(link, linkedLabel || linkedImage)
  })
}

function linkTo(target: string, label: string): string {
  if (target.startsWith('data:') || target === '') return label === '' ? 'image' : label
  if (label === '' || label === target) return target
  return /^https?:/i.test(target) ? `[${label}](${target})` : `${label} (${target})`
}

function bold(text: string): string {
  return /[^*]/.test(text) ? `**${text}**` : text
}

function withoutClosingMarks(title: string): string {
  const bare = title.trimEnd()
  let end = bare.length
  while (bare[end - 1] === '#') end -= 1
  return end === 0 || /\s/.test(bare[end - 1] ?? '') ? bare.slice(0, end).trimEnd() : bare
}

/**
 * Moves words that an agent wrote on a fence's line onto a line of their own, since Discord has no place for them.
 * After a closing marker they are text; after an opening one they are the first line of the code.
 */
function separateFenceWords(text: string): string {
  if (!text.includes('```')) return text
  let fence: Fence | undefined
  const lines = text.split('\n').map((line) => {
    if (!fence) {
      fence = findOpener(line)
      return fence?.quote === '' && isSentence(fence.info)
        ? `${line.slice(0, line.indexOf(fence.marker))}${fence.marker}\n${fence.info}`
        : line
    }
    if (isCloser(line, fence)) {
      fence = undefined
      return line
    }
    const [, marker = '', words = ''] = /^( {0,3}`{3,})[ \t]+(\S.*)$/s.exec(line) ?? []
    if (marker.trim() !== fence.marker || fence.quote !== '' || words.includes('`') || !isSentence(words)) return line
    fence = undefined
    return `${marker}\n${words}`
  })
  return lines.join('\n')
}

function isSentence(words: string): boolean {
  const [, ...rest] = words.trim().split(/\s+/)
  return rest.length > 0 && !rest.some((word) => FENCE_ATTRIBUTE.test(word))
}
