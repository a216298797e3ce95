import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { ASKING, openStage } from './stage.js'

const PAGES = [
  'home',
  'new',
  'conversations',
  'projects',
  'agents',
  'queue',
  'usage',
  'credentials',
  'settings',
  'first-steps',
]

/** Serious accessibility problems, and where they are. */
async function findingsOf(page: Page): Promise<string[]> {
  // evaluate bypasses the page's Content-Security-Policy.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

describeBrowser('everyone', (browser) => {
  it.each(['dark', 'light'] as const)('can use all pages in the %s theme', async (colorScheme) => {
    const { page, logIn, say, release, url } = await openStage(await browser(), { colorScheme })
    await page.goto(url)
    await page.getByLabel('Token').waitFor()
    const findings: Record<string, string[]> = { login: await findingsOf(page) }
    await say(
      steps(
        { text: '# Plan\n\n`code`\n\n```ts\nconst a = 1 // one\n```' },
        { tool: 'Bash', input: { command: 'ls' } },
        { hold: 'x' },
      ),
    )
    await logIn()
    await page.getByRole('region', { name: 'Running' }).waitFor()
    for (const name of PAGES) {
      await page.goto(`${url}/#/${name}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      findings[name] = await findingsOf(page)
    }
    release('x')
    expect(findings).toEqual(Object.fromEntries(['login', ...PAGES].map((name) => [name, []])))
  })

  it.each([
    { colorScheme: 'dark', width: 1280 },
    { colorScheme: 'light', width: 360 },
  ] as const)('can talk to an agent in the $colorScheme theme, at $width pixels', async ({ colorScheme, width }) => {
    const viewport = { width, height: 740 }
    const { page, logIn, say, problems } = await openStage(await browser(), { colorScheme, viewport })
    const code = `\`\`\`ts\n// ${'long '.repeat(80)}\nconst a = 1\n\`\`\`\n\n| a | b |\n|---|---|\n| 1 | 2 |`
    const id = await say(steps({ text: code }, { tool: 'Bash', input: { command: 'x'.repeat(500) } }))
    await logIn(`#/conversations/${id}`)
    await page.getByText('Worked for').click()
    await page.getByText('Steps 1 to').waitFor()
    await page.getByLabel('Message', { exact: true }).fill('/st')
    await page.getByRole('option', { name: /^\/stop/ }).waitFor()
    const findings = await findingsOf(page)
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
    expect([findings, wide, problems]).toEqual([[], width, []])
  })

  it.each(['dark', 'light'] as const)('can choose the theme if the system is %s', async (colorScheme) => {
    const { page, logIn } = await openStage(await browser(), { colorScheme })
    await logIn()
    const grounds: string[] = []
    const look = async (choice: string): Promise<void> => {
      await page.getByRole('button', { name: `Theme: ${choice}` }).waitFor()
      grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
    }
    for (const choice of ['Auto', 'Dark', 'Light']) {
      await look(choice)
      if (choice !== 'Light') await page.getByRole('button', { name: 'Theme' }).click()
    }
    await page.reload()
    await look('Light')
    const [dark, light] = ['rgb(18, 19, 22)', 'rgb(252, 252, 253)']
    expect(grounds).toEqual([colorScheme === 'dark' ? dark : light, dark, light, light])
  })

  it('can answer an agent without a mouse', async () => {
    const { page, logIn, say, problems } = await openStage(await browser(), { settings: ASKING })
    await logIn()
    await say('Install it')
    const allow = page.getByRole('button', { name: 'Allow', exact: true })
    await allow.waitFor()
    const findings = await findingsOf(page)
    await page.keyboard.press('Tab')
    for (let count = 0; count < 30 && !(await allow.evaluate((button) => button.matches(':focus'))); count++) {
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    await allow.waitFor({ state: 'detached' })
    expect([findings, problems]).toEqual([[], []])
  })

  it('can go anywhere by keyboard', async () => {
    const { page, logIn, say, problems } = await openStage(await browser())
    await say('Where is the needle?')
    await logIn()
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('dialog', { name: 'Search' })
    await palette.getByRole('option', { name: /needle/ }).waitFor()
    const findings = await findingsOf(page)
    await page.keyboard.type('queue')
    await palette.getByRole('option', { name: /^Queue/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Queue' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('needle')
    await palette.getByRole('option', { name: /needle/ }).waitFor()
    await palette.getByRole('option', { name: /^Queue/ }).waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Transcript' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('HEARTBEAT_OK')
    await palette.getByRole('option', { name: 'Search the documentation for “HEARTBEAT_OK”' }).waitFor()
    const opened = page.context().waitForEvent('page')
    await page.keyboard.press('Enter')
    const documentation = await opened
    await documentation.getByRole('link', { name: 'Wake the agent to check a list › How the answer is read' }).click()
    await documentation.getByRole('heading', { name: 'How the answer is read' }).waitFor()
    expect([findings, problems]).toEqual([[], []])
  })

  it('can reach and read all pages on a narrow screen, scrolling only the page, and not sideways', async () => {
    const { page, logIn, url, say } = await openStage(await browser(), { viewport: { width: 360, height: 740 } })
    await say(steps({ text: `\`${'long'.repeat(100)}\`` }, { tool: 'Bash', input: { command: 'x'.repeat(500) } }))
    await logIn()
    const wide: string[] = []
    for (const name of PAGES) {
      await page.goto(`${url}/#/${name}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await expect.poll(() => page.locator('.skeleton').count()).toBe(0)
      const size = await page.evaluate<number[]>(
        '[document.documentElement.scrollWidth, document.documentElement.scrollHeight]',
      )
      if (size.join() !== '360,740') wide.push(`${name}: ${size.join()}`)
    }
    await page.getByRole('button', { name: 'Menu' }).click()
    const drawer = page.getByRole('dialog', { name: 'Menu' })
    const findings = await findingsOf(page)
    await drawer.getByRole('link', { name: 'Queue' }).click()
    await page.getByRole('heading', { name: 'Queue' }).waitFor()
    expect([wide, findings, await drawer.count()]).toEqual([[], [], 0])
  })
})
