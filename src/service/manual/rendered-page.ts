// Pages of the documentation: Markdown in, HTML and what a search finds out.

import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { escapeHtml } from '../html-page.js'

export interface RenderedPage {
  /** Below `/docs`; the front page is empty. */
  path: string
  title: string
  html: string
  sections: Section[]
}

/** A heading, and the text below it up to the next one. */
export interface Section {
  heading: string
  anchor: string
  text: string
}

/** `file` and `files` are relative to the directory of the documentation. */
export function renderPage(file: string, markdown: string, files: ReadonlySet<string>): RenderedPage {
  const anchors = new Anchors()
  const sections: Section[] = []
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        const anchor = anchors.of(textOf(tokens))
        return `<h${depth} id="${escapeHtml(anchor)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = addressOf(href, file, files)
        return target === undefined ? text : `<a href="${escapeHtml(target)}">${text}</a>`
      },
      image({ href, text }) {
        const target = addressOf(href, file, files)
        return target === undefined ? escapeHtml(text) : `<img src="${escapeHtml(target)}" alt="${escapeHtml(text)}">`
      },
      // Comments; the pages have no other HTML.
      html: () => '',
    },
  })
  const tokens = marked.lexer(markdown)
  const found = new Anchors()
  for (const token of tokens) {
    if (token.type === 'heading') {
      const heading = textOf(token.tokens ?? [])
      sections.push({ heading, anchor: found.of(heading), text: '' })
    } else {
      const section = sections.at(-1)
      if (section) section.text += `${textOf([token])}\n`
    }
  }
  const title = sections[0]?.heading ?? file
  return { path: pathOf(file), title, html: marked.parser(tokens), sections }
}

/** Where the gateway serves it: `backends/codex.md` as `backends/codex`, and a `README.md` as its directory. */
export function pathOf(file: string): string {
  return file.replace(/\.md$/, '').replace(/(?:^|\/)README$/, '')
}

/** Undefined for what is not served, such as files of the repository. */
function addressOf(href: string, file: string, files: ReadonlySet<string>): string | undefined {
  if (/^(?:[a-z]+:|#)/.test(href)) return href
  const [path = '', anchor] = href.split('#')
  const target = posix.join(posix.dirname(file), path)
  if (!files.has(target)) return undefined
  return `${posix.join('/docs', pathOf(target))}${anchor === undefined ? '' : `#${anchor}`}`
}

/** The ids of headings, as GitHub makes them, so that a link leads to the same place here and there. */
class Anchors {
  readonly #used = new Map<string, number>()

  of(heading: string): string {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    const count = this.#used.get(anchor) ?? 0
    this.#used.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  }
}

function textOf(tokens: Token[]): string {
  return tokens.map(textOfOne).join('')
}

function textOfOne(token: Token): string {
  switch (token.type) {
    case 'html':
      return ''
    case 'list':
      return (token as Tokens.List).items.map((item) => `${textOf(item.tokens)}\n`).join('')
    case 'table': {
      const { header, rows } = token as Tokens.Table
      return [header, ...rows].map((cells) => cells.map((cell) => textOf(cell.tokens)).join(' ')).join('\n')
    }
    default:
      return 'tokens' in token && token.tokens ? textOf(token.tokens) : 'text' in token ? String(token['text']) : ''
  }
}
