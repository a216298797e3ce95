import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { APIAttachment, APIMessage, RawFile, RESTPostAPIChannelMessageJSONBody } from 'discord.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSnowflake, snowflakeAt, UNKNOWN_CHANNEL } from '../../../src/channels/discord/api.js'
import { Destinations } from '../../../src/channels/discord/destinations.js'
import {
  countPosted,
  MESSAGE_CHARACTERS,
  nonceOf,
  type Part,
  partsOf as partsWith,
  PostedParts,
  postReply,
} from '../../../src/channels/discord/outgoing.js'
import type { ChannelHost, OutgoingReply } from '../../../src/channels/types.js'
import { openOutgoing } from '../../../src/media/outgoing-files.js'
import { recordingLog } from '../../kit/log.js'
import { BOT_ID, message, refusal, user } from './samples.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

const RUNS = { numRuns: 200 }
const CREATED_AT = 1_800_000_000_000
const REQUEST_TOO_LARGE = 40_005
/** When Discord no longer knows a nonce. */
const LATER = CREATED_AT + 180_000

function replyOf(more: Partial<OutgoingReply> = {}): OutgoingReply {
  return {
    text: 'Done',
    notes: [],
    isError: false,
    idempotencyKey: 'key',
    address: '10/20',
    messageId: 'm1',
    platformId: '20',
    createdAt: CREATED_AT,
    attempt: 1,
    ...more,
  }
}

const HOST: Pick<ChannelHost, 'openFile'> = {
  openFile: (file, maxBytes, signal) => openOutgoing(file, { roots: [], denied: [] }, maxBytes, signal),
}

const partsOf = (reply: OutgoingReply, host = HOST): Promise<Part[]> =>
  partsWith(reply, host, new AbortController().signal)

const contentsOf = async (more: Partial<OutgoingReply>): Promise<string[]> =>
  (await partsOf(replyOf(more))).map(({ content }) => content)

/** More than 20 messages' worth. */
const LONG = Array.from(
  { length: 1_000 },
  (_, index) => `Line ${index} of a very long answer, which goes on and on.`,
).join('\n\n')

function makeDirectory(files: Record<string, string | Buffer> = {}): string {
  const directory = temporaryDirectory()
  mkdirSync(join(directory, 'work'))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, 'work', name), content)
  return join(directory, 'work')
}

describe('the parts of an answer', () => {
  it.each<[title: string, reply: Partial<OutgoingReply>, contents: string[]]>([
    ['its text', { text: 'Hello **you**' }, ['Hello **you**']],
    ['its text, then the notes, small', { notes: ['One.', 'Two.'] }, ['Done\n\n-# One.\n\n-# Two.']],
    ['an error, marked as one', { text: 'It failed.', isError: true }, ['⚠️ It failed.']],
    ['a note alone when there is no text', { text: ' \n', notes: ['One.'] }, ['-# One.']],
    ['that there is nothing', { text: '\n' }, ['-# The agent answered without text.']],
    [
      'when it goes on, in the time of the reader',
      { text: 'I wait.', isError: true, waitsUntil: 1_800_000_000_001 },
      ['⚠️ I wait.\n\n-# That is <t:1800000001:t> your time, <t:1800000001:R>.'],
    ],
  ])('are %s', async (_, reply, contents) => {
    expect(await partsOf(replyOf(reply))).toEqual(contents.map((content) => ({ content, files: [] })))
  })

  it('are as many as it takes, each of a length that Discord takes', async () => {
    const text = LONG.slice(0, 10_000)
    const contents = await contentsOf({ text })
    const joined = contents.join('\n\n').replaceAll(/\s+/g, ' ')
    expect([
      contents.length > 5 && contents.length < 10,
      contents.every(({ length }) => length > 0 && length <= MESSAGE_CHARACTERS),
      joined,
    ]).toEqual([true, true, text.replaceAll(/\s+/g, ' ').trim()])
  })

  it('are the beginning and a file when they would be more than twenty', async () => {
    const parts = await partsOf(replyOf({ text: LONG }))
    const [first] = parts
    expect([parts.length, first?.content.length ?? 0, first?.files]).toEqual([
      1,
      expect.toSatisfy((length: number) => length > 1_000 && length <= MESSAGE_CHARACTERS),
      [{ name: 'answer.md', data: LONG }],
    ])
    expect(first?.content).toMatch(/^Line 0 .*\n-# … The full answer is in answer\.md\.$/s)
  })

  it('keep the notes when the answer goes as a file', async () => {
    const contents = await contentsOf({ text: LONG, notes: ['The session was lost.'] })
    expect(contents.filter((content) => content.includes('-# The session was lost.')).length).toBe(1)
  })

  it('keep the notes out of code that the agent did not close', async () => {
    const [content = ''] = await contentsOf({ text: 'Look:\n```js\nconst a = 1', notes: ['One.'] })
    expect(content).toMatch(/\n```\n+-# One\.$/)
  })

  it('have the files with the last of them', async () => {
    const directory = makeDirectory({ 'a.txt': 'A', 'b.txt': 'B' })
    const files = [
      { path: 'a.txt', directory },
      { path: join(directory, 'b.txt'), directory },
    ]
    const parts = await partsOf(replyOf({ text: LONG.slice(0, 3_000), files }))
    expect(parts.map((part) => part.files)).toEqual([
      [],
      [
        { name: 'a.txt', data: Buffer.from('A') },
        { name: 'b.txt', data: Buffer.from('B') },
      ],
    ])
  })

  it('may be only files', async () => {
    const directory = makeDirectory({ 'a.txt': 'A' })
    expect(await partsOf(replyOf({ text: '', files: [{ path: 'a.txt', directory }] }))).toEqual([
      { content: '', files: [{ name: 'a.txt', data: Buffer.from('A') }] },
    ])
  })

  it('have a note for each file that is not sent', async () => {
    const directory = makeDirectory({ '.env': 'TOKEN=1', 'large.bin': Buffer.alloc(11 * 1024 * 1024) })
    const paths = ['missing.txt', '../outside.txt', '.env', 'large.bin']
    const parts = await partsOf(replyOf({ files: paths.map((path) => ({ path, directory })) }))
    const lines = parts[0]?.content.split('\n\n') ?? []
    expect([parts.length, parts[0]?.files, lines]).toEqual([
      1,
      [],
      ['Done', ...paths.map((path) => expect.stringMatching(`^-# The file "${path}" was not sent: `))],
    ])
  })

  it('have files from the web beside local files, and the address of those that cannot be fetched', async () => {
    const directory = makeDirectory({ 'a.txt': 'A' })
    const host: typeof HOST = {
      openFile: async (file, maxBytes, signal) =>
        'url' in file && file.url.endsWith('/b.png')
          ? { name: 'b.png', content: Buffer.from('B') }
          : HOST.openFile(file, maxBytes, signal),
    }
    const urls = ['https://host.example/b.png', 'http://localhost/c.png']
    const files = [{ path: 'a.txt', directory }, ...urls.map((url) => ({ url }))]
    expect(await partsOf(replyOf({ files }), host)).toEqual([
      {
        content: expect.stringMatching(/^Done\n\n-# The file "http:\/\/localhost\/c\.png" was not sent: /),
        files: [
          { name: 'a.txt', data: Buffer.from('A') },
          { name: 'b.png', data: Buffer.from('B') },
        ],
      },
    ])
  })

  it('report files beyond what a message can have', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `${index}.txt`)
    const directory = makeDirectory(Object.fromEntries(names.map((name) => [name, name])))
    const [part] = await partsOf(replyOf({ files: names.map((path) => ({ path, directory })) }))
    expect([part?.files.map(({ name }) => name), part?.content]).toEqual([
      names.slice(0, 10),
      expect.stringMatching(/10\.txt.*11\.txt/s),
    ])
  })

  it('continue with files that are too many for one message', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `${index}.txt`)
    const directory = makeDirectory(Object.fromEntries(names.map((name) => [name, name])))
    const text = ['Look:', '```js', ...Array.from({ length: 500 }, (_, index) => `call(${index})`), '```'].join('\n')
    const parts = await partsOf(replyOf({ text, files: names.map((path) => ({ path, directory })) }))
    expect(parts.map(({ files }) => files.map(({ name }) => name))).toEqual([
      ['code-1.js', ...names.slice(0, 9)],
      ['9.txt'],
    ])
  })

  it('are the same each time, so that an attempt finds those of another', async () => {
    await fc.assert(
      fc.asyncProperty(anyText, fc.array(anyText, { maxLength: 2 }), fc.boolean(), async (text, notes, isError) => {
        const reply = replyOf({ text, notes, isError })
        expect(await partsOf(reply)).toEqual(await partsOf(reply))
      }),
      RUNS,
    )
  })

  it('are some that Discord takes, for any text', async () => {
    await fc.assert(
      fc.asyncProperty(anyText, fc.array(anyText, { maxLength: 2 }), fc.boolean(), async (text, notes, isError) => {
        const parts = await partsOf(replyOf({ text, notes, isError }))
        const areTaken = parts.every(
          ({ content, files }) =>
            content.length <= MESSAGE_CHARACTERS && (content.trim() !== '' || files.length > 0) && files.length <= 10,
        )
        expect([parts.length >= 1 && parts.length <= 20, areTaken]).toEqual([true, true])
      }),
      RUNS,
    )
  })
})

describe('how many parts are there', () => {
  const posted = ({ content, files }: Part): Pick<APIMessage, 'content' | 'attachments'> => ({
    // Discord trims white space.
    content: content.trim(),
    attachments: files.map(({ name }, index) => ({ id: `${index}`, filename: name }) as APIAttachment),
  })

  it('is the number that was posted, whatever else was said between them', () => {
    fc.assert(
      fc.property(
        fc.array(anyPart, { minLength: 1, maxLength: 6 }),
        fc.nat(6),
        fc.array(fc.tuple(fc.nat(9), fc.nat(3)), { maxLength: 6 }),
        (parts, wanted, others) => {
          const count = Math.min(wanted, parts.length)
          const messages = parts.slice(0, count).map(posted)
          for (const [index, kind] of others) {
            messages.splice(index, 0, { content: `Something else ${kind}`, attachments: [] })
          }
          expect(countPosted(parts, messages)).toBe(count)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('counts a part whose files Discord refused, but not one of only files', () => {
    const files = [{ name: 'a.txt', data: 'A' }]
    const bare = (content: string) => [{ content, attachments: [] }]
    expect([
      countPosted([{ content: 'Done', files }], bare('Done')),
      countPosted([{ content: '', files }], bare('')),
      countPosted([{ content: '', files }], [posted({ content: '', files })]),
    ]).toEqual([1, 0, 1])
  })

  it('counts equal parts one by one', () => {
    const part = { content: 'Done', files: [] }
    expect(countPosted([part, part, part], [posted(part), posted(part)])).toBe(2)
  })
})

it('a nonce is one that Discord takes, the same for the same key and another for another', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, two) => {
      const nonce = nonceOf(one)
      expect([nonce.length > 0 && nonce.length <= 25, nonceOf(one), nonceOf(two) === nonce]).toEqual([
        true,
        nonce,
        one === two,
      ])
    }),
    RUNS,
  )
})

it.each<[string | undefined, boolean]>([
  ['1593525141504000001', true],
  ['interaction:1593525141504000001', false],
  ['event:7', false],
  ['', false],
  [undefined, false],
])('an id of Discord: %j %s', (id, isId) => {
  expect(isSnowflake(id)).toBe(isId)
})

describe('posting an answer', () => {
  /** Discord, with what the thread and its channel already contain. */
  function setup(there: APIMessage[] = [], beside: APIMessage[] = []) {
    const posts: Array<[channelId: string, body: RESTPostAPIChannelMessageJSONBody, files: RawFile[]]> = []
    const listed: Array<[channelId: string, after: string]> = []
    const discord = { failsOn: (_index: number): Error | undefined => undefined }
    const clock = { now: LATER }
    const posted = new PostedParts()
    const log = recordingLog()
    const post = async (
      channelId: string,
      body: RESTPostAPIChannelMessageJSONBody,
      { files = [] }: { files?: RawFile[] } = {},
    ): Promise<APIMessage> => {
      posts.push([channelId, body, files])
      const failure = discord.failsOn(posts.length - 1)
      if (failure) throw failure
      return message({ id: `post-${posts.length}`, channel_id: channelId })
    }
    const openThread = async (): Promise<never> => {
      throw refusal(50_013, 403)
    }
    const send = async (more: Partial<OutgoingReply>, signal = new AbortController().signal): Promise<void> =>
      postReply(replyOf(more), {
        api: {
          messagesAfter: async (channelId, after) => {
            listed.push([channelId, after])
            const all = channelId === '20' ? there : beside
            const begin = all.findIndex(({ id }) => id === after) + 1
            return all.slice(begin, begin + 100)
          },
        },
        host: HOST,
        destinations: new Destinations({ post, openThread }, log),
        posted,
        botId: BOT_ID,
        signal,
        now: () => clock.now,
      })
    return { send, posts, listed, discord, clock }
  }

  const ofBot = (content: string): APIMessage => message({ author: user(BOT_ID), content })
  const TWO = [`${'x'.repeat(1_500)}.`, `${'y'.repeat(1_500)}.`]
  const LONG_TEXT = TWO.join('\n\n')

  it('gives each part its own nonce, which Discord is to look at', async () => {
    const { send, posts } = setup()
    await send({ text: LONG_TEXT })
    expect(posts).toEqual(
      TWO.map((content, index) => ['20', { content, nonce: nonceOf(`key:${index}`), enforce_nonce: true }, []]),
    )
  })

  it('does not look for earlier attempts at the first', async () => {
    const { send, listed } = setup([ofBot('Done')])
    await send({})
    expect(listed).toEqual([])
  })

  it('continues after the parts that an earlier attempt posted', async () => {
    const { send, posts, listed } = setup([
      message({ content: TWO[1] ?? '' }),
      ofBot('-# 🔧 Bash'),
      ofBot(TWO[0] ?? ''),
      message({ content: TWO[1] ?? '' }),
    ])
    await send({ text: LONG_TEXT, attempt: 2 })
    expect([listed, posts.map(([, { content, nonce }]) => [content, nonce])]).toEqual([
      ['10', '20'].map((place) => [place, snowflakeAt(CREATED_AT - 5_000)]),
      [[TWO[1], nonceOf('key:1')]],
    ])
  })

  it('finds them beside a thread that could not be used', async () => {
    const reference = { message_reference: { type: 0, channel_id: '10', message_id: '20' } }
    const { send, posts } = setup([], [{ ...ofBot(TWO[0] ?? ''), ...reference }])
    await send({ text: LONG_TEXT, attempt: 2 })
    expect(posts.map(([, { content }]) => content)).toEqual([TWO[1]])
  })

  it('does not mistake other messages there for its own', async () => {
    const reference = { message_reference: { type: 0, channel_id: '10', message_id: '21' } }
    const { send, posts } = setup([], [{ ...ofBot('Done'), ...reference }])
    await send({ attempt: 2 })
    expect(posts.map(([, { content }]) => content)).toEqual(['Done'])
  })

  it('posts nothing when all is there', async () => {
    const { send, posts } = setup([ofBot('Done')])
    await send({ attempt: 3 })
    expect(posts).toEqual([])
  })

  it("finds them before other people's messages", async () => {
    const others = Array.from({ length: 250 }, (_, index) => message({ id: `other-${index}`, content: 'talk' }))
    const { send, posts, listed } = setup([...others, ofBot(TWO[0] ?? '')])
    await send({ text: LONG_TEXT, attempt: 2 })
    expect([posts.map(([, { content }]) => content), listed.filter(([place]) => place === '20')]).toEqual([
      [TWO[1]],
      [
        ['20', snowflakeAt(CREATED_AT - 5_000)],
        ['20', 'other-99'],
        ['20', 'other-199'],
      ],
    ])
  })

  it('does not look for them while Discord knows the nonce, and posts again', async () => {
    const { send, posts, listed, clock } = setup([ofBot('Done')])
    clock.now = CREATED_AT + 60_000
    await send({ attempt: 2 })
    expect([posts.map(([, { nonce }]) => nonce), listed]).toEqual([[nonceOf('key:0')], []])
  })

  it.each([
    ['soon', CREATED_AT + 60_000],
    ['later', LATER],
  ])('posts no part again that was posted by this process: %s', async (_, now) => {
    const { send, posts, discord, clock } = setup()
    clock.now = now
    discord.failsOn = (index) => (index === 1 ? new Error('socket hang up') : undefined)
    await send({ text: LONG_TEXT }).catch(String)
    await send({ text: LONG_TEXT, attempt: 2 })
    await send({ text: LONG_TEXT, attempt: 3 })
    expect(posts.map(([, { content }]) => content?.charAt(0))).toEqual(['x', 'y', 'y'])
  })

  it('does not take a part that belongs to another answer for its own', async () => {
    const there: APIMessage[] = []
    const { send, posts } = setup(there)
    await send({ idempotencyKey: 'other' })
    there.push({ ...ofBot('Done'), id: 'post-1' })
    await send({ attempt: 2 })
    expect(posts.map(([, { nonce }]) => nonce)).toEqual([nonceOf('other:0'), nonceOf('key:0')])
  })

  it('posts all when the thread is not there to be looked at', async () => {
    const posts: string[] = []
    const post = async (channelId: string): Promise<APIMessage> => {
      posts.push(channelId)
      return message()
    }
    const api = {
      messagesAfter: async (): Promise<never> => {
        throw refusal(UNKNOWN_CHANNEL, 404)
      },
    }
    const destinations = new Destinations(
      { post, openThread: async () => Promise.reject(new Error('No')) },
      recordingLog(),
    )
    const { signal } = new AbortController()
    const posted = new PostedParts()
    await postReply(replyOf({ attempt: 2 }), {
      ...{ api, host: HOST, destinations, posted, botId: BOT_ID, signal },
      now: () => LATER,
    })
    expect(posts).toEqual(['20'])
  })

  it('posts nothing if it cannot know what is there', async () => {
    const posts: string[] = []
    const api = { messagesAfter: async () => Promise.reject(new Error('socket hang up')) }
    const post = async (channelId: string): Promise<APIMessage> => {
      posts.push(channelId)
      return message()
    }
    const destinations = new Destinations(
      { post, openThread: async () => Promise.reject(new Error('No')) },
      recordingLog(),
    )
    const { signal } = new AbortController()
    const options = {
      api,
      host: HOST,
      destinations,
      posted: new PostedParts(),
      botId: BOT_ID,
      signal,
      now: () => LATER,
    }
    const failure = await postReply(replyOf({ attempt: 2 }), options).catch(String)
    expect([failure, posts]).toEqual(['Error: socket hang up', []])
  })

  it.each<[title: string, reply: Partial<OutgoingReply>, referenced: (string | undefined)[]]>([
    ['in a channel the first part refers to what is answered', { address: '10', text: LONG_TEXT }, ['20', undefined]],
    ['in a thread nothing needs to', { text: LONG_TEXT }, [undefined, undefined]],
    ['nothing refers to what is no message of Discord', { address: '10', platformId: 'interaction:7' }, [undefined]],
    ['nothing refers to what it does not answer', { address: '10', platformId: 'event:7' }, [undefined]],
  ])('%s', async (_, reply, referenced) => {
    const { send, posts } = setup()
    await send(reply)
    expect(posts.map(([, body]) => body.message_reference)).toEqual(
      referenced.map((id) => (id === undefined ? undefined : { message_id: id, fail_if_not_exists: false })),
    )
  })

  it('puts the retry button under the last part of what can be retried', async () => {
    const { send, posts } = setup()
    await send({ text: LONG_TEXT, isError: true, canRetry: true })
    expect(posts.map(([, { components }]) => JSON.stringify(components ?? null))).toEqual([
      'null',
      expect.stringContaining('"custom_id":"retry:m1"'),
    ])
  })

  it('posts the text without files that are too large for Discord, and says so', async () => {
    const { send, posts, discord } = setup()
    const directory = makeDirectory({ 'a.txt': 'A', 'b.txt': 'B' })
    discord.failsOn = (index) => (index === 0 ? refusal(REQUEST_TOO_LARGE, 413) : undefined)
    await send({ files: ['a.txt', 'b.txt'].map((path) => ({ path, directory })) })
    expect(posts.map(([, { content }, files]) => [content, files.length])).toEqual([
      ['Done', 2],
      ['Done', 0],
      ['-# Not sent, because Discord does not accept files of this size: a.txt, b.txt', 0],
    ])
  })

  it('posts the text without files that the network did not take three times, and says so', async () => {
    const { send, posts, discord } = setup()
    const directory = makeDirectory({ 'a.txt': 'A', 'b.txt': 'B' })
    const files = ['a.txt', 'b.txt'].map((path) => ({ path, directory }))
    discord.failsOn = (index) => (posts[index]?.[2].length ? new Error('socket hang up') : undefined)
    const failures: unknown[] = []
    for (const attempt of [1, 2, 3, 4]) failures.push(await send({ files, attempt }).catch(String))
    expect([failures, posts.map(([, { content, nonce }, sent]) => [content, nonce, sent.length])]).toEqual([
      ['Error: socket hang up', 'Error: socket hang up', 'Error: socket hang up', undefined],
      [
        ...[1, 2, 3].map(() => ['Done', nonceOf('key:0'), 2]),
        ['Done', nonceOf('key:0'), 0],
        ['-# Not sent, because the upload failed: a.txt, b.txt', expect.any(String), 0],
      ],
    ])
  })

  it('says of each part without text which files of it were not sent', async () => {
    const { send, posts, discord } = setup()
    const names = Array.from({ length: 10 }, (_, index) => `${index}.txt`)
    const directory = makeDirectory(Object.fromEntries(names.map((name) => [name, name])))
    // A code file of our own, one more than fits.
    const text = `Look:\n\`\`\`js\n${'const a = 1\n'.repeat(500)}\`\`\``
    discord.failsOn = (index) => (posts[index]?.[2].length ? refusal(REQUEST_TOO_LARGE, 413) : undefined)
    await send({ text, files: names.map((path) => ({ path, directory })) })
    const notes = posts.filter(([, { content }]) => content?.includes('Discord does not accept files'))
    expect([notes.map(([, { content }]) => content), new Set(notes.map(([, { nonce }]) => nonce)).size]).toEqual([
      [
        `-# Not sent, because Discord does not accept files of this size: code-1.js, ${names.slice(0, 9).join(', ')}`,
        '-# Not sent, because Discord does not accept files of this size: 9.txt',
      ],
      2,
    ])
  })

  it('reports files that are too large even if the text is long', async () => {
    const { send, posts, discord } = setup()
    const directory = makeDirectory({ 'a.txt': 'A' })
    discord.failsOn = (index) => (index === 0 ? refusal(REQUEST_TOO_LARGE, 413) : undefined)
    await send({ text: 'x'.repeat(MESSAGE_CHARACTERS), files: [{ path: 'a.txt', directory }] })
    const contents = posts.slice(1).map(([, { content }]) => content ?? '')
    expect([
      contents.every(({ length }) => length <= MESSAGE_CHARACTERS),
      contents.some((content) => content.includes('a.txt')),
    ]).toEqual([true, true])
  })

  it('ends with the failure of a part, and the next attempt continues there', async () => {
    const { send, posts, discord } = setup([ofBot(TWO[0] ?? '')])
    discord.failsOn = (index) => (index === 1 ? new Error('socket hang up') : undefined)
    const failure = await send({ text: LONG_TEXT }).catch(String)
    await send({ text: LONG_TEXT, attempt: 2 })
    expect([failure, posts.map(([, { content }]) => content?.charAt(0))]).toEqual([
      'Error: socket hang up',
      ['x', 'y', 'y'],
    ])
  })

  it('posts no more parts when it is stopped', async () => {
    const { send, posts, discord } = setup()
    const stopped = new AbortController()
    discord.failsOn = () => {
      stopped.abort(new Error('It stops'))
      return undefined
    }
    const failure = await send({ text: LONG_TEXT }, stopped.signal).catch(String)
    expect([failure, posts.length]).toEqual(['Error: It stops', 1])
  })
})

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 100 }),
  fc
    .array(
      fc.constantFrom('Words and more words. ', '\n', '\n\n', '```js\n', '```', '- ', '| a | b |\n|---|---|\n', '🙂'),
      {
        maxLength: 400,
      },
    )
    .map((parts) => parts.join('')),
)
const anyFiles: fc.Arbitrary<RawFile[]> = fc
  .uniqueArray(fc.constantFrom('a.txt', 'b.txt', 'c.txt'), { minLength: 1 })
  .map((names) => names.map((name) => ({ name, data: name })))
const noFiles: fc.Arbitrary<RawFile[]> = fc.constant([])
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ content: fc.constantFrom('Part a', 'Part b', ' Part c\n'), files: fc.oneof(noFiles, anyFiles) }),
  fc.record({ content: fc.constant(''), files: anyFiles }),
)
