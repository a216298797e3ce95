// Markdown from agents and people as nodes. It never becomes HTML: a tag in it is plain text, and unknown syntax is
// shown as written.

import type { MarkedToken, Token, Tokens } from 'marked'
import { type ComponentChildren, h } from 'preact'
import { BoundedLexer, DEEPEST } from '../../src/core/bounded-markdown.js'
import { decodeEntities } from '../../src/core/entities.js'
import { Code } from './parts/code.js'

const SAFE_SCHEMES = ['http:', 'https:', 'mailto:']
const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const

export function markdownNodes(text: string): ComponentChildren {
  return blocks(new BoundedLexer().lex(text), 0)
}

function blocks(tokens: Token[], depth: number): ComponentChildren {
  return tokens.map((token) => block(token, depth))
}

function block(token: Token, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <p>{token.raw}</p>
  const known = token as MarkedToken
  switch (known.type) {
    case 'heading':
      // The page uses the higher levels.
      return h(HEADINGS[known.depth - 1] ?? 'h6', null, inlines(known.tokens, depth))
    case 'paragraph':
      return <p>{inlines(known.tokens, depth)}</p>
    case 'code':
      return <Code text={known.text} language={known.lang?.split(/\s/, 1)[0] ?? ''} />
    case 'blockquote':
      return <blockquote>{blocks(known.tokens, depth + 1)}</blockquote>
    case 'list':
      return list(known, depth)
    case 'table':
      return table(known, depth)
    case 'hr':
      return <hr />
    case 'space':
    case 'def':
      return null
    case 'text':
      return known.tokens ? inlines(known.tokens, depth) : decodeEntities(known.text)
    case 'html':
      return <p>{known.raw}</p>
    default:
      return inline(token, depth)
  }
}

function list({ ordered, start, items }: Tokens.List, depth: number): ComponentChildren {
  const entries = items.map(({ tokens }) => <li>{blocks(tokens, depth + 1)}</li>)
  return ordered ? <ol start={start === '' ? 1 : start}>{entries}</ol> : <ul>{entries}</ul>
}

function table({ header, rows }: Tokens.Table, depth: number): ComponentChildren {
  return (
    <div class="table-frame">
      <table>
        <thead>
          <tr>
            {header.map(({ tokens, align }) => (
              <th scope="col" class={alignment(align)}>
                {inlines(tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map(({ tokens, align }) => (
                <td class={alignment(align)}>{inlines(tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function alignment(align: Tokens.TableCell['align']): string | undefined {
  return align === 'right' ? 'number' : align === 'center' ? 'centre' : undefined
}

function inlines(tokens: Token[], depth: number): ComponentChildren {
  return tokens.map((token) => inline(token, depth + 1))
}

function inline(token: Token, depth: number): ComponentChildren {
  if (depth > DEEPEST) return token.raw
  const known = token as MarkedToken
  switch (known.type) {
    case 'text':
    case 'escape':
      return 'tokens' in known && known.tokens ? inlines(known.tokens, depth) : decodeEntities(known.text)
    case 'strong':
      return <strong>{inlines(known.tokens, depth)}</strong>
    case 'em':
      return <em>{inlines(known.tokens, depth)}</em>
    case 'del':
      return <del>{inlines(known.tokens, depth)}</del>
    case 'codespan':
      return <code>{known.text}</code>
    case 'br':
      return <br />
    case 'checkbox':
      return known.checked ? '☑ ' : '☐ '
    case 'link':
      return link(known.href, inlines(known.tokens, depth))
    case 'image':
      // Loading the image would reveal that someone looked at it.
      return link(known.href, known.text === '' ? known.href : decodeEntities(known.text))
    default:
      return token.raw
  }
}

function link(href: string, text: ComponentChildren): ComponentChildren {
  const url = safeUrl(href)
  if (url === undefined) return <span title={href}>{text}</span>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  )
}

/** Only absolute URLs: an agent's text must not link into this page. */
export function safeUrl(href: string): string | undefined {
  const url = URL.parse(href)
  return url && SAFE_SCHEMES.includes(url.protocol) ? url.href : undefined
}
