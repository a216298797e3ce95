import { expect, it } from 'vitest'
import { steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { openStage } from './stage.js'

const EVENTS = 5000
const HUGE = 600_000
const HTML = [
  '<script>window.hacked = 1</script>',
  '<img src=x onerror="window.hacked = 2">',
  '[click](javascript:window.hacked=3)',
  '<style>body { display: none }</style>',
  '<iframe srcdoc="<script>parent.hacked = 4</script>"></iframe>',
].join('\n\n')
const MOST_ELEMENTS = 3000

describeBrowser('agents that write what they should not', (browser) => {
  it('have their HTML shown as text, and never executed', async () => {
    const { page, logIn, say, release, problems } = await openStage(await browser())
    const id = await say(steps({ text: HTML }, { tool: 'Bash', input: { command: HTML } }, { hold: 'look' }))
    await logIn(`#/conversations/${id}`)
    const run = page.getByRole('region', { name: 'What the agent is doing' })
    await run.getByText('window.hacked = 1').first().waitFor()
    await run.getByText('click', { exact: true }).click()
    await run.locator('.tool summary').click()
    await run.locator('.tool-body .code').first().waitFor()
    const done = await page.evaluate<unknown>('window.hacked ?? null')
    const planted = await run.locator('script, img, iframe, style, a[href^="javascript"]').count()
    release('look')
    expect([done, planted, problems]).toEqual([null, 0, []])
  })

  it('do not block the page with a huge line', async () => {
    const { page, logIn, client, problems } = await openStage(await browser())
    const { id } = await client.conversations.create()
    await logIn(`#/conversations/${id}`)
    await client.conversations.send(
      id,
      steps({ text: 'x', times: HUGE }, { tool: 'Read', input: { file_path: 'y'.repeat(HUGE) } }),
    )
    await page.getByText('Worked for').waitFor()
    const shown = await page.evaluate<number>('document.body.innerText.length')
    expect([shown < 100_000, problems]).toEqual([true, []])
  })

  it(`do not block it with ${EVENTS} events, of which the last are shown`, async () => {
    const { page, logIn, client, release, problems } = await openStage(await browser())
    const { id } = await client.conversations.create()
    await logIn(`#/conversations/${id}`)
    const tools = Array.from({ length: EVENTS / 2 }, (_, index) => ({
      tool: 'Bash',
      input: { command: `step ${index}` },
    }))
    await page.evaluate(`window.longest = 0; let last = performance.now()
      const look = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(look) }
      requestAnimationFrame(look)`)
    await client.conversations.send(id, steps(...tools, { text: 'That was all.' }, { hold: 'look' }))
    await page.getByText('That was all.', { exact: true }).waitFor()
    await page.getByText(`step ${EVENTS / 2 - 1}`, { exact: true }).waitFor()
    for (let count = 0; count < 4; count++) {
      await page.getByRole('button', { name: 'Show earlier' }).click()
    }
    const elements = await page.evaluate<number>('document.querySelectorAll("*").length')
    const longest = await page.evaluate<number>('window.longest')
    release('look')
    expect([elements < MOST_ELEMENTS, longest < 5000, problems]).toEqual([true, true, []])
  })
})
