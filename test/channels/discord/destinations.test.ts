import type { APIMessage, APIThreadChannel, RESTPostAPIChannelMessageJSONBody } from 'discord.js'
import { describe, expect, it } from 'vitest'
import {
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  THREAD_ARCHIVED,
  THREAD_EXISTS,
  UNKNOWN_CHANNEL,
  UNKNOWN_MESSAGE,
} from '../../../src/channels/discord/api.js'
import { Destinations } from '../../../src/channels/discord/destinations.js'
import { recordingLog } from '../../kit/log.js'
import { message, refusal } from './samples.js'

const POST = { message: { content: 'Done', nonce: 'n', enforce_nonce: true } }
const REFERENCE = { message_reference: { message_id: '20', fail_if_not_exists: false } }

/** Discord's threads. `calls` lists the requests in order. */
function setup() {
  const calls: unknown[] = []
  const log = recordingLog()
  /** The threads that exist. */
  const threads = new Set<string>()
  const discord = {
    /** The error for posting in an existing thread. */
    refusesPostsWith: undefined as number | undefined,
    opens: async (): Promise<void> => {},
  }
  const destinations = new Destinations(
    {
      post: async (channelId, body, options): Promise<APIMessage> => {
        const hasMore = options?.signal !== undefined || (options?.files ?? []).length > 0
        calls.push(['post', channelId, body, ...(hasMore ? [options] : [])])
        if (channelId !== '10' && !threads.has(channelId)) throw refusal(UNKNOWN_CHANNEL, 404)
        if (channelId !== '10' && discord.refusesPostsWith !== undefined) throw refusal(discord.refusesPostsWith, 403)
        return message({ channel_id: channelId, content: contentOf(body) })
      },
      openThread: async (channelId, messageId, name): Promise<APIThreadChannel> => {
        calls.push(['open', channelId, messageId, name])
        await discord.opens()
        threads.add(messageId)
        return { id: messageId } as APIThreadChannel
      },
    },
    log,
  )
  return { destinations, calls, log, threads, discord }
}

const contentOf = ({ content }: RESTPostAPIChannelMessageJSONBody): string => content ?? ''

describe('a thread', () => {
  it('is opened once, and posts wait for it meanwhile', async () => {
    const { destinations, calls, discord } = setup()
    let go = (): void => {}
    discord.opens = () => new Promise((resolve) => (go = resolve))
    const opened = destinations.open('10/20', 'Fix it')
    const posted = destinations.post('10/20', POST)
    const where = destinations.channelId('10/20')
    await new Promise(setImmediate)
    const before = [...calls]
    go()
    await opened
    expect([before, (await posted).channel_id, await where, calls]).toEqual([
      [['open', '10', '20', 'Fix it']],
      '20',
      '20',
      [
        ['open', '10', '20', 'Fix it'],
        ['post', '20', POST.message],
      ],
    ])
  })

  it('that exists already is used silently', async () => {
    const { destinations, threads, discord, log } = setup()
    threads.add('20')
    discord.opens = async () => {
      throw refusal(THREAD_EXISTS)
    }
    await destinations.open('10/20', 'Fix it')
    expect([(await destinations.post('10/20', POST)).channel_id, log.logged]).toEqual(['20', []])
  })

  it('that was never opened is opened by the first post', async () => {
    const { destinations, calls } = setup()
    const { channel_id } = await destinations.post('10/20', POST)
    expect([channel_id, calls]).toEqual([
      '20',
      [
        ['post', '20', POST.message],
        ['open', '10', '20', 'Conversation'],
        ['post', '20', POST.message],
      ],
    ])
  })

  it('is not opened for an address without one', async () => {
    const { destinations, calls } = setup()
    await destinations.open('10', 'Fix it')
    const { channel_id } = await destinations.post('10', POST)
    expect([channel_id, await destinations.channelId('10'), calls]).toEqual([
      '10',
      '10',
      [['post', '10', POST.message]],
    ])
  })
})

describe('a thread that cannot be used', () => {
  it('is not opened again and again; posts go to its channel, as replies to the message', async () => {
    const { destinations, calls, discord, log } = setup()
    discord.opens = async () => {
      throw refusal(MISSING_PERMISSIONS, 403)
    }
    await destinations.open('10/20', 'Fix it')
    await destinations.post('10/20', POST)
    const first = calls.splice(0)
    await destinations.post('10/20', POST)
    const failed = [
      'warn',
      'discord.thread-not-opened',
      { channelId: '10', error: `Refused with ${MISSING_PERMISSIONS}` },
    ]
    expect([first, calls, await destinations.channelId('10/20'), log.logged]).toEqual([
      [
        ['open', '10', '20', 'Fix it'],
        ['post', '20', POST.message],
        ['open', '10', '20', 'Conversation'],
        ['post', '20', POST.message],
        ['post', '10', { ...POST.message, ...REFERENCE }],
      ],
      [['post', '10', { ...POST.message, ...REFERENCE }]],
      '10',
      [failed, failed, ['warn', 'discord.thread-unusable', { threadId: '20', code: UNKNOWN_CHANNEL }]],
    ])
  })

  it('because the message is gone leaves the channel, too', async () => {
    const { destinations, discord } = setup()
    discord.opens = async () => {
      throw refusal(UNKNOWN_MESSAGE, 404)
    }
    expect((await destinations.post('10/20', POST)).channel_id).toBe('10')
  })

  it.each([
    ['is archived', THREAD_ARCHIVED],
    ['may not be seen', MISSING_ACCESS],
    ['may not be written to', MISSING_PERMISSIONS],
  ])('because it %s leaves the channel, and the other threads are used still', async (_, code) => {
    const { destinations, calls, threads, discord } = setup()
    threads.add('20').add('21')
    discord.refusesPostsWith = code
    const { channel_id } = await destinations.post('10/20', POST)
    discord.refusesPostsWith = undefined
    const other = await destinations.post('10/21', POST)
    expect([channel_id, other.channel_id, calls]).toEqual([
      '10',
      '21',
      [
        ['post', '20', POST.message],
        ['post', '10', { ...POST.message, ...REFERENCE }],
        ['post', '21', POST.message],
      ],
    ])
  })

  it('is not given up after a temporary failure to open it: the post fails, and the next one opens it', async () => {
    const { destinations, calls, discord } = setup()
    discord.opens = async () => {
      throw new Error('socket hang up')
    }
    const opened = await destinations.open('10/20', 'Fix it')
    const failure = await destinations.post('10/20', POST).catch(String)
    discord.opens = async () => {}
    const { channel_id } = await destinations.post('10/20', POST)
    expect([opened, failure, channel_id, calls.filter((call) => (call as string[])[1] === '10').length]).toEqual([
      'failed',
      expect.stringContaining(`Refused with ${UNKNOWN_CHANNEL}`),
      '20',
      // Only the request to open it.
      3,
    ])
  })

  it('is not given up for a temporary failure: only the post fails', async () => {
    const { destinations, threads, discord } = setup()
    threads.add('20')
    discord.refusesPostsWith = 50_035
    const failure = await destinations.post('10/20', POST).catch(String)
    discord.refusesPostsWith = undefined
    const { channel_id } = await destinations.post('10/20', POST)
    expect([failure, channel_id]).toEqual([expect.stringContaining('Refused with 50035'), '20'])
  })
})

it('files and the signal go with a post, wherever it goes', async () => {
  const { destinations, calls, discord } = setup()
  discord.opens = async () => {
    throw refusal(MISSING_PERMISSIONS, 403)
  }
  const files = [{ name: 'a.txt', data: 'a' }]
  const { signal } = new AbortController()
  await destinations.post('10/20', { ...POST, files, signal })
  expect(calls.at(-1)).toEqual(['post', '10', { ...POST.message, ...REFERENCE }, { files, signal }])
})
