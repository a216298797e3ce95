import type { APIChannel, APIMessage, GatewayGuildCreateDispatchData } from 'discord.js'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isAfter, MISSING_ACCESS, snowflakeAt, UNKNOWN_CHANNEL } from '../../../src/channels/discord/api.js'
import { CatchUp } from '../../../src/channels/discord/catch-up.js'
import { Cursor } from '../../../src/channels/discord/cursor.js'
import { Lanes } from '../../../src/core/async.js'
import { recordingLog } from '../../kit/log.js'
import { message, refusal } from './samples.js'

const HOUR_MS = 3_600_000
const NOW = 1_800_000_000_000
/** The cursor, and the minute before it from which messages are fetched. */
const CURSOR = snowflakeAt(NOW - HOUR_MS)
const AWAY_SINCE = snowflakeAt(NOW - HOUR_MS - 60_000)

/** The id of the n-th message after that, or before it if negative. */
const nth = (count: number): string => String(BigInt(AWAY_SINCE) + BigInt(count))

const nths = (count: number): string[] => Array.from({ length: count }, (_, index) => nth(index + 1))

type Said = Record<string, string[]>

interface Setup {
  /** The message ids by channel, oldest first. */
  said: Said
  cursor?: string
  addresses?: string[]
  /** The direct channel of each user. */
  direct?: Record<string, string>
  directUserIds?: string[]
  /** The errors of the first requests about a channel or a user. */
  failures?: Record<string, Error[]>
  onMissed?: (message: APIMessage) => Promise<void>
}

async function setup({ said, cursor: saved = CURSOR, addresses = [], direct = {}, failures = {}, ...more }: Setup) {
  const { directUserIds = Object.keys(direct), onMissed = async () => {} } = more
  const requests: Array<[channelId: string, after: string, limit: number | undefined]> = []
  const missed: Array<[channelId: string, id: string, guildId: string | undefined]> = []
  const asked: number[] = []
  const errors: unknown[] = []
  const log = recordingLog()
  const stopped = new AbortController()
  const values = new Map([
    ['cursor', saved],
    ['first-start', '0'],
  ])
  const host = {
    recall: async (name: string) => values.get(name),
    remember: async (name: string, value: string) => {
      values.set(name, value)
    },
  }
  const cursor = new Cursor(
    host,
    () => NOW,
    () => {},
  )
  await cursor.load()
  onTestFinished(async () => {
    stopped.abort()
    await cursor.close()
  })
  const lanes = new Lanes()
  const catchUp = new CatchUp({
    api: {
      messagesAfter: async (channelId, after, limit) => {
        requests.push([channelId, after, limit])
        const failure = failures[channelId]?.shift()
        if (failure) throw failure
        const later = (said[channelId] ?? []).filter((id) => isAfter(id, after)).slice(0, limit)
        return later.map((id) => message({ id, channel_id: channelId }))
      },
      directChannel: async (userId) => {
        const failure = failures[userId]?.shift()
        if (failure) throw failure
        const id = direct[userId]
        if (id === undefined) throw refusal(50_033)
        return { id, type: 1, last_message_id: said[id]?.at(-1) ?? null } as APIChannel
      },
    },
    host: {
      addresses: async (since) => {
        asked.push(since)
        return addresses
      },
    },
    cursor,
    inLane: (channelId, work) => lanes.run(channelId, work).catch((error: unknown) => void errors.push(error)),
    directUserIds: async () => directUserIds,
    onMissed: async (one, guildId) => {
      await onMissed(one)
      missed.push([one.channel_id, one.id, guildId])
    },
    signal: stopped.signal,
    log,
    now: () => NOW,
  })
  let attempts = 0
  /** Whether the cursor may advance. */
  const isFree = async (): Promise<boolean> => {
    attempts += 1
    const later = String(BigInt(snowflakeAt(NOW)) + BigInt(attempts))
    cursor.begin(later)
    cursor.end(later)
    await cursor.save()
    return values.get('cursor') === later
  }
  return {
    catchUp,
    lanes,
    requests,
    missed,
    asked,
    errors,
    log,
    stopped,
    isFree,
    /** Resolves when everything has been read. */
    done: async () => {
      await expect.poll(isFree, { interval: 10 }).toBe(true)
      await lanes.idle()
    },
    server: (id: string, channels: Said, threads: Said = {}) => {
      const all = (places: Said): unknown[] =>
        Object.entries(places).map(([placeId, ids]) => ({ id: placeId, last_message_id: ids.at(-1) ?? null }))
      catchUp.server({ id, channels: all(channels), threads: all(threads) } as GatewayGuildCreateDispatchData)
    },
  }
}

/** Channels are read in parallel. */
const sorted = <T>(list: T[]): T[] => list.toSorted((a, b) => String(a).localeCompare(String(b)))

describe('what was missed', () => {
  it('is fetched in channels and threads with something newer, and only there', async () => {
    const said = { '10': [nth(1)], '11': [nth(-1)], '12': [], '20': [nth(2)], '21': [nth(-2)] }
    const { catchUp, requests, missed, done } = await setup({ said })
    catchUp.begin(['5'])
    catchUp.server({
      id: '5',
      channels: [
        { id: '10', last_message_id: nth(1) },
        { id: '11', last_message_id: nth(-1) },
        { id: '12', last_message_id: null },
        // A category.
        { id: '13' },
      ],
      threads: [
        { id: '20', last_message_id: nth(2) },
        { id: '21', last_message_id: nth(-2) },
      ],
    } as unknown as GatewayGuildCreateDispatchData)
    await done()
    expect([sorted(requests), sorted(missed)]).toEqual([
      [
        ['10', AWAY_SINCE, 100],
        ['20', AWAY_SINCE, 100],
      ],
      [
        ['10', nth(1), '5'],
        ['20', nth(2), '5'],
      ],
    ])
  })

  it('is not fetched if nothing is newer', async () => {
    const { catchUp, server, requests, done } = await setup({ said: { '10': [nth(0)] } })
    catchUp.begin(['5'])
    server('5', { '10': [nth(0)] })
    await done()
    expect(requests).toEqual([])
  })

  it('comes oldest first, and before new messages', async () => {
    const said = { '10': nths(3) }
    const { catchUp, server, lanes, missed, done } = await setup({ said })
    catchUp.begin(['5'])
    server('5', said)
    void lanes.run('10', async () => {
      missed.push(['10', 'now', '5'])
    })
    await done()
    expect(missed.map(([, id]) => id)).toEqual([...nths(3), 'now'])
  })

  it.each([
    [99, ['0']],
    [100, ['0', '100']],
    [250, ['0', '100', '200']],
  ])('of %i messages is read in pages of 100', async (count, afters) => {
    const said = { '10': nths(count) }
    const { catchUp, server, requests, missed, done } = await setup({ said })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect([requests, missed.map(([, id]) => id)]).toEqual([
      afters.map((after) => ['10', nth(Number(after)), 100]),
      nths(count),
    ])
  })

  it('is not read without end', async () => {
    const said = { '10': nths(1_050) }
    const { catchUp, server, missed, done } = await setup({ said })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect(missed.map(([, id]) => id)).toEqual(nths(1_000))
  })

  it('is not fetched if it is older than a day', async () => {
    const said = { '10': [nth(-1), nth(1)] }
    const { catchUp, server, requests, done } = await setup({ said, cursor: snowflakeAt(NOW - 72 * HOUR_MS) })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect(requests).toEqual([['10', snowflakeAt(NOW - 24 * HOUR_MS), 100]])
  })

  it('is fetched of a server that was unavailable itself', async () => {
    const said = { '10': nths(1) }
    const { server, missed, done } = await setup({ said })
    server('5', said)
    await done()
    expect(missed).toEqual([['10', nth(1), '5']])
  })

  it('continues after a message that could not be handled', async () => {
    const said = { '10': nths(3) }
    const { catchUp, server, missed, done } = await setup({
      said,
      onMissed: async ({ id }) => {
        if (id === nth(2)) throw new Error('No such member')
      },
    })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect(missed.map(([, id]) => id)).toEqual([nth(1), nth(3)])
  })
})

describe('conversations that no server names', () => {
  it('are read: threads that are archived and direct ones, of the last two days', async () => {
    const said = { '20': [nth(1)], '30': [nth(2)], '10': [nth(3)] }
    const { catchUp, server, asked, missed, done } = await setup({ said, addresses: ['10/20', '30', '10'] })
    catchUp.begin(['5'])
    server('5', { '10': [nth(3)] })
    await done()
    expect([asked, sorted(missed)]).toEqual([
      [NOW - 48 * HOUR_MS],
      [
        ['10', nth(3), '5'],
        ['20', nth(1), undefined],
        ['30', nth(2), undefined],
      ],
    ])
  })

  it('are those of the people who may write directly, if there is something new', async () => {
    const said = { '30': [nth(1)], '31': [nth(-1)], '32': [] }
    const { catchUp, requests, missed, done } = await setup({ said, direct: { '1': '30', '2': '31', '3': '32' } })
    catchUp.begin([])
    await done()
    expect([requests, missed]).toEqual([[['30', AWAY_SINCE, 100]], [['30', nth(1), undefined]]])
  })

  it('are read once, even if known in two ways', async () => {
    const said = { '30': nths(2) }
    const { catchUp, missed, done } = await setup({ said, addresses: ['30'], direct: { '1': '30' } })
    catchUp.begin([])
    await done()
    expect(missed.map(([, id]) => id)).toEqual(nths(2))
  })

  it('are read even if somebody cannot be written to', async () => {
    const said = { '20': [nth(1)], '30': [nth(2)] }
    const { catchUp, missed, done } = await setup({
      said,
      addresses: ['10/20'],
      direct: { '1': '30' },
      directUserIds: ['404', '1'],
    })
    catchUp.begin([])
    await done()
    expect(sorted(missed)).toEqual([
      ['20', nth(1), undefined],
      ['30', nth(2), undefined],
    ])
  })

  it('are read even if the network fails while they are listed', async () => {
    const said = { '20': [nth(1)], '30': [nth(2)] }
    const { catchUp, missed, done } = await setup({
      said,
      addresses: ['10/20'],
      direct: { '1': '30' },
      failures: { '1': [new Error('socket hang up')] },
    })
    catchUp.begin([])
    await done()
    expect(sorted(missed)).toEqual([
      ['20', nth(1), undefined],
      ['30', nth(2), undefined],
    ])
  })

  it('are read once all servers have appeared, not before', async () => {
    const { catchUp, server, asked, done } = await setup({ said: {} })
    catchUp.begin(['5', '6'])
    server('5', {})
    await new Promise(setImmediate)
    const before = asked.length
    server('6', {})
    await done()
    expect([before, asked.length]).toEqual([0, 1])
  })
})

describe('a server that does not appear', () => {
  it('keeps the others waiting for 15 seconds', async () => {
    const { catchUp, asked, isFree } = await setup({ said: {} })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    catchUp.begin(['5'])
    await vi.advanceTimersByTimeAsync(14_999)
    const before = [asked.length, await isFree()]
    await vi.advanceTimersByTimeAsync(1)
    expect([before, asked.length, await isFree()]).toEqual([[0, false], 1, true])
  })

  it('until later is fetched since we were away', async () => {
    const said = { '10': nths(2) }
    const { catchUp, server, missed, isFree, lanes } = await setup({ said })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    catchUp.begin(['5'])
    await vi.advanceTimersByTimeAsync(15_000)
    const hasGoneOn = await isFree()
    server('5', said)
    await lanes.idle()
    expect([hasGoneOn, missed.map(([, id]) => id)]).toEqual([true, nths(2)])
  })

  it('until later is fetched since we were away, even if another session has begun since', async () => {
    const said = { '10': nths(2) }
    const { catchUp, server, missed, isFree, lanes } = await setup({ said })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    catchUp.begin(['5'])
    await vi.advanceTimersByTimeAsync(15_000)
    const hasGoneOn = await isFree()
    catchUp.begin(['5'])
    server('5', said)
    await lanes.idle()
    expect([hasGoneOn, missed.map(([, id]) => id)]).toEqual([true, nths(2)])
  })

  it('is no longer waited for when a new session begins', async () => {
    const said = { '10': nths(1) }
    const { catchUp, server, missed, done } = await setup({ said })
    catchUp.begin(['5', '6'])
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect(missed).toEqual([['10', nth(1), '5']])
  })
})

describe('a channel that cannot be read', () => {
  it('is fetched again after a network failure, without a gap', async () => {
    const said = { '10': nths(150) }
    const { catchUp, server, requests, missed, log, done } = await setup({
      said,
      failures: { '10': [new Error('socket hang up')] },
    })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    expect([requests, missed.map(([, id]) => id), log.logged[0]]).toEqual([
      [
        ['10', AWAY_SINCE, 100],
        ['10', AWAY_SINCE, 100],
        ['10', nth(100), 100],
      ],
      nths(150),
      ['warn', 'discord.not-reached', { error: 'socket hang up' }],
    ])
  })

  it('is fetched again if Discord temporarily rejects our token', async () => {
    const said = { '10': nths(1), '30': nths(2) }
    const failures = { '10': [refusal(0, 401)], '1': [refusal(0, 401)], '30': [refusal(0, 401)] }
    const { catchUp, server, missed, done } = await setup({ said, failures, direct: { '1': '30' } })
    catchUp.begin(['5'])
    server('5', { '10': nths(1) })
    await done()
    expect(sorted(missed)).toEqual([
      ['10', nth(1), '5'],
      ['30', nth(1), undefined],
      ['30', nth(2), undefined],
    ])
  })

  it.each([
    ['gone', UNKNOWN_CHANNEL, 404],
    ['closed to us', MISSING_ACCESS, 403],
  ])('because it is %s is skipped with a log entry, and the others are read', async (_, code, status) => {
    const said = { '10': nths(1), '11': nths(1) }
    const failures = { '10': [refusal(code, status)] }
    const { catchUp, server, requests, missed, errors, log, done } = await setup({ said, failures })
    catchUp.begin(['5'])
    server('5', said)
    await done()
    const refused = log.logged.filter(([, text]) => text === 'discord.refused')
    expect([requests.length, missed, errors, refused]).toEqual([
      2,
      [['11', nth(1), '5']],
      [],
      [['info', 'discord.refused', { code, error: `Refused with ${code}` }]],
    ])
  })

  it('is not fetched again when the channel stops', async () => {
    const failures = { '10': Array.from({ length: 9 }, () => new Error('socket hang up')) }
    const { catchUp, server, requests, stopped, lanes, isFree } = await setup({ said: {}, failures })
    catchUp.begin(['5'])
    server('5', { '10': nths(1) })
    await expect.poll(() => requests.length).toBe(1)
    stopped.abort()
    await lanes.idle()
    // Its messages are fetched at the next start.
    expect([requests.length, await isFree()]).toEqual([1, false])
  })

  it('because the channel stops while conversations are listed keeps the cursor', async () => {
    const failures = { '1': Array.from({ length: 9 }, () => new Error('socket hang up')) }
    const { catchUp, log, stopped, isFree } = await setup({ said: { '30': nths(1) }, failures, direct: { '1': '30' } })
    catchUp.begin([])
    await expect.poll(() => log.logged.length).toBe(1)
    stopped.abort()
    await new Promise(setImmediate)
    expect(await isFree()).toBe(false)
  })
})

it('the cursor does not move until everything was fetched and handled', async () => {
  const said = { '10': nths(2) }
  const gates: Array<() => void> = []
  const { catchUp, server, isFree, done } = await setup({
    said,
    onMissed: () => new Promise((resolve) => gates.push(resolve)),
  })
  catchUp.begin(['5'])
  const states = [await isFree()]
  server('5', said)
  for (const count of [1, 2]) {
    await expect.poll(() => gates.length).toBe(count)
    states.push(await isFree())
    gates.at(-1)?.()
  }
  await done()
  expect([states, await isFree()]).toEqual([[false, false, false], true])
})
