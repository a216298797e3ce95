import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { ASKING, openStage } from './stage.js'

const PAGES = ['now', 'conversations', 'projects', 'agents', 'queue', 'credentials', 'figures', 'first-steps']

/** Accessibility problems, and where they are. */
async function findingsOf(page: Page): Promise<string[]> {
  // Run by the browser's console, to which the page's policy does not apply.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

describeBrowser('everybody', (browser) => {
  it.each(['dark', 'light'] as const)('can use all pages, in the %s', async (colorScheme) => {
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
    await page.getByText('Plan', { exact: true }).waitFor()
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
  ] as const)('can talk to an agent, in the $colorScheme, on $width pixels', async ({ colorScheme, width }) => {
    const viewport = { width, height: 740 }
    const { page, logIn, say, problems } = await openStage(await browser(), { colorScheme, viewport })
    const code = `\`\`\`ts\n// ${'long '.repeat(80)}\nconst a = 1\n\`\`\`\n\n| a | b |\n|---|---|\n| 1 | 2 |`
    const id = await say(steps({ text: code }, { tool: 'Bash', input: { command: 'x'.repeat(500) } }))
    await logIn(`#/conversations/${id}`)
    await page.getByText('What the agent did').click()
    await page.getByText('Agent and session').click()
    await page.getByText('Steps 1 to').waitFor()
    await page.getByLabel('Message', { exact: true }).fill('/stop')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    const findings = await findingsOf(page)
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
    expect([findings, wide, problems]).toEqual([[], width, []])
  })

  it.each(['dark', 'light'] as const)('can choose the colours if the system is %s', async (colorScheme) => {
    const { page, logIn } = await openStage(await browser(), { colorScheme })
    await logIn()
    const grounds: string[] = []
    const look = async (choice: string): Promise<void> => {
      await page.getByRole('button', { name: `${choice} colours` }).waitFor()
      grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
    }
    for (const choice of ['Auto', 'Dark', 'Light']) {
      await look(choice)
      if (choice !== 'Light') await page.getByRole('button', { name: 'colours' }).click()
    }
    await page.reload()
    await look('Light')
    const [dark, light] = ['rgb(16, 17, 20)', 'rgb(246, 246, 248)']
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
    await page.getByText('It is installed.').waitFor()
    expect([findings, problems]).toEqual([[], []])
  })

  it('can read them on a narrow screen, without scrolling sideways', async () => {
    const { page, logIn, url, say } = await openStage(await browser(), { viewport: { width: 360, height: 740 } })
    await say(steps({ text: `\`${'long'.repeat(100)}\`` }, { tool: 'Bash', input: { command: 'x'.repeat(500) } }))
    await logIn()
    const wide: string[] = []
    for (const name of PAGES) {
      await page.goto(`${url}/#/${name}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      if (width > 360) wide.push(`${name}: ${width}`)
    }
    expect(wide).toEqual([])
  })
})
