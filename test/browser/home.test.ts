import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { steps } from '../kit/steps-agent.js'
import { until } from '../kit/waiting.js'
import { describeBrowser } from './browser.js'
import { ASKING, openStage } from './stage.js'

const ready = (page: Page): Promise<void> => page.getByRole('heading', { name: 'What are we working on?' }).waitFor()

describeBrowser('home', (browser) => {
  it('logs in only with the token, and forgets it at logout', async () => {
    const { page, url, logIn, problems } = await openStage(await browser())
    await page.goto(url)
    await page.getByLabel('Token').fill('aet_nobody_made_this')
    await page.getByRole('button', { name: 'Log in' }).click()
    const refused = await page.getByRole('alert').innerText()
    await logIn()
    const cookie = await page.evaluate('document.cookie')
    const shownName = await page.getByTitle('Logged in with the token').innerText()
    await page.reload()
    await ready(page)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByLabel('Token').waitFor()
    expect([refused, cookie, shownName, problems]).toEqual([expect.stringContaining('token'), '', 'admin token', []])
  })

  it('logs in by link, once, and leaves its code nowhere in the browser', async () => {
    const { page, url, loginLink, problems } = await openStage(await browser())
    const link = loginLink()
    const asked: string[] = []
    page.on('request', (request) => asked.push(`${request.url()} ${request.headers()['referer'] ?? ''}`))
    await page.goto(link)
    await ready(page)
    const shown = page.url()
    await page.reload()
    await ready(page)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()
    // The page is already open, so only the fragment changes.
    await page.goto(link)
    await page.getByText('This link was already used or has expired.').waitFor()
    await page.goto(loginLink())
    await ready(page)
    const code = link.split('code=')[1] ?? ''
    expect([shown, asked.filter((request) => request.includes(code)), problems]).toEqual([`${url}/#/home`, [], []])
  })

  it('opens pages by their former addresses', async () => {
    const { page, url, logIn, problems } = await openStage(await browser())
    await logIn('#/figures?days=7')
    await page.getByRole('heading', { name: 'Usage', exact: true }).waitFor()
    await page.goto(`${url}/#/now`)
    await ready(page)
    expect(problems).toEqual([])
  })

  it('begins a conversation, shows what is running and what failed, and stops a run', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    const failed = await say(steps({ fail: 'Invalid API key · Please run /login' }))
    await client.conversations.update(failed, { title: 'Deploy it' })
    await logIn()
    await page.getByLabel('Project').selectOption('site')
    const field = page.getByLabel('Message', { exact: true })
    await field.fill(steps({ tool: 'Bash', input: { command: 'npm test' } }, { hold: 'never' }))
    await field.press('Enter')
    await page.getByRole('region', { name: 'What the agent is doing' }).getByText('Run command:').waitFor()
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    const running = page.getByRole('region', { name: 'Running' })
    await running.getByText('Run command: npm test').waitFor()
    const needed = await page.getByRole('region', { name: 'Needs you' }).getByRole('link').innerText()
    await running.getByRole('button', { name: 'Stop' }).click()
    await running.waitFor({ state: 'detached' })
    expect([needed, problems]).toEqual([expect.stringMatching(/Deploy it[^]*Failed/), []])
  })

  it("shows an agent's question, and passes the answer on", async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser(), { settings: ASKING })
    await logIn()
    const id = await say('Install it')
    const question = page.getByRole('region', { name: 'Claude Code wants to run a command' })
    await question.getByText('npm install').waitFor()
    await page.getByText('1 waiting for you').waitFor()
    await until(async () => (await page.title()).startsWith('(1) '), 'a mark at the title')
    await question.getByRole('button', { name: 'Allow', exact: true }).click()
    await question.waitFor({ state: 'detached' })
    const refused = await say('Install it')
    await question.getByRole('button', { name: 'Deny with a reason' }).click()
    await question.getByLabel('What to do instead').fill('Not today.')
    await question.getByRole('button', { name: 'Deny and send' }).click()
    const answers = []
    for (const conversation of [id, refused]) {
      await expect.poll(async () => (await client.conversations.get(conversation)).state).toBe('idle')
      const { entries } = await client.conversations.messages(conversation)
      answers.push(entries.flatMap((entry) => (entry.type === 'message' ? entry.replies : [])).at(-1)?.text)
    }
    await question.waitFor({ state: 'detached' })
    expect([answers, problems]).toEqual([['It is installed.', expect.stringContaining('Not today.')], []])
  })

  it('notifies when an opened conversation ends while another page is open', async () => {
    const { page, logIn, say, release, client, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'On it. ' }, { hold: 'end' }, { text: 'Done.' }))
    await client.conversations.update(id, { title: 'a long title '.repeat(6) })
    await logIn(`#/conversations/${id}`)
    await page.getByText('On it.', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Queue' }).click()
    await page.getByRole('heading', { name: 'Queue' }).waitFor()
    release('end')
    const note = page.getByRole('status', { name: 'Notifications' })
    await note.getByRole('button', { name: 'Dismiss' }).waitFor()
    const right = await note.getByRole('button', { name: 'Dismiss' }).evaluate((it) => it.getBoundingClientRect().right)
    await note.getByText('Answered').click()
    await page.getByRole('article', { name: 'Answer' }).getByText('Done.').waitFor()
    expect([right < 1280, problems]).toEqual([true, []])
  })

  it('says once that nothing loads, and loads it when the gateway is back', async () => {
    const { page, logIn, stopGateway, startGateway, problems } = await openStage(await browser())
    await logIn()
    await ready(page)
    await page.getByRole('link', { name: 'New conversation' }).click()
    const usual = page.getByRole('option', { name: 'Claude Code (default)' })
    await usual.waitFor({ state: 'attached' })
    await stopGateway()
    await page.getByText('Reconnecting…').waitFor()
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByText('Connection lost').waitFor()
    await page.getByRole('option', { name: 'Default agent' }).waitFor({ state: 'attached' })
    const said = await page.getByText('The gateway is not responding').count()
    await startGateway()
    await usual.waitFor({ state: 'attached' })
    expect([said, await page.getByText('The gateway is not responding').count(), problems]).toEqual([1, 0, []])
  })

  it('says when it is out of date, and catches up when the gateway is back', async () => {
    const { page, logIn, say, release, stopGateway, startGateway, problems } = await openStage(await browser())
    await logIn()
    await say(steps({ text: 'Before the end. ' }, { hold: 'restart' }, { text: 'After the start.' }))
    await page.getByText('Before the end.', { exact: true }).waitFor()
    await stopGateway()
    await page.getByText('The gateway is not responding').waitFor()
    await page.getByText('Reconnecting…').waitFor()
    await startGateway()
    await page.getByText('Live', { exact: true }).waitFor()
    release('restart')
    await page.getByRole('region', { name: 'Running' }).waitFor({ state: 'detached' })
    expect([await page.getByText('The gateway is not responding').count(), problems]).toEqual([0, []])
  })
})
