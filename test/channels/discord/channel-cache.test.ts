import { type APIChannel, ChannelType } from 'discord.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  hasThreads,
  isThread,
  placeOf,
  ChannelCache,
  readAddress,
  threadAddress,
} from '../../../src/channels/discord/destinations.js'
import { isAfter, snowflakeAt } from '../../../src/channels/discord/api.js'

const RUNS = { numRuns: 300 }

/** A payload with only the fields that are read. */
const channel = (facts: Record<string, unknown>): APIChannel => facts as unknown as APIChannel

/** `known` are the channels the API returns. */
function setup(...known: APIChannel[]) {
  const asked: string[] = []
  const channels = new ChannelCache({
    channel: async (id) => {
      asked.push(id)
      const found = known.find((one) => one.id === id)
      if (!found) throw new Error(`There is no channel ${id}`)
      return found
    },
  })
  return { channels, asked }
}

describe('channels', () => {
  it('are known from the gateway, which names the server once for all of them', async () => {
    const { channels, asked } = setup()
    channels.learn(channel({ id: '10', type: ChannelType.GuildText, parent_id: '3' }), '5')
    channels.learn(channel({ id: '20', type: ChannelType.PublicThread, parent_id: '10', owner_id: '900' }), '5')
    channels.learn(channel({ id: '30', type: ChannelType.DM }))
    expect([await channels.get('10'), await channels.get('20'), await channels.get('30'), asked]).toEqual([
      // The parent of a channel is a category.
      { id: '10', type: ChannelType.GuildText, guildId: '5' },
      { id: '20', type: ChannelType.PublicThread, guildId: '5', parentId: '10', ownerId: '900' },
      { id: '30', type: ChannelType.DM },
      [],
    ])
  })

  it('are fetched once if unknown', async () => {
    const { channels, asked } = setup(
      channel({ id: '20', type: ChannelType.PrivateThread, parent_id: '10', guild_id: '5' }),
    )
    const facts = { id: '20', type: ChannelType.PrivateThread, guildId: '5', parentId: '10' }
    expect([await channels.get('20'), await channels.get('20'), asked]).toEqual([facts, facts, ['20']])
  })

  it('are in the server of the message if the API does not say it', async () => {
    const { channels } = setup(channel({ id: '10', type: ChannelType.GuildText }))
    expect(await channels.get('10', '5')).toEqual({ id: '10', type: ChannelType.GuildText, guildId: '5' })
  })

  it('are fetched again if they were forgotten or could not be fetched', async () => {
    const { channels, asked } = setup(channel({ id: '10', type: ChannelType.GuildText }))
    await channels.get('10')
    channels.forget('10')
    await channels.get('10')
    const failures = [await channels.get('11').catch(String), await channels.get('11').catch(String)]
    expect([asked, failures]).toEqual([
      ['10', '10', '11', '11'],
      ['Error: There is no channel 11', 'Error: There is no channel 11'],
    ])
  })
})

describe('kinds of channels', () => {
  it.each<[ChannelType, boolean, boolean]>([
    [ChannelType.GuildText, false, true],
    [ChannelType.GuildAnnouncement, false, true],
    [ChannelType.GuildVoice, false, false],
    [ChannelType.GuildForum, false, false],
    [ChannelType.DM, false, false],
    [ChannelType.PublicThread, true, false],
    [ChannelType.PrivateThread, true, false],
    [ChannelType.AnnouncementThread, true, false],
  ])('%i: a thread %s, has threads %s', (type, thread, threads) => {
    expect([isThread(type), hasThreads(type)]).toEqual([thread, threads])
  })
})

describe('addresses', () => {
  it('of a thread name its channel, and can be read again', () => {
    fc.assert(
      fc.property(anyId, anyId, (channelId, threadId) => {
        expect([readAddress(threadAddress(channelId, threadId)), readAddress(channelId)]).toEqual([
          { channelId, threadId },
          { channelId },
        ])
      }),
      RUNS,
    )
  })

  it('come with the channel of a thread and the project of that channel', () => {
    const projectOf = (id: string) => (id === '10' ? 'site' : undefined)
    const channels = [
      { id: '20', type: ChannelType.PublicThread, guildId: '5', parentId: '10' },
      { id: '10', type: ChannelType.GuildText, guildId: '5' },
      { id: '11', type: ChannelType.GuildText, guildId: '5' },
    ]
    expect(channels.map((facts) => placeOf(facts, projectOf))).toEqual([
      { address: '10/20', parent: '10', projectId: 'site' },
      { address: '10', projectId: 'site' },
      { address: '11' },
    ])
  })
})

describe('snowflakes', () => {
  it('begin where Discord says', () => {
    // The example from Discord's reference.
    expect([snowflakeAt(1_462_015_105_796), snowflakeAt(0), snowflakeAt(1_420_070_400_000)]).toEqual([
      '175928847298985984',
      '0',
      '0',
    ])
  })

  it('are the smallest of their moment, and grow with time', () => {
    fc.assert(
      fc.property(
        anyTime,
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.bigInt(0n, 2n ** 22n - 1n),
        (time, later, rest) => {
          const id = String(BigInt(snowflakeAt(time)) + rest)
          expect([isAfter(snowflakeAt(time + later), id), isAfter(snowflakeAt(time), id), isAfter(id, id)]).toEqual([
            true,
            false,
            false,
          ])
        },
      ),
      RUNS,
    )
  })

  it('are compared as numbers: a longer one is later', () => {
    expect([isAfter('1000', '999'), isAfter('999', '1000')]).toEqual([true, false])
  })
})

const anyId = fc.bigInt(1n, 2n ** 63n).map(String)
const anyTime = fc.integer({ min: 1_420_070_400_000, max: 3_000_000_000_000 })
