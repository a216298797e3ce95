import { describe, expect, it } from 'vitest'
import type { ActivityEvent, AetheelClient, Conversation } from '../../src/client/aetheel-client.js'
import { LiveStore } from '../../web/src/live.js'
import type { RunEvent } from '../../web/src/run-model.js'

const AT = '2026-11-16T12:00:00.000Z'

function conversationOf(more: Partial<Conversation> = {}): Conversation {
  return {
    id: 'c1',
    channel: 'web',
    address: 'a',
    is_private: false,
    project_id: null,
    title: null,
    title_is_chosen: false,
    is_pinned: false,
    is_archived: false,
    has_failed: false,
    state: 'running',
    open: 1,
    asked: 0,
    question: 'Hello',
    message_id: 'm1',
    waits_until: null,
    run: { id: 'r1', provider: 'claudecode', model: null, started_at: AT },
    last_number: 1,
    created_at: AT,
    updated_at: AT,
    ...more,
  }
}

function output(id: number): RunEvent {
  return { id, at: AT, name: 'output', data: { line: `${id} `, stream: 'stdout' } }
}

const END: RunEvent = { id: 9, at: AT, name: 'complete', data: { status: 'answered', duration_ms: 5 } }

function snapshot(last: number | null, conversation = conversationOf()): ActivityEvent {
  return { name: 'snapshot', data: { conversations: [{ ...conversation, last_event_id: last }] } }
}

function event(told: RunEvent): ActivityEvent {
  return { name: 'event', data: { ...told, conversation_id: 'c1', message_id: 'm1' } }
}

/** A store whose stored events arrive when the test releases them. */
function setup(stored: RunEvent[]) {
  const asked: number[] = []
  let letGo = (): void => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const runEvents = (async (_runId: string, { after = 0 } = {}) => {
    asked.push(after)
    await gate
    return { events: stored.filter(({ id }) => id > after), next: null }
  }) as unknown as AetheelClient['runEvents']
  const store = new LiveStore(
    runEvents,
    () => {},
    () => 1000,
  )
  const text = (): string[] => {
    const blocks = store.state().turns.get('m1')?.model.blocks ?? []
    return blocks.map((block) => ('text' in block ? block.text : ''))
  }
  return {
    store,
    asked,
    text,
    letGo: async () => {
      letGo()
      await expect.poll(() => store.state().turns.get('m1')?.isLoading ?? false).toBe(false)
    },
  }
}

describe('current activity', () => {
  it('is shown in order, even if its beginning arrives after its end', async () => {
    const { store, text, letGo } = setup([output(1), output(2), output(3)])
    store.take(snapshot(2))
    store.take(event(output(3)))
    store.take(event(output(4)))
    const before = text()
    await letGo()
    expect([before, text()]).toEqual([[], ['1 2 3 4 ']])
  })

  it('continues where it was after a lost connection', async () => {
    const { store, asked, text, letGo } = setup([1, 2, 3, 4, 5].map(output))
    store.take(snapshot(0))
    store.take(event(output(1)))
    store.take(event(output(2)))
    store.lost()
    const lost = store.state()
    store.take(snapshot(4))
    store.take(event(output(5)))
    await letGo()
    const { connection, snapshots } = store.state()
    expect([lost.connection, lost.lostAt, connection, snapshots, asked, text()]).toEqual([
      'lost',
      1000,
      'live',
      2,
      [2],
      ['1 2 3 4 5 '],
    ])
  })

  it('forgets runs that ended while disconnected, and keeps those it saw end', () => {
    const { store } = setup([])
    store.take(snapshot(0))
    store.take(event(END))
    store.take({ name: 'conversation', data: conversationOf({ state: 'idle', message_id: null, run: null }) })
    store.take({ name: 'conversation', data: conversationOf({ id: 'c2', message_id: 'm2' }) })
    store.take({ name: 'snapshot', data: { conversations: [] } })
    const { conversations, turns } = store.state()
    expect([[...conversations.keys()], [...turns.keys()]]).toEqual([['c1'], ['m1']])
  })

  it('is bounded, however much happens', () => {
    const { store } = setup([])
    for (let count = 0; count < 1000; count++) {
      const id = `c${count}`
      store.take({ name: 'conversation', data: conversationOf({ id, state: 'idle' }) })
      store.take({ name: 'event', data: { ...END, conversation_id: id, message_id: `m${count}` } })
    }
    const { conversations, turns } = store.state()
    expect([conversations.size, turns.size]).toEqual([200, 20])
  })
})
