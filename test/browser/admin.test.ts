import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { AetheelClient } from '../../src/client/aetheel-client.js'
import { issueToken } from '../../src/service/auth.js'
import { steps } from '../kit/steps-agent.js'
import { until } from '../kit/waiting.js'
import { describeBrowser } from './browser.js'
import { pastRuns, storePastRuns } from './past-runs.js'
import { openStage } from './stage.js'

const AXE = createRequire(import.meta.url).resolve('axe-core')

const PAGES = [
  'first-steps',
  'projects',
  'projects/+',
  'projects/shop',
  'agents',
  'queue',
  'credentials',
  'usage?group=agent',
  'settings',
]

describeBrowser('running a gateway', (browser) => {
  it('creates a project from a template, and explains what is wrong with its id', async () => {
    const { page, client, logIn, problems } = await openStage(await browser())
    await logIn('#/projects')
    await page.getByRole('link', { name: 'New project' }).click()
    const form = page.getByRole('form', { name: 'New project' })
    await form.getByLabel('Name', { exact: true }).fill('Web shop')
    await form.getByLabel('ID', { exact: true }).fill('../shop')
    await form.getByRole('combobox', { name: 'Template' }).selectOption('node-typescript')
    await form.getByText('Agent and limits').click()
    await form.getByLabel('Time limit (seconds)').fill('90')
    await form.getByLabel('Model').fill('-x')
    await form.getByRole('button', { name: 'Create project' }).click()
    await form.getByRole('alert').getByText('Not saved.').waitFor()
    const besideModel = await form
      .locator('.field', { has: page.getByLabel('Model') })
      .locator('.problem')
      .innerText()
    await form.getByLabel('Model').fill('opus')
    await form.getByRole('button', { name: 'Create project' }).click()
    await form.getByRole('alert').getByText('is not a project id').waitFor()
    const typed = await form.getByLabel('Name', { exact: true }).inputValue()
    await form.getByLabel('ID', { exact: true }).fill('')
    await form.getByRole('button', { name: 'Create project' }).click()
    await page.getByRole('heading', { name: 'Web shop' }).waitFor()
    expect([besideModel, typed, await client.projects.get('web-shop'), problems.filter(isUnexpected)]).toEqual([
      expect.stringContaining('invalid model'),
      'Web shop',
      expect.objectContaining({ name: 'Web shop', model: 'opus', timeout: 90, source: 'api' }),
      [],
    ])
  })

  it('changes a project, and removes it after a confirmation', async () => {
    const { page, client, logIn, problems } = await openStage(await browser())
    await client.projects.create({ name: 'Shop', template: 'empty' })
    await logIn('#/projects/shop')
    const form = page.getByRole('form', { name: 'Settings' })
    await form.getByLabel('Turn limit').fill('12')
    await form.getByLabel('Allowed tools').fill('Read\nBash(git log, git diff)\n')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('region', { name: 'Project details' }).getByText('12 turns').waitFor()
    const { max_turns: turns, allowed_tools: tools } = await client.projects.get('shop')
    const removal = page.getByRole('region', { name: 'Remove project' })
    await removal.getByRole('button', { name: 'Remove' }).click()
    await removal.getByRole('button', { name: 'Yes' }).click()
    await page.getByRole('link', { name: 'New project' }).waitFor()
    const left = (await client.projects.list()).map(({ id }) => id)
    expect([turns, tools, left, problems]).toEqual([12, ['Read', 'Bash(git log, git diff)'], ['site'], []])
  })

  it('takes credentials and never shows them', async () => {
    const { page, client, logIn, problems } = await openStage(await browser())
    await logIn('#/credentials')
    const form = page.getByRole('form', { name: 'Add a credential' })
    await form.getByLabel('Name', { exact: true }).fill('SHOP_API_KEY')
    const value = form.getByLabel('Value')
    const control = [await value.getAttribute('type'), await value.getAttribute('autocomplete')]
    await value.fill('first-secret-value')
    await form.getByRole('button', { name: 'Add' }).click()
    const table = page.getByRole('table', { name: 'Credentials' })
    await table.getByText('SHOP_API_KEY').waitFor()
    await table.getByRole('button', { name: 'Replace SHOP_API_KEY' }).click()
    const replacing = page.getByRole('form', { name: 'Replace SHOP_API_KEY' })
    await replacing.getByLabel('New value').fill('second-secret-value')
    await replacing.getByRole('button', { name: 'Replace' }).click()
    await form.waitFor()
    const held = await page.evaluate(
      '[document.documentElement.outerHTML, ...[...document.querySelectorAll("input")].map(({ value }) => value)].join()',
    )
    await table.getByRole('button', { name: 'Remove' }).click()
    await table.getByRole('button', { name: 'Yes' }).click()
    await page.getByText('No credentials yet').waitFor()
    expect([control, String(held).includes('secret-value'), await client.credentials.list(), problems]).toEqual([
      ['password', 'off'],
      false,
      [],
      [],
    ])
  })

  it('creates tokens, shows a value once, revokes them, and shows who changed what', async () => {
    const { page, client, logIn, problems } = await openStage(await browser())
    await logIn('#/settings')
    const form = page.getByRole('form', { name: 'Create a token' })
    await form.getByLabel('Name').fill('bob')
    await form.getByLabel('Scope').selectOption('read')
    await form.getByRole('button', { name: 'Create token' }).click()
    const value = await page.locator('.secret pre').innerText()
    const me = await new AetheelClient({ baseUrl: new URL(page.url()).origin, token: value }).me()
    await page.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('region', { name: 'Tokens' }).first().getByRole('row', { name: /bob/ })
    await row.getByRole('button', { name: 'Revoke' }).click()
    const isShown = (await page.content()).includes(value)
    await row.getByRole('button', { name: 'Yes' }).click()
    await row.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('region', { name: 'Audit log' }).getByText('token.revoke').first().waitFor()
    const left = (await client.tokens.list()).map(({ name }) => name)
    expect([me.name, isShown, left.includes('bob'), problems]).toEqual(['bob', false, false, []])
  })

  it('says what would work if a folder is outside the project roots', async () => {
    const { page, logIn } = await openStage(await browser())
    await logIn('#/projects/+')
    const form = page.getByRole('form', { name: 'New project' })
    await form.getByLabel('Existing folder').check()
    await form.getByLabel('Folder', { exact: true }).fill('/usr/share')
    await form.getByRole('button', { name: 'Create project' }).click()
    await form.getByText('Agents can only work in folders under').waitFor()
    expect([
      await form.locator('pre').innerText(),
      await form.getByLabel('Folder', { exact: true }).inputValue(),
    ]).toEqual([expect.stringMatching(/^PROJECT_ROOTS=".+,\/usr"$/), '/usr/share'])
  })

  it('retries failed messages, and drops them', async () => {
    const { page, client, say, release, logIn, problems } = await openStage(await browser())
    await say(steps({ fail: 'Invalid API key', unless: 'key' }, { text: 'Now it works.' }))
    await until(async () => (await client.queue.list()).failed.length === 1, 'a dead letter')
    await say(steps({ fail: 'Invalid API key, too' }))
    await until(async () => (await client.queue.list()).failed.length === 2, 'two dead letters')
    await logIn('#/queue')
    const letters = page.getByRole('region', { name: 'Failed' }).first().getByRole('row')
    const first = letters.filter({ hasText: 'Now it works.' })
    const second = letters.filter({ hasText: 'too' })
    await second.getByRole('button', { name: 'Drop' }).click()
    await second.getByRole('button', { name: 'Yes' }).click()
    await second.waitFor({ state: 'detached' })
    release('key')
    await first.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('No failed messages.').waitFor()
    const { total } = await until(async () => {
      const figures = await client.figures()
      return figures.total.answered === 1 && figures
    }, 'the answer to the dead letter')
    expect([(await client.queue.list()).failed, total.errors, problems]).toEqual([[], { auth: 2 }, []])
  })

  it('drops nothing after a "No", however often the page is redrawn', async () => {
    const { page, client, say, logIn, problems } = await openStage(await browser())
    await say(steps({ fail: 'Invalid API key' }))
    await until(async () => (await client.queue.list()).failed.length === 1, 'a dead letter')
    await logIn('#/queue')
    const letters = page.getByRole('region', { name: 'Failed' }).first()
    await letters.getByRole('button', { name: 'Drop' }).click()
    await page.keyboard.press('Tab')
    const isOnNo = async (): Promise<boolean> => (await page.evaluate('document.activeElement?.textContent')) === 'No'
    const before = await isOnNo()
    await say(steps({ hold: 'for good' }))
    await page.getByRole('main').getByText('for good').waitFor()
    const after = await isOnNo()
    await page.keyboard.press('Enter')
    await letters.getByRole('button', { name: 'Drop' }).waitFor()
    expect([before, after, (await client.queue.list()).failed.length, problems]).toEqual([true, true, 1, []])
  })

  it('draws charts, with the table behind each, and empty days as zero', async () => {
    const { page, store, client, logIn, problems } = await openStage(await browser())
    const runs = pastRuns(20, Date.now())
    await storePastRuns(store, runs)
    await logIn('#/usage?days=30')
    const chart = page.getByRole('region', { name: 'Runs' }).first()
    await chart.locator('canvas').waitFor()
    await expect.poll(() => colouredPixels(page)).toEqual(Array(6).fill(true))
    await chart.getByText('Table').click()
    const cells = await chart.getByRole('row').evaluateAll((rows) => rows.map((row) => row.textContent ?? ''))
    const perDay = (await client.figures({ group: 'day' })).figures
    await page.getByRole('combobox', { name: /^Group by/ }).selectOption('agent')
    const errors = page.getByRole('region', { name: 'Errors by reason' }).first()
    await errors.getByText('Table').click()
    await errors.getByRole('cell', { name: 'Claude Code' }).waitFor()
    const failed = runs.filter(({ failure }) => failure !== null).length
    expect({
      rows: cells.length,
      total: cells.at(-1)?.startsWith(`Total${runs.length}${runs.length - failed}${failed}`),
      empty: cells.filter((row) => row.endsWith('00000')).length,
      problems,
    }).toEqual({ rows: 32, total: true, empty: 30 - perDay.length, problems: [] })
  })

  it('is read-only with a read-only token', async () => {
    const { page, url, store, client, say, problems } = await openStage(await browser())
    await client.projects.create({ name: 'Shop', template: 'empty' })
    await say(steps({ fail: 'Invalid API key' }))
    await until(async () => (await client.queue.list()).failed.length === 1, 'a dead letter')
    const about = { name: 'reader', scope: 'read' } as const
    const { token } = await issueToken(store.tokens, about, { now: Date.now, newId: randomUUID })
    await page.goto(`${url}/#/projects`)
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Log in' }).click()
    const main = page.getByRole('main')
    const seen: Record<string, string[]> = {}
    for (const [path, sign] of [
      ['projects', 'Shop'],
      ['projects/shop', 'No conversations yet.'],
      ['agents', 'Claude Code'],
      ['queue', 'auth: Invalid API key'],
      ['credentials', 'Your token does not allow this page'],
    ] as const) {
      await page.goto(`${url}/#/${path}`)
      await main.getByText(sign).first().waitFor()
      seen[path] = [
        ...(await main.getByRole('button').allInnerTexts()),
        ...(await main.getByRole('textbox').allInnerTexts()),
        ...(await main.getByRole('link', { name: 'New project' }).allInnerTexts()),
      ]
    }
    const look = ['Refresh']
    expect([seen, problems]).toEqual([
      { projects: [], 'projects/shop': [], agents: look, queue: look, credentials: [] },
      [],
    ])
  })

  it('shows how each agent is logged in, and the command that fixes what is missing', async () => {
    const { page, client, logIn, problems } = await openStage(await browser())
    await client.credentials.set('ANTHROPIC_API_KEY', { value: 'sk-0123456789' })
    await logIn('#/agents')
    const card = (name: string) => page.getByRole('article', { name })
    await card('Claude Code').getByText('by the stored credential ANTHROPIC_API_KEY').waitFor()
    const commands = (name: string): Promise<string[]> => card(name).locator('pre').allInnerTexts()
    const states = (name: string): Promise<string> => card(name).locator('.state').innerText()
    expect([
      [await states('Claude Code'), await commands('Claude Code')],
      [await states('Gemini CLI'), await commands('Gemini CLI')],
      problems,
    ]).toEqual([['Ready', []], ['Not installed', ['npm install -g @google/gemini-cli']], []])
  })

  it('says what comes next, and checks off what is done', async () => {
    const { page, say, client, logIn, problems } = await openStage(await browser())
    await logIn('#/first-steps')
    const states = async (): Promise<string[]> => page.locator('.steps > li h2').allInnerTexts()
    await page.getByText('aetheel chat').waitFor()
    const before = await states()
    await say('Hello')
    await until(async () => (await client.figures()).total.answered > 0, 'an answer')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByText('An agent has answered.').waitFor()
    expect([before, await states(), problems]).toEqual([
      ['Install an agent Done', 'Create a project Done', 'Ask something Next', 'Connect a chat app'],
      ['Install an agent Done', 'Create a project Done', 'Ask something Done', 'Connect a chat app Next'],
      [],
    ])
  })

  it.each(['dark', 'light'] as const)(
    'is accessible to everyone, %s and on a small screen',
    { timeout: 240_000 },
    async (colorScheme) => {
      const stage = await openStage(await browser(), {
        colorScheme,
        viewport: { width: 360, height: 780 },
        bypassCSP: true,
      })
      const { client, store, say, logIn, problems } = stage
      await client.projects.create({ name: 'Shop', template: 'node-typescript', allowed_tools: ['Bash', 'Read'] })
      await client.credentials.set('SHOP_API_KEY', { value: 'a-secret-value' })
      await storePastRuns(store, pastRuns(10, Date.now()))
      await say(steps({ fail: 'Invalid API key' }))
      await until(async () => (await client.queue.list()).failed.length === 1, 'a dead letter')
      await logIn()
      const found: Record<string, unknown> = {}
      for (const path of PAGES) found[path] = await findings(stage, path)
      expect([found, problems]).toEqual([Object.fromEntries(PAGES.map((path) => [path, { wide: 0, axe: [] }])), []])
    },
  )
})

/** A browser reports each failed request; these were intended. */
function isUnexpected(problem: string): boolean {
  return !problem.includes('status of 400')
}

/** For each chart, whether it draws more than text and grid lines. */
function colouredPixels(page: Page): Promise<boolean[]> {
  return page.locator('.chart canvas').evaluateAll((canvases) =>
    canvases.map((element) => {
      const canvas = element as unknown as { width: number; height: number; getContext(kind: '2d'): PixelSource }
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      let coloured = 0
      for (let at = 0; at < data.length; at += 4) {
        const [red = 0, green = 0, blue = 0] = data.slice(at, at + 3)
        if (Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1
      }
      return coloured > 200
    }),
  )
}

interface PixelSource {
  getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray }
}

/** How far a page reaches beyond the screen, and what axe finds serious. */
async function findings({ page, url }: { page: Page; url: string }, path: string): Promise<object> {
  await page.goto(`${url}/#/${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('main .card').first().waitFor()
  await page.addScriptTag({ path: AXE })
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults
  const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return { wide, axe: serious.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]) }
}
