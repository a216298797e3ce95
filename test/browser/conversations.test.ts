import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { ConversationDetails } from '../../src/client/aetheel-client.js'
import { journalIn, steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { until } from '../kit/waiting.js'
import { ASKING, openStage } from './stage.js'

describeBrowser('conversations', (browser) => {
  it('begins a conversation, shows the answer as it is written, and continues it', async () => {
    const { page, logIn, release, problems } = await openStage(await browser())
    await logIn('#/new?project=site')
    const field = page.getByLabel('Message', { exact: true })
    await field.fill(steps({ text: 'First **words**. ' }, { hold: 'rest' }, { text: 'The rest.' }))
    await field.press('Enter')
    const transcript = page.getByRole('region', { name: 'Transcript' })
    const run = transcript.getByRole('region', { name: 'What the agent is doing' })
    await run.locator('strong', { hasText: 'words' }).waitFor()
    const streamed = await run.innerText()
    release('rest')
    await transcript.getByRole('article', { name: 'Answer' }).getByText('The rest.').waitFor()
    const focused = await page.evaluate('document.activeElement?.tagName')
    await field.fill('Hello,')
    await field.press('Shift+Enter')
    await field.pressSequentially('you')
    await field.press('Enter')
    await transcript.getByText('You said: Hello,').waitFor()
    const draft = await field.inputValue()
    expect([streamed, focused, draft, page.url(), problems]).toEqual([
      expect.stringContaining('First words.'),
      'TEXTAREA',
      '',
      expect.stringMatching(/#\/conversations\/[\da-f-]{36}$/),
      [],
    ])
  })

  it('keeps details open when the run ends, and opens nothing on its own', async () => {
    const { page, logIn, say, release, client, problems } = await openStage(await browser())
    const call = (step: number) => ({ tool: 'Bash', input: { command: `step ${step}` } })
    const think = (thinking: string) => ({
      print: {
        type: 'stream_event',
        event: { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking } },
      },
    })
    const id = await say(
      steps(
        ...Array.from({ length: 45 }, (_, step) => call(step)),
        { tool: 'Write', input: { file_path: 'b.md', content: '# One\n' } },
        think('One thing '),
        { hold: 'end' },
        think('and another.'),
        { text: 'After.' },
      ),
    )
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.locator('.thinking summary').click()
    const tool = transcript.locator('.tool', { hasText: 'step 44' })
    await tool.locator('summary').click()
    await tool.locator('.tool-body').waitFor()
    release('end')
    const answers = transcript.getByRole('article', { name: 'Answer' })
    await answers.getByText('After.').waitFor()
    await expect.poll(() => transcript.locator('.past-run .tool-body').count()).toBe(2)
    const isStillOpen = await tool.locator('.tool-body').count()
    await transcript.locator('.past-run .thinking[open]').getByText('One thing and another.').waitFor()
    await client.conversations.send(
      id,
      steps({ tool: 'Write', input: { file_path: 'c.md', content: '# Two\n' } }, { hold: 'again' }, { text: 'Again.' }),
    )
    await transcript.getByRole('region', { name: 'What the agent is doing' }).locator('.diff').waitFor()
    release('again')
    await answers.getByText('Again.').waitFor()
    await expect.poll(() => transcript.locator('.behind').count()).toBe(2)
    expect([isStillOpen, await transcript.locator('.behind[open]').count(), problems]).toEqual([1, 1, []])
  })

  it('reports an unknown conversation, whatever is wrong with its address', async () => {
    const { page, logIn, url, problems } = await openStage(await browser())
    await logIn('#/conversations/nonsense')
    const alert = page.getByRole('alert').getByText('Conversation not found, or your token cannot access it.')
    await alert.waitFor()
    await page.goto(`${url}/#/conversations`)
    await alert.waitFor({ state: 'detached' })
    await page.goto(`${url}/#/conversations/${randomUUID()}`)
    await alert.waitFor()
    expect(problems.filter((problem) => !/status of (400|404)/.test(problem))).toEqual([])
  })

  it('keeps the typed text until the gateway has it', async () => {
    const { page, logIn, say, stopGateway, startGateway, problems } = await openStage(await browser())
    const id = await say('Hello')
    await logIn(`#/conversations/${id}`)
    const field = page.getByLabel('Message', { exact: true })
    const alert = page.getByRole('alert')
    await field.fill('Are you there?')
    await stopGateway()
    await field.press('Enter')
    await alert.getByText('The gateway is not responding').waitFor()
    await startGateway()
    await page.reload()
    const kept = await field.inputValue()
    await field.press('Enter')
    await page.getByText('You said: Are you there?').waitFor()
    expect([kept, await field.inputValue(), await alert.count(), problems]).toEqual(['Are you there?', '', 0, []])
  })

  it('shows what a person typed exactly as typed, and runs commands', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    const typed = 'Why $HOME/__init__.py, ~foo~ here?\n# no heading\n  <b>'
    const id = await say(typed)
    await logIn(`#/conversations/${id}`)
    const own = await page.locator('.typed').textContent()
    const field = page.getByLabel('Message', { exact: true })
    await field.pressSequentially('/mod')
    await page.getByRole('option', { name: /^\/model/ }).waitFor()
    await field.press('Tab')
    await field.pressSequentially('sonnet')
    await field.press('Enter')
    await page.locator('.answered').getByText('sonnet').waitFor()
    const { model } = await client.conversations.get(id)
    await field.fill('/nonsense')
    await field.press('Enter')
    await page.getByRole('alert').waitFor()
    const refused = problems.splice(0)
    expect([own, model, await field.inputValue(), refused]).toEqual([
      typed,
      'sonnet',
      '/nonsense',
      [expect.stringContaining('status of 400')],
    ])
  })

  it('completes the names of files in the project', async () => {
    const { page, logIn, site, problems } = await openStage(await browser())
    mkdirSync(join(site, 'src'), { recursive: true })
    writeFileSync(join(site, 'src', 'cart.ts'), '')
    await logIn('#/new?project=site')
    const field = page.getByLabel('Message', { exact: true })
    await field.pressSequentially('Look at @cart')
    await page.getByRole('option', { name: 'src/cart.ts' }).waitFor()
    await field.press('Enter')
    expect([await field.inputValue(), problems]).toEqual(['Look at @src/cart.ts ', []])
  })

  it('sends files that were pasted, dropped or chosen, and shows them', async () => {
    const { page, logIn, say, site, problems } = await openStage(await browser())
    const id = await say('Hello')
    await logIn(`#/conversations/${id}`)
    const field = page.getByLabel('Message', { exact: true })
    await page.getByLabel('Files', { exact: true }).setInputFiles({
      name: 'pixel.png',
      mimeType: 'image/png',
      buffer: Buffer.from(PIXEL, 'base64'),
    })
    await page.getByText('pixel.png').waitFor()
    await page.evaluate(`
      const clipboardData = new DataTransfer()
      clipboardData.items.add(new File(['bread'], 'list.txt', { type: 'text/plain' }))
      const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
      document.querySelector('textarea').dispatchEvent(event)
    `)
    await page.getByText('list.txt').waitFor()
    await field.fill('Look at these')
    await field.press('Enter')
    const sent = page.locator('.sent-files')
    await sent.getByRole('img', { name: 'pixel.png' }).waitFor()
    const download = page.waitForEvent('download')
    await sent.getByRole('button', { name: /list\.txt/ }).click()
    const name = (await download).suggestedFilename()
    await expect.poll(() => journalIn(site).at(-1)?.prompt).toContain('list.txt')
    expect([name, await page.locator('.typed').last().textContent(), problems]).toEqual([
      'list.txt',
      'Look at these',
      [],
    ])
  })

  it('keeps the output of a stopped run, and retries it and a failed one', async () => {
    const { page, logIn, say, release, client, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'On it. ' }, { hold: 'luck' }, { text: 'And done.' }))
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('On it.', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await transcript.getByText('Stopped', { exact: true }).waitFor()
    await page.reload()
    await transcript.getByRole('region', { name: 'What the agent did' }).getByText('On it.').waitFor()
    release('luck')
    await transcript.getByRole('button', { name: 'Retry' }).click()
    await transcript.getByRole('article', { name: 'Answer' }).getByText('And done.').waitFor()
    await client.conversations.send(id, steps({ fail: 'Not logged in', unless: 'login' }, { text: 'It worked out.' }))
    await transcript.getByText('Failed', { exact: true }).waitFor()
    release('login')
    await transcript.getByRole('button', { name: 'Retry' }).last().click()
    await transcript.getByRole('article', { name: 'Answer' }).getByText('It worked out.').waitFor()
    expect(problems).toEqual([])
  })

  it('opens at its end, even if its last run has no answer', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'One line.\n\n', times: 80 }, { fail: 'Invalid API key · Please run /login' }))
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('idle')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    const did = transcript.getByRole('region', { name: 'What the agent did' })
    await did.getByText('One line.').first().waitFor()
    await expect
      .poll(() => transcript.evaluate((part) => part.scrollHeight - part.scrollTop - part.clientHeight))
      .toBeLessThan(2)
    expect(problems).toEqual([])
  })

  it('keeps the output and the error when a retry is dropped', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'Half of it. ' }, { fail: 'Overloaded, try again later' }))
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('waiting')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('Waiting to try again').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await transcript.getByText('Stopped').waitFor()
    const did = transcript.getByRole('region', { name: 'What the agent did' })
    await did.getByText('Half of it.').waitFor()
    await transcript
      .getByText(/Overloaded/)
      .first()
      .waitFor()
    expect([await transcript.getByRole('button', { name: 'Retry' }).count(), problems]).toEqual([1, []])
  })

  it('shows a question once, in its place, and removes it once answered', async () => {
    const { page, logIn, say, problems } = await openStage(await browser(), { settings: ASKING })
    const id = await say('Do it twice')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    const question = transcript.getByRole('region', { name: 'Claude Code wants to run a command' })
    const seen: string[] = []
    for (const command of ['npm install', 'npm test']) {
      await question.getByText(command).waitFor()
      seen.push(await page.getByRole('main').innerText())
      await question.getByRole('button', { name: 'Allow', exact: true }).click()
    }
    await transcript.getByRole('article', { name: 'Answer' }).getByText('It is installed.').waitFor()
    const [first = ''] = seen
    expect([
      first.split('npm install').length - 1,
      /\/approve|Waits for|Working/.test(seen.join()),
      first.includes('Waiting for you'),
      await question.count(),
      /\/approve/.test(await transcript.innerText()),
      problems,
    ]).toEqual([1, false, true, 0, false, []])
  })

  it('shows the changed files next to the conversation, even after the run has ended', async () => {
    const { page, logIn, say, release, problems } = await openStage(await browser())
    const edit = { file_path: 'src/a.ts', old_string: 'const a = 1\nkeep()', new_string: 'const a = 2\nkeep()' }
    const write = { file_path: 'b.md', content: '# One\n' }
    const id = await say(
      steps(
        { text: 'Before. ' },
        { tool: 'Edit', input: edit },
        { tool: 'Write', input: write },
        { hold: 'end' },
        { text: 'After.' },
      ),
    )
    await logIn(`#/conversations/${id}`)
    const run = page.getByRole('region', { name: 'What the agent is doing' })
    await run.getByText('Before.').waitFor()
    const inRun = await run.locator('.diff .removed').allInnerTexts()
    const changes = page.getByRole('complementary', { name: 'Changes' })
    await changes.getByText('2 files changed').waitFor()
    release('end')
    await page.getByRole('article', { name: 'Answer' }).getByText('After.').waitFor()
    await changes.locator('summary', { hasText: 'a.ts' }).click()
    await changes.locator('.removed').waitFor()
    const inRail = await changes.locator('.removed').allInnerTexts()
    await page.setViewportSize({ width: 390, height: 800 })
    await changes.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Changes 2' }).click()
    await changes.locator('summary', { hasText: 'b.md' }).waitFor()
    expect([inRun.map((line) => line.trim()), inRail.map((line) => line.trim()), problems]).toEqual([
      ['- const a = 1'],
      ['- const a = 1'],
      [],
    ])
  })

  it('is renamed in place, pinned, archived and deleted', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    const id = await say('Hello')
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('idle')
    await logIn(`#/conversations/${id}`)
    await page.getByRole('button', { name: 'Hello', exact: true }).click()
    await page.getByLabel('Title').fill('A greeting')
    await page.getByLabel('Title').press('Enter')
    const recent = page.getByRole('navigation', { name: 'Recent conversations' })
    await recent.getByRole('link', { name: 'A greeting' }).waitFor()
    const choose = async (item: string): Promise<void> => {
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('menuitem', { name: item, exact: true }).click()
    }
    await choose('Pin')
    await page.getByText('Pinned', { exact: true }).waitFor()
    await choose('Archive')
    await page.getByText('Archived', { exact: true }).waitFor()
    const { is_pinned: isPinned, is_archived: isArchived } = await client.conversations.get(id)
    await recent.getByRole('link', { name: 'A greeting' }).waitFor({ state: 'detached' })
    await choose('Delete…')
    const dialog = page.getByRole('dialog', { name: 'Delete this conversation?' })
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Deleted', { exact: true }).waitFor()
    await page.getByRole('heading', { name: 'Conversations' }).waitFor()
    const { conversations } = await client.conversations.list({ archived: 'true' })
    expect([isPinned, isArchived, conversations, problems]).toEqual([true, true, [], []])
  })

  it('continues a conversation of another channel, in the same session', async () => {
    const { page, logIn, client, site, problems } = await openStage(await browser())
    await client.execute('site', { prompt: steps({ text: 'Noted.' }) })
    const find = async () => (await client.conversations.list({ channel: 'http' })).conversations[0]
    await expect.poll(async () => (await find())?.state).toBe('idle')
    await expect.poll(() => journalIn(site).length).toBe(1)
    await logIn(`#/conversations/${(await find())?.id}`)
    await page.getByRole('button', { name: 'Continue here' }).click()
    await page.getByText('Continues an earlier session').waitFor()
    const field = page.getByLabel('Message', { exact: true })
    await field.fill('Go on')
    await field.press('Enter')
    await page.getByText('You said: Go on').waitFor()
    await page.goBack()
    // Its session has moved.
    await page.getByRole('button', { name: 'New conversation here' }).waitFor()
    const [first, second] = journalIn(site)
    expect([second?.isResumed, second?.sessionId === first?.sessionId, problems]).toEqual([true, true, []])
  })

  it('continues a paused agent, and does not offer it again', async () => {
    const { page, logIn, say, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'Half of it.' }, { pause: true }))
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('Paused after 25 steps, the limit for one message.').waitFor()
    const half = await transcript.getByRole('article', { name: 'Answer' }).innerText()
    const button = transcript.getByRole('button', { name: 'Continue' })
    await button.click()
    await transcript.getByText('You said: Continue where you stopped.').waitFor()
    expect([half, await button.count(), problems]).toEqual([expect.stringContaining('Half of it.'), 0, []])
  })

  it('chooses the model and the session, and returns to an earlier one', async () => {
    const { page, logIn, say, site, client, problems } = await openStage(await browser())
    const id = await say('One')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    const tell = async (text: string): Promise<void> => {
      await page.getByLabel('Message', { exact: true }).fill(text)
      await page.getByLabel('Message', { exact: true }).press('Enter')
      await transcript.getByText(`You said: ${text}`).waitFor()
      await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
    }
    await transcript.getByText('You said: One').waitFor()
    const open = (): Promise<void> => page.getByRole('button', { name: 'Agent and session' }).click()
    const close = (): Promise<void> => page.getByRole('button', { name: 'Close' }).click()
    await open()
    await page.getByLabel('Model').fill('sonnet')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByText('Saved for the next message.').waitFor()
    await close()
    await tell('Two')
    await open()
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByText('The next message starts a new session.').waitFor()
    await close()
    await tell('Three')
    await open()
    await page.getByRole('region', { name: 'Earlier sessions' }).getByRole('button', { name: 'Resume' }).click()
    await expect.poll(async () => (await client.conversations.get(id)).session?.id).toBe(journalIn(site)[0]?.sessionId)
    await close()
    await tell('Four')
    const [first, second, third, fourth] = journalIn(site)
    expect([
      second?.model,
      second?.sessionId === first?.sessionId,
      third?.isResumed,
      third?.sessionId === first?.sessionId,
      fourth?.sessionId === first?.sessionId,
      problems,
    ]).toEqual(['sonnet', true, false, false, true, []])
  })

  it('chooses the project, the agent, and the queue mode', async () => {
    const { page, logIn, client, problems } = await openStage(await browser())
    const { id } = await client.conversations.create()
    await logIn(`#/conversations/${id}`)
    await page.getByText('No messages yet').waitFor()
    await page.getByRole('button', { name: 'Agent and session' }).click()
    const choices = page.locator('.chat-choices')
    const chosen = async (value: (details: ConversationDetails) => unknown, wanted: unknown): Promise<void> => {
      await expect.poll(async () => value(await client.conversations.get(id))).toBe(wanted)
    }
    await choices.getByLabel(/^Messages/).selectOption('interrupt')
    await chosen(({ queue_mode: mode }) => mode, 'interrupt')
    await choices.getByLabel(/^Agent/).selectOption('codex')
    await chosen((details) => details.agent_provider, 'codex')
    await choices.getByLabel(/^Project/).selectOption('site')
    await page.getByText('site · Web', { exact: true }).waitFor()
    await choices.getByLabel(/^Project/).selectOption('Where it started')
    await chosen((details) => details.project_id, null)
    await page.getByText('Web', { exact: true }).waitFor()
    expect(problems).toEqual([])
  })

  it("shows agents' output as text only, and thousands of events in parts", async () => {
    const { page, logIn, client, say, problems } = await openStage(await browser())
    const attack = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>[x](javascript:hacked=1)'
    const calls = Array.from({ length: STEPS }, (_, step) => ({ tool: 'Bash', input: { command: `step ${step}` } }))
    const id = await say(steps({ text: attack }, ...calls, { text: 'y', times: 600_000 }, { result: attack }))
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('idle')
    await client.conversations.send(id, steps({ text: 'y', times: 600_000 }))
    await expect.poll(async () => (await client.conversations.get(id)).state).toBe('idle')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('more characters not shown').first().waitFor()
    await transcript.getByText('Worked for').first().click()
    const run = transcript.getByRole('region', { name: 'Attempt 1' })
    await run.getByText(`of ${STEPS + 2} · `).waitFor()
    await run.getByText('step 5', { exact: true }).waitFor()
    await run.getByRole('button', { name: 'Last steps' }).click()
    await run.getByText(`step ${STEPS - 1}`).waitFor()
    const events = await run.getByText(' events').innerText()
    const found = await page.evaluate(`({
      hacked: 'hacked' in window,
      dangers: document.querySelectorAll('main img, main script, main [href^="javascript"]').length,
      isSmall: document.querySelectorAll('*').length < 2000,
      isWide: document.documentElement.scrollWidth > innerWidth,
    })`)
    expect([events, found, problems]).toEqual([
      expect.stringContaining('5.0k events'),
      { hacked: false, dangers: 0, isSmall: true, isWide: false },
      [],
    ])
  }, 120_000)

  it('finds words in all messages, and marks them', async () => {
    const { page, logIn, say, client, problems } = await openStage(await browser())
    await say('The needle is in the haystack')
    const other = await say('Nothing of that kind')
    await expect.poll(async () => (await client.conversations.get(other)).state).toBe('idle')
    await logIn('#/conversations')
    const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(2)
    await page.getByRole('searchbox').fill('haystack NEEDLE')
    await page.locator('mark').first().waitFor()
    const marked = await page.locator('mark').allInnerTexts()
    const count = await rows.count()
    await page.getByRole('searchbox').fill('nobody said this')
    await page.getByText('Nothing found').waitFor()
    expect([marked.toSorted(), count, problems]).toEqual([['haystack', 'needle'], 1, []])
  })

  it('lists any number of conversations, with only the visible ones in the DOM', async () => {
    const { page, logIn, store, problems } = await openStage(await browser())
    await store.transaction(async (tables) => {
      for (let number = 1; number <= LISTED; number += 1) {
        await tables.conversations.enter({ channel: 'http', address: `a-${number}` }, randomUUID(), number * 1000)
      }
    })
    await logIn('#/conversations')
    const rows = page.getByRole('list', { name: 'Conversations' })
    await rows.getByRole('link').first().waitFor()
    await until(async () => {
      await page.evaluate(`document.querySelector('main').scrollTo(0, 1e9)`)
      return (await rows.boundingBox())?.height === LISTED * ROW_PX
    }, 'all of them to be listed')
    expect([(await rows.getByRole('listitem').count()) < 60, problems]).toEqual([true, []])
  })

  it('loads earlier messages on request, and shows no more than needed', async () => {
    const { page, logIn, client, say, release, problems } = await openStage(await browser())
    const id = await say(steps({ hold: 'all' }))
    // Waiting messages are in the transcript too, so no answers are needed.
    for (let number = 1; number <= WAITING; number += 1) await client.conversations.send(id, `Message ${number}.`)
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText(`Message ${WAITING}.`).waitFor()
    const isThere = await transcript.getByText('Message 5.').count()
    await page.getByRole('button', { name: 'Show earlier messages' }).click()
    await transcript.getByText('Message 5.').waitFor()
    const read = await transcript.getByText(`Message ${WAITING - 29}.`).isVisible()
    await page.getByRole('button', { name: 'Stop' }).click()
    release('all')
    expect([isThere, read, problems]).toEqual([0, true, []])
  })

  it('is read-only for people who may only read', async () => {
    const { page, logIn, say, problems } = await openStage(await browser(), { scope: 'read' })
    const id = await say(steps({ text: 'All done.' }))
    await logIn(`#/conversations/${id}`)
    await page.getByText('All done.', { exact: true }).waitFor()
    await page.getByText('This token is read-only.').waitFor()
    await page.getByRole('button', { name: 'Agent and session' }).click()
    await page.getByText(/^Session [\da-f-]+/).waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    const buttons = await page.getByRole('main').getByRole('button').allTextContents()
    expect([
      buttons.filter((words) => !words.startsWith('Agent and session') && words !== ''),
      await page.getByLabel('Message', { exact: true }).count(),
      problems,
    ]).toEqual([[], 0, []])
  })
})

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** Two events each. */
const STEPS = 2480
const WAITING = 45
const LISTED = 150
/** As in styles/conversation.css. */
const ROW_PX = 60
