// A real gateway with a fake agent, and a page of its dashboard in a real browser.

import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import type { Scope } from '../../src/store/tokens.js'
import { freePort } from '../kit/loopback.js'
import { serve } from '../service/routes/served.js'
import { release } from '../kit/steps-agent.js'
import { Place, tokenFor } from '../service/routes/stage.js'

/** An agent that asks before it uses its tool. */
export const ASKING = {
  backendCliPath: fileURLToPath(new URL('asking-agent.mjs', import.meta.url)),
  agentMode: 'live',
  agentPermissions: 'ask',
}

/** Under load, a page may be slow. */
const LONGEST_MS = 60_000

/** Console messages of requests that are meant to fail: before login, and while the gateway is down. */
const EXPECTED =
  /status of (401|503)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/

interface PageOptions {
  viewport?: { width: number; height: number }
  colorScheme?: 'dark' | 'light'
  /** Allows the test's own scripts, such as axe. */
  bypassCSP?: boolean
}

interface StageOptions extends PageOptions {
  settings?: object
  /** The scope of the page's token. */
  scope?: Scope
}

/** A fresh page, and the problems in its console. */
export async function newPage(browser: Browser, options: PageOptions = {}) {
  const { viewport = { width: 1280, height: 900 }, colorScheme = 'dark', bypassCSP = false } = options
  const context = await browser.newContext({ viewport, colorScheme, bypassCSP })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(LONGEST_MS)
  return { page, problems: problemsOf(page) }
}

/** A gateway that keeps its port when restarted, and a page that is not logged in. */
export async function openStage(browser: Browser, options: StageOptions = {}) {
  const { settings = {}, scope = 'admin', ...look } = options
  const place = new Place({ httpPort: await freePort(), ...settings })
  let gateway = await serve(place)
  const { url } = gateway
  const token = await tokenFor(gateway, scope)
  const { page, problems } = await newPage(browser, look)
  return {
    page,
    problems,
    url,
    /** As `aetheel dashboard` prints it. */
    loginLink: (): string => gateway.loginLink().url,
    token,
    client: gateway.client,
    store: gateway.gateway.store,
    site: place.site,
    release: (name: string) => release(place.site, name),
    /** Through the form, as a person does. */
    logIn: async (path = '') => {
      await page.goto(`${url}/${path}`)
      await page.getByLabel('Token').fill(token)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByLabel('Token').waitFor({ state: 'detached' })
    },
    stopGateway: () => gateway.stop(),
    startGateway: async () => {
      gateway = await serve(place)
    },
    /** Starts a conversation in the project `site` with this message. */
    say: async (text: string): Promise<string> => {
      const { id } = await gateway.client.conversations.create({ project_id: 'site' })
      await gateway.client.conversations.send(id, text)
      return id
    },
  }
}

/** Errors in the console, and uncaught ones. */
function problemsOf(page: Page): string[] {
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text())) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(String(error)))
  return problems
}
