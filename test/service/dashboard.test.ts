import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, inject, it } from 'vitest'
import { createStage } from './app-stage.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

/** The dashboard's budget: everything that a browser may load, compressed. */
const MOST_BYTES = 150_000

function makeBuild(): string {
  const directory = temporaryDirectory()
  mkdirSync(join(directory, 'assets'))
  const put = (name: string, content: string): void => {
    writeFileSync(join(directory, name), content)
    writeFileSync(join(directory, `${name}.gz`), gzipSync(content))
  }
  put('index.html', '<!doctype html>')
  put('assets/index-a1_B.js', 'run()')
  put('secret.js', 'not for others')
  return directory
}

async function openDashboard(dashboardDirectory = makeBuild()) {
  const { app } = await createStage({ dashboardDirectory })
  return (url: string, headers: Record<string, string> = {}) =>
    app.inject({ method: 'GET', url, headers: { host: '127.0.0.1', ...headers } })
}

it('serves the page to everybody, always fresh, with a policy that allows only its own files', async () => {
  const get = await openDashboard()
  const { statusCode, headers, body } = await get('/')
  expect([statusCode, body, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    '<!doctype html>',
    'text/html; charset=utf-8',
    'no-cache',
  ])
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; " +
      "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  )
})

it('serves its files as immutable, compressed if accepted', async () => {
  const get = await openDashboard()
  const plain = await get('/assets/index-a1_B.js')
  const compressed = await get('/assets/index-a1_B.js', { 'accept-encoding': 'br, gzip' })
  expect([plain.body, plain.headers['cache-control'], plain.headers['content-encoding']]).toEqual([
    'run()',
    'public, max-age=31536000, immutable',
    undefined,
  ])
  expect([
    gunzipSync(compressed.rawPayload).toString(),
    compressed.headers['content-encoding'],
    compressed.headers['content-type'],
    compressed.headers['vary'],
  ]).toEqual(['run()', 'gzip', 'text/javascript; charset=utf-8', 'accept-encoding'])
})

it('says how to build it if it is missing', async () => {
  const get = await openDashboard(join(tmpdir(), 'aetheel-no-such-directory'))
  const page = await get('/')
  const asset = await get('/assets/index-a1_B.js')
  expect([page.statusCode, page.body, asset.statusCode, asset.json()]).toEqual([
    404,
    'The dashboard is not built yet. Run "npm run build", then reload this page.\n',
    404,
    { error: { code: 'not_found', message: expect.stringContaining('Reload the page') } },
  ])
})

it('serves nothing from elsewhere, whatever it is asked for', async () => {
  const get = await openDashboard()
  const names = fc.oneof(
    fc.constantFrom('../secret.js', '..%2fsecret.js', '%2e%2e/secret.js', '..\\secret.js', '....//secret.js', '.'),
    fc.string({ unit: 'binary' }).map(encodeURIComponent),
    fc
      .array(fc.constantFrom('..', '%2F', '/', '%5C', '.', 'secret.js', 'assets', '%00'))
      .map((parts) => parts.join('')),
  )
  await fc.assert(
    fc.asyncProperty(names, async (name) => {
      const { body } = await get(`/assets/${name}`)
      expect(body).not.toContain('not for others')
    }),
    { numRuns: 30 },
  )
})

it('weighs little, and holds no script or style within the page', () => {
  const directory = join(inject('buildDirectory'), 'dist/web')
  const files = [
    join(directory, 'index.html'),
    ...readdirSync(join(directory, 'assets')).map((name) => join(directory, 'assets', name)),
  ]
  const bytes = files.filter((file) => !file.endsWith('.gz')).map((file) => statSync(`${file}.gz`).size)
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_BYTES)
  const page = readFileSync(join(directory, 'index.html'), 'utf8')
  expect(page.match(/<script(?![^>]* src=)|<style|\son\w+=|style=/g)).toBeNull()
})
