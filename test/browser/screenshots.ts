// Takes the documentation's pictures, and every page in both themes at two widths: npm run screenshots

import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { AetheelClient } from '../../src/client/aetheel-client.js'
import { issueToken } from '../../src/service/auth.js'
import { until } from '../kit/waiting.js'
import { describeBrowser } from './browser.js'
import { pastRuns, storePastRuns } from './past-runs.js'
import { ASKING, newPage, openStage } from './stage.js'

const IMAGES = fileURLToPath(new URL('../../docs/images', import.meta.url))
/** Pictures of all pages, for review. */
const GALLERY = fileURLToPath(new URL('../../dist/screenshots', import.meta.url))
const AGENT = fileURLToPath(new URL('demo-agent.mjs', import.meta.url))
const DAYS = 30
/** Per picture. */
const MOST_BYTES = 150_000

const LISTED = [
  'home',
  'new',
  'conversations',
  'projects',
  'projects/+',
  'agents',
  'queue',
  'usage',
  'credentials',
  'settings',
  'first-steps',
]

/** Replaces the projects' temporary directory in all text. */
const HIDE_PLACE = `([place, name]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(place, name)
}`

describeBrowser('pictures', (browser) => {
  it('are taken', { timeout: 480_000 }, async () => {
    const viewport = { width: 1360, height: 800 }
    const stage = await openStage(await browser(), { viewport, settings: { backendCliPath: AGENT } })
    const { page, url, store, site, logIn } = stage
    const about = { name: 'ada', scope: 'admin' } as const
    const { token } = await issueToken(store.tokens, about, { now: Date.now, newId: randomUUID })
    const client = new AetheelClient({ baseUrl: url, token })
    await client.projects.create({
      name: 'Shop',
      template: 'node-typescript',
      model: 'opus',
      allowed_tools: ['Bash', 'Edit', 'Read'],
      timeout: 900,
      max_turns: 40,
    })
    await client.projects.create({ name: 'Release notes', template: 'empty', agent_permissions: 'ask' })
    await storePastRuns(store, pastRuns(DAYS, Date.now()))
    const ask = async (project: string, ...texts: string[]): Promise<string> => {
      const { id } = await client.conversations.create({ project_id: project })
      for (const text of texts) {
        await client.conversations.send(id, text)
        await until(async () => (await client.conversations.get(id)).state === 'idle', `an answer to ${text}`)
      }
      return id
    }
    const failed = await ask('site', 'Deploy it.')
    const question = await ask('shop', 'How do I show only what is in stock?')
    await ask('site', 'Call the same things by the same names.')
    const edited = await ask('shop', 'Fix the total of the cart, and say why it was wrong.')
    await client.conversations.update(edited, { is_pinned: true })
    await client.credentials.set('NPM_TOKEN', { value: 'not-a-real-value' })
    const { id: running } = await client.conversations.create({ project_id: 'shop' })
    await client.conversations.send(running, 'The total in the cart is wrong when there is a discount.')
    await client.conversations.send(running, 'And write a test for it.')
    await logIn()
    mkdirSync(IMAGES, { recursive: true })
    const hidePlace = (shown: Page): Promise<unknown> =>
      shown.evaluate(`(${HIDE_PLACE})(${JSON.stringify([dirname(site), '/srv'])})`)
    const take = async (name: string, path: string, sign: string): Promise<void> => {
      await page.goto(`${url}/#/${path}`)
      await page.getByRole('main').getByText(sign).first().waitFor()
      // Leaves time for drawing, and for later requests.
      await page.waitForTimeout(2_000)
      await hidePlace(page)
      await page.screenshot({ path: `${IMAGES}/${name}.png` })
    }
    await take('home', 'home', 'npm test -- cart')
    await take('conversation', `conversations/${edited}`, 'the order was wrong')
    await take('projects', 'projects/shop', 'Time limit')
    await take('queue', 'queue', 'Invalid API key')
    await take('usage', 'usage', 'Time to first text')
    const asking = await openStage(await browser(), { settings: ASKING })
    const waiting = await asking.say('Install what the project needs.')
    mkdirSync(GALLERY, { recursive: true })
    const paths: Record<string, string> = {
      ...Object.fromEntries(LISTED.map((path) => [path.replaceAll('/', '-').replace('+', 'new'), path])),
      conversation: `conversations/${question}`,
      edited: `conversations/${edited}`,
      working: `conversations/${running}`,
      failed: `conversations/${failed}`,
      project: 'projects/shop',
    }
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [1280, 390]) {
        const look = await newPage(await browser(), { colorScheme, viewport: { width, height: 844 } })
        await look.page.goto(url)
        await look.page.getByLabel('Token').waitFor()
        await look.page.screenshot({ path: join(GALLERY, `login-${colorScheme}-${width}.png`) })
        await look.page.getByLabel('Token').fill(stage.token)
        await look.page.getByRole('button', { name: 'Log in' }).click()
        await look.page.getByRole('main').waitFor()
        for (const [name, path] of Object.entries(paths)) {
          await look.page.goto(`${url}/#/${path}`)
          await look.page.waitForTimeout(700)
          await hidePlace(look.page)
          await look.page.screenshot({ path: join(GALLERY, `${name}-${colorScheme}-${width}.png`) })
        }
        // Open questions, in a gateway whose agent asks.
        await look.page.goto(`${asking.url}/#/home`)
        await look.page.getByLabel('Token').fill(asking.token)
        await look.page.getByRole('button', { name: 'Log in' }).click()
        for (const [name, path] of [
          ['asking-home', 'home'],
          ['asking', `conversations/${waiting}`],
        ] as const) {
          await look.page.goto(`${asking.url}/#/${path}`)
          await look.page.waitForTimeout(700)
          await look.page.screenshot({ path: join(GALLERY, `${name}-${colorScheme}-${width}.png`) })
        }
        if (width < 500) {
          await look.page.getByRole('button', { name: 'Menu' }).click()
          await look.page.waitForTimeout(300)
          await look.page.screenshot({ path: join(GALLERY, `drawer-${colorScheme}-${width}.png`) })
        } else {
          await look.page.keyboard.press('Control+k')
          await look.page.waitForTimeout(500)
          await look.page.screenshot({ path: join(GALLERY, `palette-${colorScheme}-${width}.png`) })
        }
        expect(look.problems).toEqual([])
      }
    }
    await client.conversations.stop(running)
    expect(readdirSync(IMAGES).filter((name) => statSync(join(IMAGES, name)).size > MOST_BYTES)).toEqual([])
  })
})
