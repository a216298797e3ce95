// What the documentation and the API reference share: plain HTML pages without scripts.

import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'

interface HtmlPage {
  title: string
  /** What the search field shows. */
  query?: string
  /** HTML. */
  body: string
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d9d9de, #3a3a40); --quiet: light-dark(#62626b, #a3a3ad) }
:root { --soft: light-dark(#f5f5f7, #202024); --accent: light-dark(#2f5bd0, #8fb0ff) }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 0 1rem 4rem }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: center; padding: 1rem 0; border-bottom: 1px solid var(--line) }
header form { margin-left: auto }
input { font: inherit; width: 16rem; max-width: 100%; box-sizing: border-box; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--soft); color: inherit }
a { color: var(--accent); text-underline-offset: .15em }
h1, h2, h3 { line-height: 1.25; margin: 2em 0 .6em }
h1 { margin-top: 1.2em }
code, pre { font: 14px/1.5 ui-monospace, monospace }
code { background: var(--soft); border-radius: 4px; padding: .1em .3em; overflow-wrap: anywhere }
pre { overflow-x: auto; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 6px; background: var(--soft) }
pre code { padding: 0; overflow-wrap: normal }
table { display: block; overflow-x: auto; border-collapse: collapse }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
td code { overflow-wrap: normal }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px }
summary { cursor: pointer; padding: .25rem 0 }
summary b { display: inline-block; width: 4.5rem }
details { border-top: 1px solid var(--line) }
small { color: var(--quiet) }
.results { list-style: none; padding: 0 }
.results p { margin: .1rem 0 1.2rem }
`

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

export function sendHtmlPage(reply: FastifyReply, { title, query = '', body }: HtmlPage): FastifyReply {
  return reply.header('content-security-policy', POLICY).type('text/html; charset=utf-8').send(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)} · Aetheel</title><style>${STYLE}</style></head>
<body>
<header>
<a href="/docs">Documentation</a> <a href="/docs/api">HTTP API</a> <a href="/">Dashboard</a>
<form action="/docs" role="search"><input type="search" name="q" value="${escapeHtml(query)}" placeholder="Search" aria-label="Search the documentation"></form>
</header>
<main>
${body}
</main>
</body>
</html>
`)
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
