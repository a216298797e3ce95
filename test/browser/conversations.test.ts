import { expect, it } from 'vitest'
import type { ConversationDetails } from '../../src/client/aetheel-client.js'
import { journalIn, steps } from '../kit/steps-agent.js'
import { describeBrowser } from './browser.js'
import { openStage } from './stage.js'

describeBrowser('conversations', (browser) => {
  it('begins a conversation, shows the answer as it is written, and continues it', async () => {
    const { page, logIn, release, problems } = await openStage(await browser())
    await logIn('#/conversations')
    await page.getByRole('link', { name: 'New conversation' }).click()
    await page
      .getByLabel(/^Project/)
      .last()
      .selectOption('site')
    const field = page.getByLabel('Message', { exact: true })
    await field.fill(steps({ text: 'First **words**. ' }, { hold: 'rest' }, { text: 'The rest.' }))
    await field.press('Enter')
    const transcript = page.getByRole('region', { name: 'What was said' })
    const run = transcript.getByRole('region', { name: 'What the agent does' })
    await run.locator('strong', { hasText: 'words' }).waitFor()
    const streamed = await run.innerText()
    release('rest')
    await transcript.getByRole('article', { name: 'An answer' }).getByText('The rest.').waitFor()
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

  it('keeps the typed text until the gateway has it, and says why it cannot be sent', async () => {
    const { page, logIn, say, stopGateway, startGateway, problems } = await openStage(await browser())
    const id = await say('Hello')
    await logIn(`#/conversations/${id}`)
    const field = page.getByLabel('Message', { exact: true })
    const alert = page.getByRole('alert')
    await field.fill('/new begin again')
    await field.press('Enter')
    const refused = await alert.innerText()
    await field.fill('Are you there?')
    await stopGateway()
    await field.press('Enter')
    await alert.getByText('The gateway does not answer').waitFor()
    await startGateway()
    await page.reload()
    const kept = await field.inputValue()
    await field.press('Enter')
    await page.getByText('You said: Are you there?').waitFor()
    expect([refused, kept, await field.inputValue(), await alert.count(), problems]).toEqual([
      expect.stringContaining('"New session"'),
      'Are you there?',
      '',
      0,
      [],
    ])
  })

  it('stops a run, and retries a failed one', async () => {
    const { page, logIn, say, release, client, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'On it. ' }, { hold: 'never' }))
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'What was said' })
    await transcript.getByText('On it.', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await transcript.getByText('Stopped.').waitFor()
    await client.conversations.send(id, steps({ fail: 'Not logged in', unless: 'luck' }, { text: 'It worked out.' }))
    await transcript.getByText('This failed.').waitFor()
    release('luck')
    await transcript.getByRole('button', { name: 'Retry' }).click()
    await transcript.getByRole('article', { name: 'An answer' }).getByText('It worked out.').waitFor()
    expect([await transcript.getByRole('button', { name: 'Retry' }).count(), problems]).toEqual([0, []])
  })

  it('lets an agent go on that has paused, and offers it no more afterwards', async () => {
    const { page, logIn, say, problems } = await openStage(await browser())
    const id = await say(steps({ text: 'Half of it.' }, { pause: true }))
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'What was said' })
    await transcript.getByText('Paused after 25 steps, the limit of one message.').waitFor()
    const half = await transcript.getByRole('article', { name: 'An answer' }).innerText()
    const button = transcript.getByRole('button', { name: 'Continue' })
    await button.click()
    await transcript.getByText('You said: Continue where you stopped.').waitFor()
    expect([half, await button.count(), problems]).toEqual([expect.stringContaining('Half of it.'), 0, []])
  })

  it('chooses the model and the session, and returns to an earlier one', async () => {
    const { page, logIn, say, site, client, problems } = await openStage(await browser())
    const id = await say('One')
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'What was said' })
    const tell = async (text: string): Promise<void> => {
      await page.getByLabel('Message', { exact: true }).fill(text)
      await page.getByLabel('Message', { exact: true }).press('Enter')
      await transcript.getByText(`You said: ${text}`).waitFor()
      await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
    }
    await transcript.getByText('You said: One').waitFor()
    await page.getByText('Agent and session').click()
    await page.getByLabel('Model').fill('sonnet')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByText('Chosen for the next message.').waitFor()
    await tell('Two')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByText('The next message begins a session.').waitFor()
    await tell('Three')
    await page.getByRole('region', { name: 'Earlier sessions' }).getByRole('button', { name: 'Resume' }).click()
    await expect.poll(async () => (await client.conversations.get(id)).session?.id).toBe(journalIn(site)[0]?.sessionId)
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
    await page.getByText('Nothing was said here yet.').waitFor()
    await page.getByText('Agent and session').click()
    const choices = page.locator('.chat-choices')
    const chosen = async (value: (details: ConversationDetails) => unknown, wanted: unknown): Promise<void> => {
      await expect.poll(async () => value(await client.conversations.get(id))).toBe(wanted)
    }
    await choices.getByLabel(/^A message/).selectOption('interrupt')
    await chosen(({ queue_mode: mode }) => mode, 'interrupt')
    await choices.getByLabel(/^Agent/).selectOption('codex')
    await chosen((details) => details.agent_provider, 'codex')
    await choices.getByLabel(/^Project/).selectOption('site')
    await page.getByRole('heading', { name: 'site · web' }).waitFor()
    await choices.getByLabel(/^Project/).selectOption('Where it was begun')
    await chosen((details) => details.project_id, null)
    await page.getByRole('heading', { name: 'no project · web' }).waitFor()
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
    const transcript = page.getByRole('region', { name: 'What was said' })
    await transcript.getByText('characters after this are not shown').first().waitFor()
    await transcript.getByText('What the agent did').first().click()
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

  it('finds words in everything that was said, and marks them', async () => {
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
    await page.getByText('Nothing was found.').waitFor()
    expect([marked.toSorted(), count, problems]).toEqual([['haystack', 'needle'], 1, []])
  })

  it('loads earlier messages on request, and shows no more than needed', async () => {
    const { page, logIn, client, say, release, problems } = await openStage(await browser())
    const id = await say(steps({ hold: 'all' }))
    // Waiting messages are in the transcript: nobody needs to answer them.
    for (let number = 1; number <= WAITING; number += 1) await client.conversations.send(id, `Message ${number}.`)
    await logIn(`#/conversations/${id}`)
    const transcript = page.getByRole('region', { name: 'What was said' })
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
    await page.getByText('This token may read alone.').waitFor()
    await page.getByText('Agent and session').click()
    await page.getByText(/^Session [\da-f-]+/).waitFor()
    const buttons = await page.getByRole('main').getByRole('button').count()
    expect([buttons, await page.getByLabel('Message', { exact: true }).count(), problems]).toEqual([0, 0, []])
  })
})

/** Each is two events. */
const STEPS = 2480
const WAITING = 45
