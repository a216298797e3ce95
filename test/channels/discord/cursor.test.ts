import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Cursor } from '../../../src/channels/discord/cursor.js'
import { snowflakeAt } from '../../../src/channels/discord/api.js'

const NOW = 1_800_000_000_000

const MINUTE = 60_000n << 22n

/** `recalled` is what an earlier gateway stored. */
function setup(recalled?: string, firstStart = '0') {
  const values = new Map(
    recalled === undefined
      ? []
      : [
          ['cursor', recalled],
          ['first-start', firstStart],
        ],
  )
  const errors: unknown[] = []
  const database = { isAway: false, writes: 0 }
  const host = {
    recall: async (name: string) => values.get(name),
    remember: async (name: string, value: string) => {
      if (database.isAway) throw new Error('The database is away')
      database.writes += 1
      values.set(name, value)
    },
  }
  const cursor = new Cursor(
    host,
    () => NOW,
    (error) => {
      errors.push(error)
    },
  )
  return { cursor, errors, database, saved: () => values.get('cursor') }
}

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('the cursor', () => {
  it('begins now on the very first start, which is stored', async () => {
    const { cursor, saved } = setup()
    await cursor.load()
    const now = snowflakeAt(NOW)
    expect([cursor.after, saved()]).toEqual([now, now])
  })

  it('continues from where it was, a minute earlier', async () => {
    const { cursor, saved } = setup(snowflakeAt(NOW))
    await cursor.load()
    expect([cursor.after, saved()]).toEqual([snowflakeAt(NOW - 60_000), snowflakeAt(NOW)])
  })

  it('never goes back before the very first start', async () => {
    const firstStart = snowflakeAt(NOW - 1_000)
    const { cursor } = setup(snowflakeAt(NOW), firstStart)
    await cursor.load()
    expect(cursor.after).toBe(firstStart)
  })

  it('knows the very first start after a restart', async () => {
    const values = new Map<string, string>()
    const host = {
      recall: async (name: string) => values.get(name),
      remember: async (name: string, value: string) => {
        values.set(name, value)
      },
    }
    const first = new Cursor(
      host,
      () => NOW,
      () => {},
    )
    await first.load()
    const later = snowflakeAt(NOW + 1_000)
    first.begin(later)
    first.end(later)
    await first.close()
    const second = new Cursor(
      host,
      () => NOW + 2_000,
      () => {},
    )
    await second.load()
    await second.close()
    expect([values.get('cursor'), second.after]).toEqual([later, snowflakeAt(NOW)])
  })

  it('is a minute before what was handled', async () => {
    const { cursor } = setup('0')
    await cursor.load()
    const id = String(MINUTE * 3n)
    cursor.begin(id)
    cursor.end(id)
    await cursor.save()
    expect(cursor.after).toBe(String(MINUTE * 2n))
  })

  it('advances to what was handled', async () => {
    const { cursor, saved } = setup('500')
    await cursor.load()
    cursor.begin('600')
    cursor.end('600')
    await cursor.save()
    expect(saved()).toBe('600')
  })

  it('stays before the first message still being handled, even if later ones are done', async () => {
    const { cursor, saved } = setup('500')
    await cursor.load()
    for (const id of ['600', '700', '800']) cursor.begin(id)
    cursor.end('600')
    cursor.end('800')
    await cursor.save()
    const before = saved()
    cursor.end('700')
    await cursor.save()
    expect([before, saved()]).toEqual(['699', '800'])
  })

  it('does not go back for one that comes late', async () => {
    const { cursor, saved } = setup('500')
    await cursor.load()
    cursor.begin('400')
    await cursor.save()
    expect(saved()).toBe('500')
  })

  it('stays while it is held, and each hold is released once', async () => {
    const { cursor, saved } = setup('500')
    await cursor.load()
    const [one, two] = [cursor.hold(), cursor.hold()]
    cursor.begin('600')
    cursor.end('600')
    one()
    one()
    await cursor.save()
    const held = saved()
    two()
    await cursor.save()
    expect([held, saved()]).toEqual(['500', '600'])
  })

  it('is saved now and then, and only if it has moved', async () => {
    const { cursor, saved, database } = setup('500')
    await cursor.load()
    onTestFinished(() => cursor.close())
    cursor.begin('600')
    cursor.end('600')
    await vi.advanceTimersByTimeAsync(4_999)
    const early = saved()
    await vi.advanceTimersByTimeAsync(1)
    const later = saved()
    await vi.advanceTimersByTimeAsync(60_000)
    expect([early, later, database.writes]).toEqual(['500', '600', 1])
  })

  it('reports that it could not be saved, and retries', async () => {
    const { cursor, saved, errors, database } = setup('500')
    await cursor.load()
    onTestFinished(() => cursor.close())
    cursor.begin('600')
    cursor.end('600')
    database.isAway = true
    await vi.advanceTimersByTimeAsync(5_000)
    const whileAway = saved()
    database.isAway = false
    await vi.advanceTimersByTimeAsync(5_000)
    expect([whileAway, errors, saved()]).toEqual(['500', [new Error('The database is away')], '600'])
  })

  it('is saved when it is closed, and no more after that', async () => {
    const { cursor, saved } = setup('500')
    await cursor.load()
    cursor.begin('600')
    cursor.end('600')
    await cursor.close()
    const closed = saved()
    cursor.begin('700')
    cursor.end('700')
    await vi.advanceTimersByTimeAsync(60_000)
    expect([closed, saved(), vi.getTimerCount()]).toEqual(['600', '600', 0])
  })

  it('leaves no timer behind when it cannot be loaded', async () => {
    const { cursor, database } = setup()
    database.isAway = true
    const failure = await cursor.load().catch(String)
    expect([failure, vi.getTimerCount()]).toEqual(['Error: The database is away', 0])
  })

  it('never passes what is open nor moves while it is held, in any order of events', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), async (steps) => {
        const { cursor, saved, errors, database } = setup('50')
        await cursor.load()
        const open = new Set<number>()
        const holds: Array<() => void> = []
        let highest = 50
        let failures = 0
        for (const step of steps) {
          const before = Number(saved())
          if (step.kind === 'begin') {
            open.add(step.id)
            highest = Math.max(highest, step.id)
            cursor.begin(String(step.id))
          } else if (step.kind === 'end') {
            open.delete(step.id)
            cursor.end(String(step.id))
          } else if (step.kind === 'hold') holds.push(cursor.hold())
          else if (step.kind === 'release') holds.shift()?.()
          else {
            database.isAway = step.fails
            const couldMove = holds.length === 0 && Math.min(highest, ...[...open].map((id) => id - 1)) > before
            if (couldMove && step.fails) failures += 1
            await cursor.save()
          }
          const after = Number(saved())
          const isMoved = after !== before
          const isAllowed = after > before && holds.length === 0 && [...open].every((id) => id > after)
          expect(isMoved && !isAllowed).toBe(false)
        }
        database.isAway = false
        for (const release of holds) release()
        for (const id of open) cursor.end(String(id))
        await cursor.close()
        expect([Number(saved()), errors.length]).toEqual([highest, failures])
      }),
      { numRuns: 300 },
    )
  })
})

type Step =
  | { kind: 'begin'; id: number }
  | { kind: 'end'; id: number }
  | { kind: 'hold' }
  | { kind: 'release' }
  | { kind: 'save'; fails: boolean }

/** So few that ids that begin often end too, and some are older than the cursor. */
const anyMessageId = fc.integer({ min: 45, max: 75 })
const anyStep = fc.oneof<Array<fc.MaybeWeightedArbitrary<Step>>>(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('begin'), id: anyMessageId }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end'), id: anyMessageId }) },
  { weight: 1, arbitrary: fc.constantFrom<Step[]>({ kind: 'hold' }, { kind: 'release' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('save'), fails: fc.boolean() }) },
)
