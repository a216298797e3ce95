import { expect, it } from 'vitest'
import { steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { ASKING, openStage } from './stage.js'

describeBrowser('now', (browser) => {
  it('lets in only with the token, and forgets it at logout', async () => {
    const { page, url, logIn, problems } = await openStage(await browser())
    await page.goto(url)
    await page.getByLabel('Token').fill('aet_nobody_made_this')
    await page.getByRole('button', { name: 'Log in' }).click()
    const refused = await page.getByRole('alert').innerText()
    await logIn()
    const cookie = await page.evaluate('document.cookie')
    await page.reload()
    await page.getByText('No agent is at work.').waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByLabel('Token').waitFor()
    expect([refused, cookie, problems]).toEqual([expect.stringContaining('token'), '', []])
  })

  it('lets in by a link once, and leaves its code nowhere in the browser', async () => {
    const { page, url, loginLink, problems } = await openStage(await browser())
    const link = loginLink()
    const asked: string[] = []
    page.on('request', (request) => asked.push(`${request.url()} ${request.headers()['referer'] ?? ''}`))
    await page.goto(link)
    await page.getByText('No agent is at work.').waitFor()
    const shown = page.url()
    await page.reload()
    await page.getByText('No agent is at work.').waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()
    // The page is there already: only what stands behind the # changes.
    await page.goto(link)
    await page.getByText('This link was used already, or is too old.').waitFor()
    await page.goto(loginLink())
    await page.getByText('No agent is at work.').waitFor()
    const code = link.split('code=')[1] ?? ''
    expect([shown, asked.filter((request) => request.includes(code)), problems]).toEqual([`${url}/#/now`, [], []])
  })

  it('shows the text of a run as it comes, and stops it', async () => {
    const { page, logIn, say, problems } = await openStage(await browser())
    await logIn()
    await page.getByText('No agent is at work.').waitFor()
    const command = 'npm test'
    await say(
      steps(
        { text: 'I look **around** first.' },
        { tool: 'Bash', input: { command } },
        { drip: 'word '.repeat(5000), everyMs: 20 },
      ),
    )
    const card = page.getByRole('region', { name: 'Running' }).getByRole('article')
    const run = card.getByRole('region', { name: 'What the agent does' })
    await run.locator('strong', { hasText: 'around' }).waitFor()
    await run.getByText(command).waitFor()
    await run.getByText('word word word').waitFor()
    const before = (await run.innerText()).length
    await expect.poll(async () => (await run.innerText()).length).toBeGreaterThan(before)
    await card.getByRole('button', { name: 'Stop' }).click()
    const ended = page.getByRole('region', { name: 'Just ended' }).getByRole('article')
    await ended.getByText('Stopped').waitFor()
    expect([await page.getByRole('region', { name: 'Running' }).count(), problems]).toEqual([0, []])
  })

  it('retries a failed run', async () => {
    const { page, logIn, say, release, problems } = await openStage(await browser())
    await logIn()
    await say(steps({ fail: 'Invalid API key · Please run /login', unless: 'logged-in' }, { text: 'Now it works.' }))
    const ended = page.getByRole('region', { name: 'Just ended' })
    await ended.getByText('Failed').waitFor()
    release('logged-in')
    await ended.getByRole('button', { name: 'Retry' }).click()
    await ended.getByText('Now it works.', { exact: true }).waitFor()
    await ended.getByText('Answered').waitFor()
    expect([await ended.getByRole('button', { name: 'Retry' }).count(), problems]).toEqual([0, []])
  })

  it('shows what came before the page was opened, and file changes as diffs', async () => {
    const { page, logIn, say, release, client, problems } = await openStage(await browser())
    const edit = { file_path: '/src/a.ts', old_string: 'const a = 1\nkeep()', new_string: 'const a = 2\nkeep()' }
    const id = await say(
      steps({ text: 'Before. ' }, { tool: 'Edit', input: edit }, { hold: 'end' }, { text: 'After.' }),
    )
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('running')
    await logIn()
    const run = page.getByRole('region', { name: 'What the agent does' })
    await run.getByText('Before.').waitFor()
    const changed = await run.locator('.diff .added, .diff .removed').allInnerTexts()
    release('end')
    await run.getByText('After.').waitFor()
    await page.getByText('Answered').waitFor()
    await page.getByText('$0.25').waitFor()
    expect([changed.map((line) => line.trim()), problems]).toEqual([['- const a = 1', '+ const a = 2'], []])
  })

  it('keeps details open when the run ends', async () => {
    const { page, logIn, say, release, problems } = await openStage(await browser())
    await logIn()
    await say(steps({ tool: 'Bash', input: { command: 'npm test' } }, { hold: 'end' }, { text: 'After.' }))
    await page.getByRole('region', { name: 'Running' }).locator('.tool summary').click()
    await page.locator('.tool-body').waitFor()
    release('end')
    const ended = page.getByRole('region', { name: 'Just ended' })
    await ended.getByText('Answered').waitFor()
    expect([await ended.locator('.tool-body').count(), problems]).toEqual([1, []])
  })

  it("shows an agent's question, and passes the answer on", async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser(), { settings: ASKING })
    await logIn()
    const id = await say('Install it')
    const question = page.getByRole('region', { name: 'claudecode asks' })
    await question.getByText('npm install').waitFor()
    await page.getByText('1 to answer').waitFor()
    await question.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.getByRole('region', { name: 'Just ended' }).getByText('It is installed.').waitFor()
    const refused = await say('Install it')
    await question.getByRole('button', { name: 'Deny…' }).click()
    await question.getByLabel('What the agent is told').fill('Not today.')
    await question.getByRole('button', { name: 'Deny', exact: true }).click()
    const answers = []
    for (const conversation of [id, refused]) {
      await expect.poll(async () => (await client.conversations.get(conversation)).state).toBe('idle')
      const { entries } = await client.conversations.messages(conversation)
      answers.push(entries.flatMap((entry) => (entry.type === 'message' ? entry.replies : [])).at(-1)?.text)
    }
    expect([answers, await question.count(), problems]).toEqual([
      ['It is installed.', expect.stringContaining('Not today.')],
      0,
      [],
    ])
  })

  it('asks again at once if the agent does', async () => {
    const { page, logIn, say, problems } = await openStage(await browser(), { settings: ASKING })
    await logIn()
    await say('Do it twice')
    const question = page.getByRole('region', { name: 'claudecode asks' })
    for (const command of ['npm install', 'npm test']) {
      await question.getByText(command).waitFor()
      await question.getByRole('button', { name: 'Allow', exact: true }).click()
    }
    await page.getByRole('region', { name: 'Just ended' }).getByText('It is installed.').waitFor()
    expect([await question.count(), problems]).toEqual([0, []])
  })

  it('says when it is out of date, and catches up when the gateway is back', async () => {
    const { page, logIn, say, release, stopGateway, startGateway, problems } = await openStage(await browser())
    await logIn()
    await say(steps({ text: 'Before the end. ' }, { hold: 'restart' }, { text: 'After the start.' }))
    await page.getByText('Before the end.', { exact: true }).waitFor()
    await stopGateway()
    await page.getByText('The gateway does not answer').waitFor()
    await page.getByText('Reconnecting…').waitFor()
    await startGateway()
    await page.getByText('Live', { exact: true }).waitFor()
    release('restart')
    await page.getByText('After the start.', { exact: true }).waitFor()
    await page.getByRole('region', { name: 'Just ended' }).getByText('Answered').waitFor()
    expect([await page.getByText('The gateway does not answer').count(), problems]).toEqual([0, []])
  })
})
