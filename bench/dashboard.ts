/**
 * How long a browser takes to show a conversation with thousands of events and a list of thousands of conversations, and
 * how long it freezes meanwhile.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium, type Page } from 'playwright-core'
import { AetheelClient } from '../src/client/aetheel-client.js'
import { findExecutable } from '../src/core/paths.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'
import { startBenchService } from './service.js'
import type { Store } from '../src/store/store.js'

const ROUNDS = 5
/** Two events each. */
const TOOL_CALLS = 2_500
const LISTED = 10_000
/** As in styles/conversation.css. */
const ROW_PX = 60
const SHOWN_GOAL_MS = 1_000
const FRAME_GOAL_MS = 100
const LIMIT_MS = 60_000

const AGENT = `#!/usr/bin/env node
if (process.argv.includes('--version')) { console.log('2.1.197'); process.exit() }
const print = (line) => console.log(JSON.stringify({ ...line, session_id: '11111111-1111-4111-8111-111111111111' }))
print({ type: 'system', subtype: 'init', cwd: process.cwd(), model: 'none', tools: [] })
for (let call = 1; call <= ${TOOL_CALLS}; call += 1) {
  const id = 'toolu_' + call
  const input = { command: 'sed -n 1,40p src/part-' + call + '.ts' }
  print({ type: 'assistant', message: { id: 'msg_' + call, content: [{ type: 'tool_use', id, name: 'Bash', input }] } })
  const content = 'export const part = ' + call + '\\n'.repeat(10)
  print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content }] } })
}
print({ type: 'result', subtype: 'success', is_error: false, result: 'All of them were read.', num_turns: 1 })
`

export async function measureDashboard({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const executablePath = findExecutable('chromium', process.env['PATH'] ?? '')
  if (executablePath === undefined) {
    progress('dashboard: not measured, as chromium is not in PATH')
    return []
  }
  const service = await startBenchService(AGENT)
  try {
    const baseUrl = `http://127.0.0.1:${service.port}`
    const id = await makeConversation(new AetheelClient({ baseUrl, token: service.token }), signal)
    const browser = await chromium.launch({ executablePath, args: ['--disable-dev-shm-usage', '--no-sandbox'] })
    try {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
      await page.goto(`${baseUrl}/#/conversations`)
      await page.getByLabel('Token').fill(service.token)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('list', { name: 'Conversations' }).getByRole('link').first().waitFor()
      const rounds: Shown[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        signal.throwIfAborted()
        rounds.push(await show(page, id))
      }
      await addConversations(service.store)
      const lists: Shown[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        signal.throwIfAborted()
        await page.reload()
        lists.push(await list(page))
      }
      const listedMs = lowerQuartile(lists.map((round) => round.shownMs))
      const listFrameMs = lowerQuartile(lists.map((round) => round.longestFrameMs))
      progress(
        `dashboard: ${LISTED} conversations in ${listedMs.toFixed(0)} ms, longest frame ${listFrameMs.toFixed(0)} ms`,
      )
      const shownMs = lowerQuartile(rounds.map((round) => round.shownMs))
      const frameMs = lowerQuartile(rounds.map((round) => round.longestFrameMs))
      progress(
        `dashboard: ${TOOL_CALLS * 2} events in ${shownMs.toFixed(0)} ms, longest frame ${frameMs.toFixed(0)} ms`,
      )
      return [
        atMost('dashboard.5000-events', shownMs, SHOWN_GOAL_MS, 'ms'),
        atMost('dashboard.5000-events.longest-frame', frameMs, FRAME_GOAL_MS, 'ms'),
        atMost('dashboard.10000-conversations', listedMs, SHOWN_GOAL_MS, 'ms'),
        atMost('dashboard.10000-conversations.longest-frame', listFrameMs, FRAME_GOAL_MS, 'ms'),
      ]
    } finally {
      await browser.close()
    }
  } finally {
    await service.stop()
  }
}

async function makeConversation({ conversations }: AetheelClient, signal: AbortSignal): Promise<string> {
  const { id } = await conversations.create()
  await conversations.send(id, 'Read them all.')
  const deadline = performance.now() + LIMIT_MS
  for (;;) {
    const [entry] = (await conversations.messages(id)).entries
    if (entry?.type === 'message' && entry.state === 'answered') return id
    if (performance.now() > deadline) throw new Error('The agent did not answer')
    await sleep(100, undefined, { signal })
  }
}

interface Shown {
  shownMs: number
  longestFrameMs: number
}

/** From the list to the conversation, with all events of its answer; then back. */
async function show(page: Page, id: string): Promise<Shown> {
  const shown = await measure(
    page,
    `    location.hash = '#/conversations/${id}'
    const summary = await until(() => document.querySelector('.behind > summary'))
    summary.click()
    await until(() => /of \\d{4} · 5.0k events(?!,)/.test(document.querySelector('.past-run')?.textContent))
    shown()`,
  )
  await page.evaluate(`location.hash = '#/conversations'`)
  await page.locator('.transcript').waitFor({ state: 'detached' })
  return shown
}

async function addConversations(store: Store): Promise<void> {
  await store.transaction(async (tables) => {
    for (let number = 1; number <= LISTED; number += 1) {
      await tables.conversations.enter({ channel: 'http', address: `a-${number}` }, randomUUID(), number * 1000)
    }
  })
}

/** Until the first are shown, and then down to the last. */
function list(page: Page): Promise<Shown> {
  return measure(
    page,
    `location.hash = '#/conversations'
    const rows = await until(() => document.querySelector('[aria-label="Conversations"]:has(a)'))
    shown()
    const main = document.querySelector('main')
    await until(() => {
      main.scrollTo(0, 1e9)
      return rows.getBoundingClientRect().height > ${LISTED * ROW_PX - 1}
    })`,
  )
}

/** `steps` runs in the page: `until` waits from frame to frame, and `shown` stops the clock. */
function measure(page: Page, steps: string): Promise<Shown> {
  return page.evaluate<Shown>(`(async () => {
    const startedAt = performance.now()
    let lastFrame = startedAt
    let longestFrameMs = 0
    let shownMs
    const shown = () => (shownMs = performance.now() - startedAt)
    const until = async (look) => {
      for (;;) {
        const seen = look()
        if (seen) return seen
        if (performance.now() - startedAt > ${LIMIT_MS}) throw new Error('Not shown: ' + look)
        await new Promise(requestAnimationFrame)
        const now = performance.now()
        longestFrameMs = Math.max(longestFrameMs, now - lastFrame)
        lastFrame = now
      }
    }
    ${steps}
    return { shownMs, longestFrameMs }
  })()`)
}
