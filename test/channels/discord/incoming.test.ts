import { type APIAttachment, type APIMessage, ChannelType, MessageType } from 'discord.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type BotIdentity,
  isFromPerson,
  readFiles,
  readMessage,
  threadName,
} from '../../../src/channels/discord/incoming.js'
import type { ChannelFacts } from '../../../src/channels/discord/destinations.js'
import { isCommand } from '../../../src/turns/accept.js'
import { BOT_ID, hasLoneSurrogate, message, user } from './samples.js'
import { serveHttp } from '../../kit/loopback.js'

const RUNS = { numRuns: 500 }
const BOT: BotIdentity = { id: BOT_ID, roleIds: new Set(['77']) }
const BOT_USER = user(BOT_ID, 'aetheel')
const CHANNEL: ChannelFacts = { id: '10', type: ChannelType.GuildText, guildId: '5' }
const THREAD: ChannelFacts = { id: '20', type: ChannelType.PublicThread, guildId: '5', parentId: '10' }
const DIRECT: ChannelFacts = { id: '30', type: ChannelType.DM }

const mentioning = (content: string, more: Partial<APIMessage> = {}): APIMessage =>
  message({ content, mentions: [BOT_USER], ...more })

const textOf = (said: APIMessage): string | undefined => readMessage(said, BOT, CHANNEL)?.text

describe('what is from a person', () => {
  it.each<[title: string, more: Partial<APIMessage>, isPerson: boolean]>([
    ['a message', {}, true],
    ['a reply', { type: MessageType.Reply }, true],
    ['one of a bot', { author: { ...user('2'), bot: true } }, false],
    ['one of a person, as Discord may say', { author: { ...user('2'), bot: false } }, true],
    ['one of a webhook', { webhook_id: '8' }, false],
    ['that somebody has joined', { type: MessageType.UserJoin }, false],
    ['that a thread was opened', { type: MessageType.ThreadCreated }, false],
    ['the beginning of a thread', { type: MessageType.ThreadStarterMessage }, false],
    ['that something was pinned', { type: MessageType.ChannelPinnedMessage }, false],
    ['a new name of the channel', { type: MessageType.ChannelNameChange }, false],
    ['a slash command', { type: MessageType.ChatInputCommand }, false],
  ])('%s', (_, more, isPerson) => {
    expect(isFromPerson(message(more))).toBe(isPerson)
  })
})

describe('what is said to the bot', () => {
  const ofBot = message({ id: '999', author: BOT_USER, content: 'Done' })
  const ofBen = message({ id: '999', author: user('2', 'ben'), content: 'Broken' })

  it.each<[title: string, said: APIMessage, place: ChannelFacts, expected: ReturnType<typeof readMessage>]>([
    ['a mention', mentioning(`<@${BOT_ID}> Hello`), CHANNEL, { text: 'Hello', title: 'Hello', isReplyToBot: false }],
    [
      'a mention of its role',
      message({ content: '<@&77> Hello', mention_roles: ['77'] }),
      CHANNEL,
      { text: 'Hello', title: 'Hello', isReplyToBot: false },
    ],
    [
      'a reply to it, without a mention',
      message({ referenced_message: ofBot }),
      CHANNEL,
      { text: 'Hello', title: 'Hello', isReplyToBot: true },
    ],
    [
      'a reply to it, with one',
      mentioning('Hello', { referenced_message: ofBot }),
      CHANNEL,
      { text: 'Hello', title: 'Hello', isReplyToBot: true },
    ],
    ['a direct message', message(), DIRECT, { text: 'Hello', title: 'Hello', isReplyToBot: false }],
    [
      'a message in a thread that it opened',
      message(),
      { ...THREAD, ownerId: BOT_ID },
      { text: 'Hello', title: 'Hello', isReplyToBot: false },
    ],
    [
      'a mention in a thread of others',
      mentioning(`<@${BOT_ID}> Hello`),
      { ...THREAD, ownerId: '2' },
      { text: 'Hello', title: 'Hello', isReplyToBot: false },
    ],
    ['a mention and nothing else', mentioning(`<@${BOT_ID}>`), CHANNEL, { text: '', title: '', isReplyToBot: false }],
    [
      'a mention about what another said, whose title is the own words',
      mentioning(`<@${BOT_ID}> Why?`, { referenced_message: ofBen }),
      CHANNEL,
      { text: '@ben wrote:\n> Broken\n\nWhy?', title: 'Why?', isReplyToBot: false },
    ],
  ])('is %s', (_, said, place, expected) => {
    expect(readMessage(said, BOT, place)).toEqual(expected)
  })

  it.each<[title: string, said: APIMessage, place: ChannelFacts]>([
    ['what people say to each other', message(), CHANNEL],
    ['a message in a thread of others', message(), { ...THREAD, ownerId: '2' }],
    ['one in a thread of which nobody knows who opened it', message(), THREAD],
    ['one in a channel whose owner it is said to be', message(), { ...CHANNEL, ownerId: BOT_ID }],
    ['a mention of somebody else', message({ content: '<@2> Hello', mentions: [user('2')] }), CHANNEL],
    ['a mention of another role', message({ content: '<@&78> Hello', mention_roles: ['78'] }), CHANNEL],
    ['a mention of everybody', message({ content: '@everyone Hello', mention_everyone: true }), CHANNEL],
    ['a reply to somebody else', message({ referenced_message: ofBen }), CHANNEL],
    ['a reply to what is gone', message({ referenced_message: null }), CHANNEL],
    ['its name in words', message({ content: '@aetheel Hello' }), CHANNEL],
  ])('is not %s', (_, said, place) => {
    expect(readMessage(said, BOT, place)).toBeUndefined()
  })
})

describe('mentions in a text', () => {
  it.each([
    ['before it', `<@${BOT_ID}> Fix it`, 'Fix it'],
    ['in the form of old clients', `<@!${BOT_ID}> Fix it`, 'Fix it'],
    ['behind it', `Fix it <@${BOT_ID}>`, 'Fix it'],
    ['in the middle', `Please <@${BOT_ID}> fix it`, 'Please fix it'],
    ['several', `<@${BOT_ID}> <@!${BOT_ID}>  Fix <@${BOT_ID}> it <@${BOT_ID}>`, 'Fix it'],
    ['of its role', 'Please <@&77> fix it', 'Please fix it'],
    ['on a line of its own', `<@${BOT_ID}>\n  Fix it\n\nand that`, 'Fix it\n\nand that'],
  ])('of the bot are left out: %s', (_, content, text) => {
    expect(textOf(mentioning(content))).toBe(text)
  })

  it('of others become their names', () => {
    const content = `<@${BOT_ID}> Ask <@2>, <@!3> and <@2> again`
    const mentions = [BOT_USER, user('2', 'ben'), user('3', 'cleo')]
    expect(textOf(message({ content, mentions }))).toBe('Ask @ben, @cleo and @ben again')
  })

  it('of others become their names as these are, whatever is in them', () => {
    const mentions = [BOT_USER, user('2', '$& $1 $$')]
    expect(textOf(message({ content: `<@${BOT_ID}> Ask <@2> now`, mentions }))).toBe('Ask @$& $1 $$ now')
  })

  it('of others without a known name, of other roles and of channels stay as they are', () => {
    expect(textOf(mentioning(`<@${BOT_ID}> Ask <@4> of <@&78> in <#10>`))).toBe('Ask <@4> of <@&78> in <#10>')
  })

  it('leave the rest of a text as it is, wherever they stand', () => {
    const anyWords = fc.array(fc.stringMatching(/^[a-z0-9.*`\n>#-]{1,8}$/), { minLength: 1, maxLength: 6 })
    const anyTag = fc.constantFrom(`<@${BOT_ID}>`, `<@!${BOT_ID}>`, '<@&77>')
    fc.assert(
      fc.property(anyWords, fc.array(fc.tuple(fc.nat(6), anyTag), { minLength: 1, maxLength: 4 }), (words, tags) => {
        const mixed = words.map((word) => word)
        for (const [index, tag] of tags) mixed.splice(index, 0, tag)
        expect(textOf(mentioning(mixed.join(' ')))).toBe(words.join(' ').trim())
      }),
      RUNS,
    )
  })
})

describe('a message that is replied to', () => {
  const asked = (referenced: APIMessage, content = `<@${BOT_ID}> Why?`): string | undefined =>
    textOf(mentioning(content, { type: MessageType.Reply, referenced_message: referenced }))

  it('goes before as a quotation', () => {
    const referenced = message({ author: user('2', 'ben'), content: 'It is broken.\n\nSince today.' })
    expect(asked(referenced)).toBe('@ben wrote:\n> It is broken.\n> \n> Since today.\n\nWhy?')
  })

  it('is quoted with the names that are in it, and without the bot', () => {
    const mentions = [BOT_USER, user('3', 'cleo')]
    const referenced = message({ author: user('2', 'ben'), content: `<@${BOT_ID}> ask <@3>`, mentions })
    expect(asked(referenced)).toBe('@ben wrote:\n> ask @cleo\n\nWhy?')
  })

  it('is not quoted when the bot said it, or when it has no text', () => {
    const ofBot = message({ author: BOT_USER, content: 'Done' })
    const picture = message({ author: user('2', 'ben'), content: '' })
    expect([asked(ofBot), asked(picture)]).toEqual(['Why?', 'Why?'])
  })

  it('is quoted up to a length, and no character is cut in half', () => {
    const referenced = message({ author: user('2', 'ben'), content: `x${'🙂'.repeat(1_999)}` })
    const quotation = asked(referenced) ?? ''
    expect([hasLoneSurrogate(quotation), quotation.length < 2_050]).toEqual([false, true])
  })

  it.each(['/stop', '/model large'])('does not come before the command %s', (command) => {
    const referenced = message({ author: user('2', 'ben'), content: 'It is broken.' })
    expect(asked(referenced, `<@${BOT_ID}> ${command}`)).toBe(command)
  })
})

it.each([`<@${BOT_ID}> /stop`, `<@!${BOT_ID}>  /stop`, `/stop <@${BOT_ID}>`, '<@&77>\n/stop'])(
  'a command behind a mention is one still: %j',
  (content) => {
    const text = textOf(mentioning(content, { mention_roles: ['77'] })) ?? ''
    expect([text, isCommand(text)]).toEqual(['/stop', true])
  },
)

describe('the name of a thread', () => {
  it.each([
    ['the text', 'Fix the tests', 'Fix the tests'],
    ['one line of it', '  Fix\n\n the\ttests ', 'Fix the tests'],
    ['something when there is no text', ' \n', 'Conversation'],
    ['the beginning of a long text', 'x'.repeat(81), `${'x'.repeat(79)}…`],
    ['all of a text that just fits', 'x'.repeat(80), 'x'.repeat(80)],
    ['whole characters of a long text', '🙂'.repeat(41), `${'🙂'.repeat(39)}…`],
  ])('is %s', (_, text, name) => {
    expect(threadName(text)).toBe(name)
  })

  it('is one that Discord takes, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        const name = threadName(text)
        const characters = Array.from(name).length
        expect([characters >= 1 && characters <= 100, hasLoneSurrogate(name), /[\n\r\t]/.test(name)]).toEqual([
          true,
          false,
          false,
        ])
      }),
      RUNS,
    )
  })
})

describe('attached files', () => {
  const attachment = (url: string, size: number): APIAttachment => ({
    id: '1',
    filename: 'a b.txt',
    content_type: 'text/plain; charset=utf-8',
    size,
    url,
    proxy_url: url,
  })

  it('are described as Discord says', () => {
    const { content_type: _, ...untyped } = attachment('http://discord/b', 7)
    expect(readFiles([attachment('http://discord/a', 5), { ...untyped, filename: 'b' }])).toEqual([
      { name: 'a b.txt', type: 'text/plain; charset=utf-8', bytes: 5, read: expect.any(Function) },
      { name: 'b', bytes: 7, read: expect.any(Function) },
    ])
  })

  it('are fetched, and at most one byte more than allowed', async () => {
    const url = await serve(200, 'Hello, world')
    const read = (size: number) => readFiles([attachment(url, size)])[0]?.read(AbortSignal.timeout(10_000))
    const [whole, longer] = [await read(12), await read(5)]
    expect([whole, longer].map((content) => Buffer.from(content ?? []).toString())).toEqual(['Hello, world', 'Hello,'])
  })

  it('that are gone are a failure', async () => {
    const [file] = readFiles([attachment(await serve(404, 'Not found'), 9)])
    await expect(file?.read(AbortSignal.timeout(10_000))).rejects.toThrow('Discord answered with status 404')
  })
})

async function serve(status: number, body: string): Promise<string> {
  return `${await serveHttp((_, response) => response.writeHead(status).end(body))}/file`
}
