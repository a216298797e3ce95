import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, type TestContext } from 'vitest'
import { openBrowser } from '../../src/processes/open-browser.js'

const URL = 'http://127.0.0.1:1/#/login?code=a b&$(x)'

it.for<[NodeJS.Platform, string, NodeJS.ProcessEnv]>([
  ['linux', 'xdg-open', { DISPLAY: ':0' }],
  ['linux', 'xdg-open', { WAYLAND_DISPLAY: 'wayland-0' }],
  ['darwin', 'open', {}],
])('opens an address on %s with %s and %j', async ([platform, name, screen], test) => {
  const directory = withProgram(test, name)
  expect(openBrowser(URL, { ...screen, PATH: directory }, platform)).toBe(true)
  await expect.poll(() => existsSync(join(directory, 'opened'))).toBe(true)
  expect(readFileSync(join(directory, 'opened'), 'utf8')).toBe(URL)
})

it.for<[string, NodeJS.ProcessEnv, string]>([
  ['there is no screen', {}, 'xdg-open'],
  ['there is nothing to open it with', { DISPLAY: ':0' }, 'other'],
])('opens nothing where %s', ([, screen, name], test) => {
  expect(openBrowser(URL, { ...screen, PATH: withProgram(test, name) }, 'linux')).toBe(false)
})

/** A directory with a program that notes what it is given. */
function withProgram({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-browser-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const file = join(directory, name)
  const [draft, opened] = ['new', 'opened'].map((part) => join(directory, part))
  writeFileSync(file, `#!/bin/sh\nprintf %s "$1" > '${draft}' && /bin/mv '${draft}' '${opened}'\n`)
  chmodSync(file, 0o755)
  return directory
}
