import { describe, expect, it } from 'vitest'
import { SessionManager } from '../../src/runtime/session-manager.js'
import type { Session } from '../../src/store/sessions.js'
import { openStore } from '../../src/store/store.js'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { SILENT_LOG } from '../kit/log.js'

const HOUR_MS = 3_600_000

const session: Session = { conversationId: 'thread-1', backend: 'claude', sessionId: 's1', directory: '/projects/here' }

async function setup(idleMs = HOUR_MS) {
  const store = await openTestStore({ file: ':memory:' })
  const clock = { now: 1_000 }
  return { clock, sessions: new SessionManager(store.sessions, { idleMs, now: () => clock.now }) }
}

describe('SessionManager', () => {
  it('keeps one session per conversation', async () => {
    const { sessions } = await setup()
    await sessions.set(session)
    await sessions.set({ ...session, conversationId: 'thread-2', sessionId: 's2' })
    await sessions.set({ ...session, sessionId: 's3' })
    const times = { usedAt: 1_000 }
    expect([await sessions.get('thread-1', 'claude'), await sessions.get('thread-2', 'claude')]).toEqual([
      { ...session, sessionId: 's3', ...times },
      { ...session, conversationId: 'thread-2', sessionId: 's2', ...times },
    ])
  })

  it.each([
    [HOUR_MS, HOUR_MS - 1, 's1'],
    [HOUR_MS, HOUR_MS, undefined],
    [0, 1_000_000 * HOUR_MS, 's1'],
  ])('with a limit of %i ms, finds after %i ms of silence: %s', async (idleMs, silenceMs, found) => {
    const { clock, sessions } = await setup(idleMs)
    await sessions.set(session)
    clock.now += silenceMs
    expect((await sessions.get('thread-1', 'claude'))?.sessionId).toEqual(found)
  })

  it('counts the silence from the last use', async () => {
    const { clock, sessions } = await setup()
    await sessions.set(session)
    clock.now += HOUR_MS - 1
    await sessions.set(session)
    clock.now += HOUR_MS - 1
    expect((await sessions.get('thread-1', 'claude'))?.sessionId).toEqual('s1')
  })

  it('can be asked with another limit', async () => {
    const { clock, sessions } = await setup()
    await sessions.set(session)
    clock.now += 10
    expect((await sessions.get('thread-1', 'claude', 10))?.sessionId).toBeUndefined()
  })

  it("keeps the time of a session's last use, if given", async () => {
    const { sessions } = await setup()
    await sessions.set({ ...session, usedAt: 7 })
    expect((await sessions.get('thread-1', 'claude'))?.usedAt).toBe(7)
  })

  it('lets go of nothing when it is only looked at', async () => {
    const { clock, sessions } = await setup()
    await sessions.set(session)
    clock.now += 10
    expect([
      await sessions.peek('thread-1', 'claude', 10),
      await sessions.peek('thread-1', 'codex'),
      (await sessions.peek('thread-1', 'claude'))?.sessionId,
    ]).toEqual([undefined, undefined, 's1'])
  })

  it('does not offer the session of one agent to another, and not again to the first one either', async () => {
    const { sessions } = await setup()
    await sessions.set(session)
    expect([await sessions.get('thread-1', 'codex'), await sessions.get('thread-1', 'claude')]).toEqual([
      undefined,
      undefined,
    ])
  })

  it('forgets a session on demand, and says whether there was one', async () => {
    const { sessions } = await setup()
    await sessions.set(session)
    expect([
      await sessions.reset('thread-1'),
      await sessions.get('thread-1', 'claude'),
      await sessions.reset('thread-1'),
    ]).toEqual([true, undefined, false])
  })
})

describeEngines('A session', ({ createLocation }) => {
  it('is there after a restart', async () => {
    const location = await createLocation()
    const before = await openStore(location, SILENT_LOG)
    await new SessionManager(before.sessions, { idleMs: HOUR_MS, now: () => 1_000 }).set(session)
    await before.close()
    const after = await openTestStore(location)
    const sessions = new SessionManager(after.sessions, { idleMs: HOUR_MS, now: () => 2_000 })
    expect(await sessions.get('thread-1', 'claude')).toEqual({ ...session, usedAt: 1_000 })
  })
})
