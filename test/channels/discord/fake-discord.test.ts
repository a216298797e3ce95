import { once } from 'node:events'
import {
  ChannelType,
  Client,
  GatewayIntentBits,
  InteractionResponseType,
  MessageType,
  PermissionFlagsBits,
  Routes,
} from 'discord.js'
import type { APIMessage, APIThreadChannel, APIUser } from 'discord.js'
import { describe, expect, it, type OnTestFinishedHandler } from 'vitest'
import { WebSocket } from 'ws'
import type { FakeChannel, FakeGuild } from './fake-discord-records.js'
import { FakeDiscord } from './fake-discord.js'

const ALL_INTENTS =
  GatewayIntentBits.Guilds |
  GatewayIntentBits.GuildMessages |
  GatewayIntentBits.DirectMessages |
  GatewayIntentBits.MessageContent

const COMMANDS = [
  { name: 'ask', description: 'Asks', options: [{ name: 'text', description: 'What', type: 3, required: true }] },
  {
    name: 'model',
    description: 'Chooses',
    options: [{ name: 'name', description: 'Which', type: 3, autocomplete: true }],
  },
]

/** Run concurrently: most of the time is spent waiting for the client. */
describe.concurrent('the real client', () => {
  it('logs in and gets messages, with the roles of their authors', async ({ onTestFinished }) => {
    const { discord, guild, channel, ada, seen } = await stage(onTestFinished)
    const role = discord.addRole(guild, 'crew', { users: [ada] })
    const said = discord.say(ada, channel.id, 'hello', { mentions: [discord.bot] })
    const message = await discord.waitFor(() => seen('MESSAGE_CREATE')[0])
    expect(message).toMatchObject({
      id: said.id,
      content: `<@${discord.bot.id}> hello`,
      guild_id: guild.id,
      author: { id: ada.id },
      member: { roles: [role.id] },
      mentions: [{ id: discord.bot.id, bot: true }],
    })
  })

  it('understands the guild it gets', async ({ onTestFinished }) => {
    const { discord, client, guild, channel } = await stage(onTestFinished)
    await discord.waitFor(() => client.isReady())
    const known = client.guilds.cache.get(guild.id)
    const permissions = client.channels.cache.get(channel.id)?.isTextBased() && known?.members.me?.permissions
    expect([known?.name, permissions && permissions.has(PermissionFlagsBits.CreatePublicThreads)]).toEqual([
      'guild',
      true,
    ])
  })

  it('answers, edits, reacts and deletes', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const said = discord.say(ada, channel.id, 'hello')
    const answer = await post(client, channel.id, { content: '  first ' })
    await client.rest.patch(Routes.channelMessage(channel.id, answer.id), { body: { content: 'second' } })
    await client.rest.put(Routes.channelMessageOwnReaction(channel.id, said.id, encodeURIComponent('👀')))
    await client.rest.post(Routes.channelTyping(channel.id))
    expect([answer.content, discord.textsIn(channel.id), discord.reactionsOn(said.id), discord.typing.length]).toEqual([
      'first',
      ['second'],
      ['👀'],
      1,
    ])
    await client.rest.delete(Routes.channelMessage(channel.id, answer.id))
    expect(discord.textsIn(channel.id)).toEqual([])
  })

  it('gets messages page by page, next to the one it names, newest first', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const ids = Array.from({ length: 5 }, (_, index) => discord.say(ada, channel.id, String(index)).id)
    const read = async (query: Record<string, string>) => {
      const route = Routes.channelMessages(channel.id)
      const page = (await client.rest.get(route, { query: new URLSearchParams(query) })) as APIMessage[]
      return page.map(({ content }) => content)
    }
    expect([
      await read({ after: ids[0] ?? '', limit: '2' }),
      await read({ before: ids[3] ?? '', limit: '2' }),
      await read({ limit: '2' }),
    ]).toEqual([
      ['2', '1'],
      ['2', '1'],
      ['4', '3'],
    ])
  })

  it('hears nothing of what people write without the intent, unless it is for the bot', async ({ onTestFinished }) => {
    const { discord, channel, ada, seen } = await stage(onTestFinished, {
      intents: ALL_INTENTS & ~GatewayIntentBits.MessageContent,
    })
    discord.say(ada, channel.id, 'to everybody')
    discord.say(ada, channel.id, 'to the bot', { mentions: [discord.bot] })
    discord.say(ada, discord.directChannel(ada).id, 'in private')
    await discord.waitFor(() => seen('MESSAGE_CREATE').length === 3)
    const contents = seen('MESSAGE_CREATE').map(({ content }) => content)
    expect(contents).toEqual(['', `<@${discord.bot.id}> to the bot`, 'in private'])
  })

  it('cannot log in with a wrong token or with an intent that is switched off', async ({ onTestFinished }) => {
    const { discord, newClient } = await stage(onTestFinished)
    discord.applicationFlags = 0
    const wrong = newClient(ALL_INTENTS).login('wrong')
    await expect(wrong).rejects.toThrow('An invalid token was provided')
    const forbidden = newClient(ALL_INTENTS).login(discord.token)
    await expect(forbidden).rejects.toThrow('Used disallowed intents')
  })

  it('waits when a bucket is empty, and never gets a 429', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.limits.postMessage = { limit: 2, perMs: 300 }
    const startedAt = Date.now()
    for (let index = 0; index < 5; index += 1) await post(client, channel.id, { content: String(index) })
    expect([Date.now() - startedAt >= 600, discord.textsIn(channel.id).length, discord.overruns]).toEqual([true, 5, []])
  })

  it('is counted when it exceeds a bucket despite the announcement', async ({ onTestFinished }) => {
    const { discord, channel } = await stage(onTestFinished)
    discord.limits.postMessage = { limit: 1, perMs: 60_000 }
    const rude = async () => {
      const response = await fetch(`${discord.apiUrl}/v10/channels/${channel.id}/messages`, {
        method: 'POST',
        headers: { authorization: `Bot ${discord.token}`, 'content-type': 'application/json' },
        body: '{"content":"x"}',
      })
      await response.text()
      return [response.status, response.headers.get('x-ratelimit-remaining')]
    }
    const answers = [await rude(), await rude()]
    const violation = { bucket: 'postMessage', of: channel.id, at: expect.any(Number) as number, wasTold: true }
    expect([answers, discord.bucketViolations]).toEqual([
      [
        [200, '0'],
        [429, '0'],
      ],
      [violation],
    ])
  })

  it('honours a 429 that no bucket announced', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.fail('POST /channels/:id/messages', { kind: 'rate-limit', retryAfterMs: 250 })
    await post(client, channel.id, { content: 'late' })
    const [first, second] = discord.requestsTo('POST /channels/:id/messages')
    expect([first?.status, second?.status, (second?.at ?? 0) - (first?.at ?? 0) >= 250]).toEqual([429, 200, true])
  })

  it('holds everything back after a global 429', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.fail('POST /channels/:id/typing', { kind: 'rate-limit', retryAfterMs: 250, isGlobal: true })
    const typing = client.rest.post(Routes.channelTyping(channel.id))
    await discord.waitFor(() => client.rest.globalRemaining === 0)
    await post(client, channel.id, { content: 'later' })
    await typing
    const [limited] = discord.requestsTo('POST /channels/:id/typing')
    const [posted] = discord.requestsTo('POST /channels/:id/messages')
    expect((posted?.at ?? 0) - (limited?.at ?? 0)).toBeGreaterThanOrEqual(250)
  })

  it('tries again after a 500, and after a connection that was reset', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.fail('POST /channels/:id/messages', { kind: 'status', status: 500 })
    discord.fail('POST /channels/:id/messages', { kind: 'reset' })
    await post(client, channel.id, { content: 'once' })
    expect([discord.textsIn(channel.id), discord.requestsTo('POST /channels/**').map(({ status }) => status)]).toEqual([
      ['once'],
      [500, undefined, 200],
    ])
  })

  it('posts once when an answer is lost and the nonce is enforced, and twice when it is not', async ({
    onTestFinished,
  }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    const lost = { kind: 'reset', hasEffect: true } as const
    discord.fail('POST /channels/:id/messages', lost)
    await post(client, channel.id, { content: 'safe', nonce: 'n1', enforce_nonce: true })
    discord.fail('POST /channels/:id/messages', lost)
    await post(client, channel.id, { content: 'double' })
    expect(discord.textsIn(channel.id)).toEqual(['safe', 'double', 'double'])
  })

  it('can use a nonce again when the window is over', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    const body = { content: 'again', nonce: 'n1', enforce_nonce: true }
    const first = await post(client, channel.id, body)
    const second = await post(client, channel.id, body)
    discord.advance(discord.settings.nonceWindowMs + 1)
    const third = await post(client, channel.id, body)
    expect([second.id === first.id, third.id === first.id]).toEqual([true, false])
  })

  it('opens a thread with the id of its message, once', async ({ onTestFinished }) => {
    const { discord, client, channel, ada, seen } = await stage(onTestFinished)
    const said = discord.say(ada, channel.id, 'hello')
    const route = Routes.threads(channel.id, said.id)
    await client.rest.post(route, { body: { name: 'hello' } })
    await post(client, said.id, { content: 'in the thread' })
    await expect(client.rest.post(route, { body: { name: 'hello' } })).rejects.toMatchObject({ code: 160_004 })
    await discord.waitFor(() => seen('MESSAGE_CREATE').length === 3)
    expect([
      discord.threadOf(said.id)?.thread?.ownerId,
      discord.textsIn(said.id),
      seen('MESSAGE_CREATE').map(({ type, channel_id: id }) => [type, id === said.id]),
      seen('MESSAGE_UPDATE').map(({ id, edited_timestamp: edited }) => [id, edited]),
      seen('THREAD_CREATE').map(({ id, newly_created: isNew }) => [id, isNew]),
    ]).toEqual([
      discord.bot.id,
      ['in the thread'],
      [
        [0, false],
        [21, true],
        [0, true],
      ],
      [[said.id, null]],
      [[said.id, true]],
    ])
  })

  it('opens threads without a message, in a forum with the first one', async ({ onTestFinished }) => {
    const { discord, client, guild, channel } = await stage(onTestFinished)
    const forum = discord.addChannel(guild, { name: 'forum', type: ChannelType.GuildForum })
    const open = async (id: string, body: object) =>
      (await client.rest.post(Routes.threads(id), { body })) as APIThreadChannel
    const plain = await open(channel.id, { name: 'plain', type: ChannelType.PublicThread })
    const entry = await open(forum.id, { name: 'entry', message: { content: 'first' } })
    const [announcement] = channel.messages
    expect([
      discord.threadsIn(channel.id).map(({ id }) => id),
      announcement?.core.type,
      announcement?.core.message_reference?.channel_id,
      discord.messagesIn(entry.id).map(({ id, content }) => [id, content]),
    ]).toEqual([[plain.id], MessageType.ThreadCreated, plain.id, [[entry.id, 'first']]])
  })

  it('replies, and sends a plain message when there is nothing left to reply to', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const said = discord.say(ada, channel.id, 'hello')
    const body = { content: 'hi', message_reference: { message_id: said.id, fail_if_not_exists: false } }
    const reply = await post(client, channel.id, body)
    discord.delete(said)
    const plain = await post(client, channel.id, body)
    const read = discord.message(reply.id)
    expect([
      [reply.type, reply.referenced_message?.id, reply.mentions.map(({ id }) => id)],
      [plain.type, plain.referenced_message, plain.mentions],
      read?.referenced_message,
    ]).toEqual([[MessageType.Reply, said.id, [ada.id]], [MessageType.Default, undefined, []], null])
  })

  it('wakes an archived thread with a message, but not one that is locked', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const thread = discord.openThread(ada, channel.id, 'old', { from: discord.say(ada, channel.id, 'hello') })
    discord.archive(thread.id)
    await post(client, thread.id, { content: 'awake' })
    const isArchived = thread.thread?.isArchived
    discord.archive(thread.id, { isLocked: true })
    await expect(post(client, thread.id, { content: 'no' })).rejects.toMatchObject({ status: 400, code: 50_083 })
    expect([isArchived, discord.textsIn(thread.id)]).toEqual([false, ['awake']])
  })

  it('is refused as Discord refuses', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const hidden = discord.addChannel(channel.guild ?? discord.addGuild(), { name: 'hidden' })
    const silent = discord.addChannel(channel.guild ?? discord.addGuild(), { name: 'silent' })
    discord.deny(hidden.id, PermissionFlagsBits.ViewChannel)
    discord.deny(silent.id, PermissionFlagsBits.SendMessages)
    const said = discord.say(ada, channel.id, 'hello')
    const code = async (request: Promise<unknown>) => request.then(String, ({ code }: { code: number }) => code)
    const unknown = discord.owner.id
    expect([
      await code(post(client, unknown, { content: 'x' })),
      await code(post(client, hidden.id, { content: 'x' })),
      await code(post(client, silent.id, { content: 'x' })),
      await code(post(client, channel.id, { content: ' ' })),
      await code(post(client, channel.id, { content: 'x'.repeat(2001) })),
      await code(post(client, channel.id, { content: 'x', message_reference: { message_id: unknown } })),
      await code(client.rest.patch(Routes.channelMessage(channel.id, said.id), { body: { content: 'x' } })),
      await code(client.rest.get(Routes.channelMessage(channel.id, unknown))),
      await code(client.rest.get(Routes.guild(unknown))),
    ]).toEqual([10_003, 50_001, 50_013, 50_006, 50_035, 50_035, 50_005, 10_008, 10_004])
  })

  it('may edit old messages only so often', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.settings.oldMessageEdits = { limit: 0, perMs: 100 }
    const { id } = await post(client, channel.id, { content: 'old' })
    discord.advance(discord.settings.oldMessageMs)
    const edited = client.rest.patch(Routes.channelMessage(channel.id, id), { body: { content: 'new' } })
    const statuses = () => new Set(discord.requestsTo('PATCH /channels/**').map(({ status }) => status))
    await discord.waitFor(() => statuses().has(429))
    discord.settings.oldMessageEdits.limit = 1
    await edited
    expect([discord.textsIn(channel.id), statuses()]).toEqual([['new'], new Set([429, 200])])
  })

  it('gets what it missed when its socket broke', async ({ onTestFinished }) => {
    const { discord, channel, ada, seen } = await stage(onTestFinished)
    discord.dropSocket()
    discord.say(ada, channel.id, 'missed')
    await discord.waitFor(() => discord.resumes === 1)
    discord.say(ada, channel.id, 'later')
    await discord.waitFor(() => seen('MESSAGE_CREATE').length === 2)
    const contents = seen('MESSAGE_CREATE').map(({ content }) => content)
    expect([contents, seen('RESUMED').length, discord.identifies]).toEqual([['missed', 'later'], 1, 1])
  })

  it('comes back when it is asked to, and when its session is shaken', async ({ onTestFinished }) => {
    const { discord } = await stage(onTestFinished)
    discord.requestReconnect()
    await discord.waitFor(() => discord.resumes === 1)
    discord.invalidateSession({ isResumable: true })
    await discord.waitFor(() => discord.resumes === 2)
    discord.dropSocket(4000)
    await discord.waitFor(() => discord.resumes === 3)
    expect([discord.identifies, discord.isConnected]).toEqual([1, true])
  })

  it('identifies again when its session is gone, and missed events are not replayed', async ({ onTestFinished }) => {
    const { discord, channel, ada, seen } = await stage(onTestFinished)
    discord.refuseResume()
    discord.dropSocket()
    discord.say(ada, channel.id, 'missed')
    // discord.js leaves at least five seconds between two IDENTIFYs.
    await discord.waitFor(() => discord.identifies === 2 && discord.isConnected, 15_000)
    discord.say(ada, channel.id, 'later')
    await discord.waitFor(() => seen('MESSAGE_CREATE').length > 0)
    const contents = seen('MESSAGE_CREATE').map(({ content }) => content)
    expect([contents, seen('READY').length, seen('RESUMED').length]).toEqual([['later'], 2, 0])
  })

  it('finds a dead connection by its heartbeat', async ({ onTestFinished }) => {
    const { discord } = await stage(onTestFinished, {
      prepare: ({ discord }) =>
        Object.assign(discord.settings, { heartbeatIntervalMs: 100, acknowledgesHeartbeats: false }),
    })
    await discord.waitFor(() => discord.resumes > 0)
    expect(discord.identifies).toBe(1)
  })

  it('gets a message twice, too early, or late, when the test says so', async ({ onTestFinished }) => {
    const { discord, channel, ada, seen } = await stage(onTestFinished, {
      prepare: ({ discord, ada, channel }) => {
        discord.beforeReady(() => void discord.say(ada, channel.id, 'before READY'))
        discord.beforeGuilds(() => void discord.say(ada, channel.id, 'before GUILD_CREATE'))
      },
    })
    discord.duplicateNextMessage()
    discord.say(ada, channel.id, 'twice')
    discord.pauseDelivery()
    discord.say(ada, channel.id, 'held')
    discord.resumeDelivery()
    const contents = () => seen('MESSAGE_CREATE').map(({ content }) => content)
    await discord.waitFor(() => contents().includes('held'))
    expect(contents()).toEqual(['before READY', 'before GUILD_CREATE', 'twice', 'twice', 'held'])
  })

  it('comes back after Discord was away', async ({ onTestFinished }) => {
    const { discord, client, channel } = await stage(onTestFinished)
    discord.goOffline()
    await expect(post(client, channel.id, { content: 'lost' })).rejects.toThrow('ECONNRESET')
    discord.comeOnline()
    await discord.waitFor(() => discord.isConnected, 15_000)
    await post(client, channel.id, { content: 'back' })
    expect(discord.textsIn(channel.id)).toEqual(['back'])
  })

  it('answers a command, at once or after a while', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished, { commands: COMMANDS })
    client.on('interactionCreate', (interaction) => {
      if (!interaction.isChatInputCommand()) return
      const text = interaction.options.getString('text', true)
      if (text === 'now') void interaction.reply(`You said ${text}`)
      else void interaction.deferReply({ flags: 64 }).then(() => interaction.editReply(`You said ${text}`))
    })
    const now = discord.slash(ada, channel.id, 'ask', { text: 'now' })
    const later = discord.slash(ada, channel.id, 'ask', { text: 'later' })
    expect([
      [await now.answer(), now.isEphemeral, now.callback],
      [await later.answer(), later.isEphemeral, later.callback],
      discord.textsIn(channel.id),
    ]).toEqual([
      ['You said now', false, InteractionResponseType.ChannelMessageWithSource],
      ['You said later', true, InteractionResponseType.DeferredChannelMessageWithSource],
      ['You said now'],
    ])
  })

  it('must answer a command in time, and once', async ({ onTestFinished }) => {
    const { discord, client, channel, ada, seen } = await stage(onTestFinished, { commands: COMMANDS })
    const late = discord.slash(ada, channel.id, 'ask', { text: 'late' })
    discord.advance(3_001)
    const twice = discord.slash(ada, channel.id, 'ask', { text: 'twice' })
    await discord.waitFor(() => seen('INTERACTION_CREATE').length === 2)
    const reply = async (id: string) => {
      const { token } = seen('INTERACTION_CREATE').find((interaction) => interaction['id'] === id) ?? {}
      const body = { type: 4, data: { content: 'yes' } }
      const request = client.rest.post(Routes.interactionCallback(id, String(token)), { body, auth: false })
      return request.then(
        () => 'taken',
        ({ code }: { code: number }) => code,
      )
    }
    expect([await reply(late.id), await reply(twice.id), await reply(twice.id)]).toEqual([10_062, 'taken', 40_060])
  })

  it('autocompletes', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished, { commands: COMMANDS })
    client.on('interactionCreate', (interaction) => {
      if (!interaction.isAutocomplete()) return
      const typed = interaction.options.getFocused()
      void interaction.respond([{ name: `${typed}net`, value: 'sonnet' }])
    })
    expect(await discord.autocomplete(ada, channel.id, 'model', 'name', 'son')).toEqual([
      { name: 'sonnet', value: 'sonnet' },
    ])
  })

  it('hears a button', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    client.on('interactionCreate', (interaction) => {
      if (interaction.isButton())
        void interaction.update({ content: `${interaction.customId} pressed`, components: [] })
    })
    const button = { type: 2, style: 4, label: 'Stop', custom_id: 'stop:1' }
    const message = await post(client, channel.id, { content: 'x', components: [{ type: 1, components: [button] }] })
    const before = discord.buttonsOf(message)
    const answer = await discord.press(ada, message, 'stop:1').answer()
    expect([before, answer, discord.buttonsOf(message)]).toEqual([['stop:1'], 'stop:1 pressed', []])
  })

  it('sends a file and fetches one', async ({ onTestFinished }) => {
    const { discord, client, channel, ada } = await stage(onTestFinished)
    const files = [{ name: 'my notes.txt', data: Buffer.from('from the bot') }]
    await client.rest.post(Routes.channelMessages(channel.id), { body: { content: 'here' }, files })
    discord.say(ada, channel.id, 'mine', { attachments: [{ name: 'a.txt', content: 'from ada' }] })
    const attachments = discord.messagesIn(channel.id).flatMap(({ attachments }) => attachments)
    const contents = await Promise.all(attachments.map(async ({ url }) => (await fetch(url)).text()))
    expect([attachments.map(({ filename, size }) => [filename, size]), contents]).toEqual([
      [
        ['my_notes.txt', 12],
        ['a.txt', 8],
      ],
      ['from the bot', 'from ada'],
    ])
  })

  it('pings nobody when it may not', async ({ onTestFinished }) => {
    const { client, channel, ada } = await stage(onTestFinished)
    const content = `<@${ada.id}> @everyone`
    const quiet = await post(client, channel.id, { content, allowed_mentions: { parse: [] } })
    const loud = await post(client, channel.id, { content })
    expect([quiet, loud].map(({ mentions, mention_everyone: all }) => [mentions.map(({ id }) => id), all])).toEqual([
      [[], false],
      [[ada.id], true],
    ])
  })

  it('is owned by a person or by a team', async ({ onTestFinished }) => {
    const { discord, client } = await stage(onTestFinished)
    const owners = async () => {
      const application = await client.application?.fetch()
      return application?.owner && 'members' in application.owner
        ? application.owner.members.map(({ id }) => id)
        : application?.owner?.id
    }
    const alone = await owners()
    discord.makeTeam([discord.owner])
    expect([alone, await owners()]).toEqual([discord.owner.id, [discord.owner.id]])
  })
})

it.for([
  ['no JSON', ['{'], 4002],
  ['an unknown opcode', ['{"op":99}'], 4001],
  ['a presence before IDENTIFY', ['{"op":3,"d":{}}'], 4003],
  ['a wrong token', ['{"op":2,"d":{"token":"wrong","intents":1}}'], 4004],
  [
    'a second IDENTIFY',
    ['{"op":2,"d":{"token":"TOKEN","intents":1}}', '{"op":2,"d":{"token":"TOKEN","intents":1}}'],
    4005,
  ],
  ['intents that do not exist', ['{"op":2,"d":{"token":"TOKEN","intents":1073741824}}'], 4013],
  ['a privileged intent that is off', ['{"op":2,"d":{"token":"TOKEN","intents":2}}'], 4014],
] as const)('closes the socket after %s', async ([, payloads, expected], { onTestFinished }) => {
  const discord = await FakeDiscord.start()
  onTestFinished(async () => discord.stop())
  const socket = new WebSocket(`${discord.apiUrl.replace('http', 'ws').replace('/api', '')}?v=10&encoding=json`)
  const [hello] = (await once(socket, 'message')) as [Buffer]
  for (const payload of payloads) socket.send(payload.replaceAll('TOKEN', discord.token))
  const [code] = (await once(socket, 'close')) as [number]
  expect([(JSON.parse(hello.toString()) as { op: number }).op, code]).toEqual([10, expected])
})

it('carries 2,000 messages of 200 channels, each once and in order', async ({ onTestFinished }) => {
  const { discord, guild, ada, seen } = await stage(onTestFinished)
  const channels = Array.from({ length: 200 }, (_, index) => discord.addChannel(guild, { name: `c${index}` }))
  const said: string[] = []
  for (let round = 0; round < 10; round += 1) {
    for (const { id } of channels) said.push(discord.say(ada, id, `message ${round}`).id)
  }
  await discord.waitFor(() => seen('MESSAGE_CREATE').length >= 2_000)
  expect(seen('MESSAGE_CREATE').map(({ id }) => id)).toEqual(said)
})

it('fails by chance in the same way for the same seed', async ({ onTestFinished }) => {
  const run = async () => {
    const { discord, client, channel } = await stage(onTestFinished)
    Object.assign(discord.limits, { typing: { limit: 1_000, perMs: 1_000 } })
    const faults = [{ kind: 'status', status: 418 } as const]
    discord.failAtRandom({ rate: 0.3, seed: 7, faults })
    for (let index = 0; index < 30; index += 1) {
      await client.rest.post(Routes.channelTyping(channel.id)).catch(({ status }: { status: number }) => {
        if (status !== 418) throw new Error(`Unexpected status ${status}`)
      })
    }
    return discord.requestsTo('POST /channels/:id/typing').map(({ status }) => status)
  }
  const first = await run()
  expect([first.filter((status) => status === 418).length > 3, await run()]).toEqual([true, first])
})

interface World {
  discord: FakeDiscord
  guild: FakeGuild
  channel: FakeChannel
  ada: APIUser
}

interface StageOptions {
  intents?: number
  commands?: object[]
  prepare?: (world: World) => void
}

/** A logged-in client, and what the gateway sent it. */
interface Stage extends World {
  client: Client
  newClient(intents: number): Client
  seen(event: string): Record<string, unknown>[]
}

/** Everything it creates is closed with the test. */
async function stage(
  onTestFinished: (handler: OnTestFinishedHandler) => void,
  { intents = ALL_INTENTS, commands, prepare }: StageOptions = {},
): Promise<Stage> {
  const discord = await FakeDiscord.start()
  onTestFinished(async () => discord.stop())
  const guild = discord.addGuild()
  const made = { discord, guild, channel: discord.addChannel(guild), ada: discord.addUser('ada') }
  prepare?.(made)
  const newClient = (intents: number) => {
    const client = new Client({ intents, rest: { api: discord.apiUrl } })
    // A broken socket does not fail the test; without a listener it would end the process.
    client.on('error', () => {})
    client.on('shardError', () => {})
    onTestFinished(async () => client.destroy())
    return client
  }
  const client = newClient(intents)
  const events: { t: string; d: Record<string, unknown> }[] = []
  client.on('raw', (event: { t: string; d: Record<string, unknown> }) => events.push(event))
  await client.login(discord.token)
  if (commands) await client.rest.put(Routes.applicationCommands(discord.bot.id), { body: commands })
  const seen = (name: string) => events.filter(({ t }) => t === name).map(({ d }) => d)
  return { ...made, client, newClient, seen }
}

async function post(client: Client, channelId: string, body: object): Promise<APIMessage> {
  return (await client.rest.post(Routes.channelMessages(channelId), { body })) as APIMessage
}
