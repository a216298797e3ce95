// The pictures of the documentation: npm run screenshots

import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { AetheelClient } from '../../src/client/aetheel-client.js'
import { issueToken } from '../../src/service/auth.js'
import { until } from '../kit/waiting.js'
import { describeBrowser } from './browser.js'
import { pastRuns, storePastRuns } from './past-runs.js'
import { openStage } from './stage.js'

const IMAGES = fileURLToPath(new URL('../../docs/images', import.meta.url))
const AGENT = fileURLToPath(new URL('demo-agent.mjs', import.meta.url))
const DAYS = 30
/** Of one picture. */
const MOST_BYTES = 150_000

/** Hides the directory of the projects. */
const HIDE_PLACE = `([place, name]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(place, name)
}`

describeBrowser('pictures', (browser) => {
  it('are taken', { timeout: 240_000 }, async () => {
    const viewport = { width: 1200, height: 750 }
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
    await ask('site', 'Deploy it.')
    const question = await ask('shop', 'How do I show only what is in stock?')
    await ask('site', 'Call the same things by the same names.')
    const { id: running } = await client.conversations.create({ project_id: 'shop' })
    await client.conversations.send(running, 'The total in the cart is wrong when there is a discount.')
    await client.conversations.send(running, 'And write a test for it.')
    await logIn()
    mkdirSync(IMAGES, { recursive: true })
    const take = async (name: string, path: string, sign: string): Promise<void> => {
      await page.goto(`${url}/#/${path}`)
      await page.getByText(sign).first().waitFor()
      // For drawing, and for requests after that.
      await page.waitForTimeout(2_000)
      await page.evaluate(`(${HIDE_PLACE})(${JSON.stringify([dirname(site), '/srv'])})`)
      await page.screenshot({ path: `${IMAGES}/${name}.png` })
    }
    await take('now', 'now', 'npm test -- cart')
    await take('conversation', `conversations/${question}`, 'Only those in stock')
    await take('projects', 'projects/shop', 'Longest run')
    await take('queue', 'queue', 'Invalid API key')
    await take('figures', 'figures', 'Time to the first text')
    await client.conversations.stop(running)
    expect(readdirSync(IMAGES).filter((name) => statSync(join(IMAGES, name)).size > MOST_BYTES)).toEqual([])
  })
})
