// Serves the documentation, so that it is as old as the gateway it describes.

import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { App } from '../dependencies.js'
import { escapeHtml, sendHtmlPage } from '../html-page.js'
import type { RenderedPage } from './rendered-page.js'
import { type Hit, search, wordsOf } from './search.js'

/** The same path in a checkout and in the package. */
const DIRECTORY = fileURLToPath(new URL('../../../docs', import.meta.url))

const searchQuery = z.object({ q: z.string().max(200).optional() })
const pageParams = z.object({ '*': z.string() })

interface Manual {
  pages: Map<string, RenderedPage>
  /** Names below the directory; nothing else is read. */
  images: Set<string>
}

export function registerManualRoutes(app: App): void {
  let loading: Promise<Manual> | undefined
  const manual = (): Promise<Manual> => (loading ??= loadManual())

  app.route({
    method: 'GET',
    url: '/docs',
    config: { scope: 'public' },
    schema: { hide: true, querystring: searchQuery },
    handler: async (request, reply) => {
      const { pages } = await manual()
      const query = request.query.q?.trim() ?? ''
      const front = pages.get('')
      if (query === '' && front) return sendHtmlPage(reply, { title: front.title, body: front.html })
      const words = wordsOf(query)
      const body = resultsHtml(query, search([...pages.values()], words), words)
      return sendHtmlPage(reply, { title: `Search: ${query}`, query, body })
    },
  })
  app.route({
    method: 'GET',
    url: '/docs/*',
    config: { scope: 'public' },
    schema: { hide: true, params: pageParams },
    handler: async (request, reply) => {
      const name = request.params['*'].replace(/\/$/, '')
      const { pages, images } = await manual()
      if (images.has(name)) return reply.type('image/png').send(await readFile(join(DIRECTORY, name)))
      // Links of the repository end with .md.
      const page = pages.get(name.replace(/\.md$/, ''))
      if (page) return sendHtmlPage(reply, { title: page.title, body: page.html })
      const body = '<h1>Page not found</h1>\n<p>Search for it above, or see <a href="/docs">all pages</a>.</p>'
      return sendHtmlPage(reply.code(404), { title: 'Page not found', body })
    },
  })
}

async function loadManual(): Promise<Manual> {
  const { pathOf, renderPage } = await import('./rendered-page.js')
  const entries = await readdir(DIRECTORY, { recursive: true })
  const files = new Set(entries.filter((name) => /\.(?:md|png)$/.test(name)))
  const pages = new Map<string, RenderedPage>()
  for (const file of files) {
    if (extname(file) === '.md') {
      pages.set(pathOf(file), renderPage(file, await readFile(join(DIRECTORY, file), 'utf8'), files))
    }
  }
  return { pages, images: new Set([...files].filter((file) => extname(file) === '.png')) }
}

function resultsHtml(query: string, hits: Hit[], words: string[]): string {
  const title = `<h1>Search: ${escapeHtml(query)}</h1>`
  if (hits.length === 0) return `${title}\n<p>Nothing found. Try fewer or other words.</p>`
  const items = hits.map(({ page, section, excerpt }) => {
    const place = section.heading === page.title ? '' : ` › ${escapeHtml(section.heading)}`
    const href = `/docs${page.path && `/${page.path}`}#${encodeURIComponent(section.anchor)}`
    return `<li><a href="${href}">${escapeHtml(page.title)}${place}</a><p>${markedHtml(excerpt, words)}</p></li>`
  })
  return `${title}\n<ul class="results">\n${items.join('\n')}\n</ul>`
}

function markedHtml(text: string, words: string[]): string {
  const anyWord = new RegExp(`(${words.map((word) => word.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('|')})`, 'i')
  return text
    .split(anyWord)
    .map((part, index) => (index % 2 === 1 ? `<mark>${escapeHtml(part)}</mark>` : escapeHtml(part)))
    .join('')
}
