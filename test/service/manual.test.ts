import { expect, it } from 'vitest'
import { createStage } from './app-stage.js'

it('serves every page, and links only to headings and files that it serves', async () => {
  const { app } = await createStage()
  const pages = new Map<string, string>()
  const images = new Set<string>()
  const links: { from: string; path: string; anchor: string | undefined }[] = []
  const open = ['/docs']
  for (const path of open) {
    if (pages.has(path)) continue
    const { body, statusCode, headers } = await app.inject(path)
    expect([path, statusCode, headers['content-type']]).toEqual([path, 200, 'text/html; charset=utf-8'])
    pages.set(path, body)
    const [, main = ''] = body.split('<main>')
    for (const [, image = ''] of main.matchAll(/<img src="([^"]+)"/g)) images.add(image)
    for (const [, href = ''] of main.matchAll(/<a href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(href)) continue
      const [to = '', anchor] = href.split('#')
      links.push({ from: path, path: to === '' ? path : to, anchor })
      if (to.startsWith('/docs')) open.push(to)
    }
  }
  const dead = links.filter(
    ({ path, anchor }) => anchor !== undefined && !pages.get(path)?.includes(` id="${decodeURIComponent(anchor)}"`),
  )
  const shown = await Promise.all(
    [...images].map(async (url) => {
      const { statusCode, headers } = await app.inject(url)
      return [statusCode, headers['content-type']]
    }),
  )
  expect([pages.size > 40, links.length > 300, dead]).toEqual([true, true, []])
  expect([shown.length > 3, new Set(shown.map(String))]).toEqual([true, new Set(['200,image/png'])])
})

it('finds the section that a person looks for first', async () => {
  const { app } = await createStage()
  const first = async (query: string): Promise<string | undefined> => {
    const { body } = await app.inject({ url: '/docs', query: { q: query } })
    return /<li><a href="([^"]+)"/.exec(body)?.[1]
  }
  expect([await first('discord permission'), await first('QUERY_TIMEOUT_MS'), await first('cron')]).toEqual([
    expect.stringMatching(/^\/docs\/discord#/),
    expect.stringMatching(/^\/docs\/configuration#/),
    expect.stringMatching(/^\/docs\/cron#/),
  ])
})

it('shows what was searched for as text, and where it was found', async () => {
  const { app } = await createStage()
  const search = async (q: string): Promise<string> => (await app.inject({ url: '/docs', query: { q } })).body
  const hostile = await search('"><script>alert(1)</script> (')
  expect([
    hostile.includes('<script'),
    hostile.includes('value="&quot;&gt;&lt;script&gt;'),
    hostile.includes('Nothing found'),
    (await search('HEARTBEAT_OK')).includes('<mark>HEARTBEAT_OK</mark>'),
  ]).toEqual([false, true, true, true])
})

it('serves nothing else', async () => {
  const { app } = await createStage()
  const paths = [
    'nowhere',
    '../package.json',
    '..%2Fpackage.json',
    'images/%2e%2e/README.md',
    'images',
    '%00',
    'constructor',
  ]
  const answers = await Promise.all(
    paths.map(async (path) => {
      const { statusCode, body } = await app.inject(`/docs/${path}`)
      return [path, statusCode, body.includes('"name": "aetheel"')]
    }),
  )
  expect(answers).toEqual(paths.map((path) => [path, 404, false]))
})
