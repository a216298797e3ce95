import { expect, it } from 'vitest'
import { Terminal } from '../kit/terminal.js'
import { describeBrowser } from './browser.js'
import { newPage } from './stage.js'

const ENTER = '\r'
const CTRL_C = '\u0003'

describeBrowser('a newcomer', (browser) => {
  it('gets from an empty home to a streamed answer with a command, a key per question and a message', async (test) => {
    const gateway = new Terminal(test).openAtTerminal([], { AGENT_MODE: 'auto' })
    for (const question of ['Which agent', 'What may the agent do', 'Which directory', 'to Discord?']) {
      await gateway.printed(question)
      gateway.press(ENTER)
    }
    await gateway.printed('Ctrl-C stops it.')
    const { page, problems } = await newPage(await browser())
    await page.goto(/http:\S+#\/login\?code=[\w-]{43}/.exec(gateway.stdout)?.[0] ?? 'no link')
    await page.getByRole('link', { name: 'New conversation' }).click()
    await page.getByRole('option', { name: 'Demo agent (default)' }).waitFor({ state: 'attached' })
    const field = page.getByLabel('Message', { exact: true })
    await field.fill('hello')
    await field.press('Enter')
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByRole('region', { name: 'What the agent is doing' }).getByText('I am').waitFor()
    const answer = transcript.getByRole('article', { name: 'Answer' })
    await answer.getByText('there is no model behind me').waitFor()
    gateway.press(CTRL_C)
    await gateway.exited
    expect(problems).toEqual([])
  })
})
