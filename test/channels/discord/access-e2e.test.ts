import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { answered, beginThread, progressIn, openScene, type Scene } from './stage.js'
import { until } from '../../kit/waiting.js'

/** What the store holds of a person's message. */
async function traceOf({ gateway }: Scene, platformId: string) {
  return {
    message: await gateway.store.inbox.findByPlatformId('discord', platformId),
    conversations: await gateway.store.conversations.addresses('discord', 0),
  }
}

describe.concurrent('who may talk to the bot', () => {
  it('answers only its owner unless opened, and says once how to open it', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, channel, ada } = scene
    const first = discord.say(ada, channel.id, 'my secret plan', { mentions: [discord.bot] })
    await answered(discord, channel.id)
    discord.say(ada, channel.id, 'are you there?', { mentions: [discord.bot] })
    const trace = await traceOf(scene, first.id)
    const { id } = discord.say(discord.owner, channel.id, 'hello', { mentions: [discord.bot] })
    await answered(discord, id)
    const [refusal, ...more] = discord.messagesIn(channel.id).filter(({ author }) => author.id === discord.bot.id)
    expect([
      refusal?.content,
      refusal?.message_reference?.message_id,
      more,
      discord.reactionsOn(first.id),
      trace,
      discord.threadOf(first.id),
      stage.journal().map(({ prompt }) => prompt),
      stage.logged.some((line) => line.includes('secret plan')),
    ]).toEqual([
      expect.stringMatching(new RegExp(`/allow ${ada.id}.*${channel.id}.*discordChannels.*aetheel.json5`)),
      first.id,
      [],
      [],
      { message: undefined, conversations: [] },
      undefined,
      ['hello'],
      false,
    ])
  })

  it('refuses a stranger in a direct message, with the id to let in', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ guild }) => ({ discordGuilds: [guild.id] }))
    const { stage, discord, ada } = scene
    const { id } = discord.directChannel(ada)
    const said = discord.say(ada, id, 'hello')
    expect([await answered(discord, id), await traceOf(scene, said.id), stage.journal()]).toEqual([
      ['I only answer people my owner has let in. To let you in, they can type `/allow ' + ada.id + '`.'],
      { message: undefined, conversations: [] },
      [],
    ])
  })

  it('does not let a stranger into the thread of another', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, ada } = scene
    const thread = await beginThread(scene)
    const said = discord.say(ada, thread.id, 'me, too')
    await answered(discord, thread.id, 2)
    discord.say(discord.owner, thread.id, 'go on')
    await answered(discord, thread.id, 3)
    expect([stage.journal().map(({ prompt }) => prompt), (await traceOf(scene, said.id)).message]).toEqual([
      ['hello', 'go on'],
      undefined,
    ])
  })

  it('lets everybody in a listed server in, and nobody in others', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ guild }) => ({ discordGuilds: [guild.id] }))
    const { discord, channel, ada } = scene
    const elsewhere = discord.addChannel(discord.addGuild())
    discord.say(ada, elsewhere.id, 'elsewhere', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'here', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, elsewhere.id)])
    expect(promptsOf(scene)).toEqual(['here'])
  })

  it('lets everybody in a listed channel in, and in its threads', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel }) => ({ discordChannels: [channel.id] }))
    const { discord, guild, channel, ada, ben } = scene
    const elsewhere = discord.addChannel(guild)
    discord.say(ada, elsewhere.id, 'elsewhere', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'here', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, elsewhere.id)])
    discord.say(ben, id, 'in the thread')
    await answered(discord, id, 2)
    expect(promptsOf(scene)).toEqual(['here', 'in the thread'])
  })

  it('lets listed people in, in direct messages too', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ ada }) => ({ discordUsers: [ada.id] }))
    const { discord, channel, ada, ben } = scene
    discord.say(ben, channel.id, 'from ben', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'in a channel', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, channel.id)])
    const direct = discord.directChannel(ada)
    discord.say(ada, direct.id, 'directly')
    await answered(discord, direct.id)
    expect(promptsOf(scene)).toEqual(['in a channel', 'directly'])
  })

  it('lets people with a listed role in', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ discord, guild, ada }) => ({
      discordRoles: [discord.addRole(guild, 'crew', { users: [ada] }).id],
    }))
    const { discord, channel, ada, ben } = scene
    discord.say(ben, channel.id, 'from ben', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'from ada', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, channel.id)])
    expect(promptsOf(scene)).toEqual(['from ada'])
  })

  it('requires both place and person if both are listed', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ channel, ada }) => ({
      discordChannels: [channel.id],
      discordUsers: [ada.id],
    }))
    const { discord, guild, channel, ada, ben } = scene
    const elsewhere = discord.addChannel(guild)
    discord.say(ada, elsewhere.id, 'ada elsewhere', { mentions: [discord.bot] })
    discord.say(ben, channel.id, 'ben here', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'ada here', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, channel.id), answered(discord, elsewhere.id)])
    expect(promptsOf(scene)).toEqual(['ada here'])
  })

  it('takes every member of the team that owns the application as its owner', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ discord, ada, ben }) => {
      discord.makeTeam([ada, ben])
      return {}
    })
    const { discord, channel, ben } = scene
    discord.say(discord.owner, channel.id, 'from no member', { mentions: [discord.bot] })
    const { id } = discord.say(ben, channel.id, 'from a member', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, channel.id)])
    expect(promptsOf(scene)).toEqual(['from a member'])
  })

  it("takes the configured owner instead of the application's", async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ ada }) => ({ discordOwnerId: ada.id }))
    const { discord, channel, ada } = scene
    discord.say(discord.owner, channel.id, 'of the application', { mentions: [discord.bot] })
    const { id } = discord.say(ada, channel.id, 'named', { mentions: [discord.bot] })
    await Promise.all([answered(discord, id), answered(discord, channel.id)])
    expect(promptsOf(scene)).toEqual(['named'])
  })

  it('refuses the slash commands of a stranger privately, and suggests nothing', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { gateway, discord, channel, ada } = scene
    const handle = discord.slash(ada, channel.id, 'ask', { text: 'let me in' })
    const answer = await handle.answer()
    const choices = await discord.autocomplete(ada, channel.id, 'backend', 'name', '')
    const kept = await gateway.store.conversations.addresses('discord', 0)
    expect([answer, handle.isEphemeral, choices, kept, discord.messagesIn(channel.id), promptsOf(scene)]).toEqual([
      expect.stringContaining(`/allow ${ada.id}`),
      true,
      [],
      [],
      [],
      [],
    ])
  })

  it('refuses the click of a stranger privately, and stops nothing', async ({ expect, onTestFinished }) => {
    const { stage, discord, channel, ada } = await openScene(onTestFinished)
    const text = steps({ hold: 'it' }, { text: 'finished' })
    const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot] })
    const progress = await until(() => progressIn(discord, id), 'a progress message')
    const handle = discord.press(ada, progress, discord.buttonsOf(progress)[0] ?? '')
    const answer = await handle.answer()
    stage.release('it')
    expect([answer, handle.isEphemeral, await answered(discord, id)]).toEqual([
      expect.stringContaining(`/allow ${ada.id}`),
      true,
      ['finished'],
    ])
  })
})

describe.concurrent('/allow and /disallow', () => {
  it('let somebody in at once, also after a restart and directly, until it is taken back', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord, guild, channel, ada, ben, gateway } = scene
    const elsewhere = discord.addChannel(guild)
    const allowed = await discord.slash(discord.owner, channel.id, 'allow', { person: ada.id }).answer()
    const first = discord.say(ada, channel.id, 'one', { mentions: [discord.bot] })
    await answered(discord, first.id)
    // A person who was let in cannot let others in.
    const refused = await discord.slash(ada, channel.id, 'allow', { person: ben.id }).answer()
    await stage.stop(gateway)
    const next = await stage.start()
    const direct = discord.directChannel(ada)
    discord.say(ada, direct.id, 'two')
    await answered(discord, direct.id)
    const list = await discord.slash(discord.owner, channel.id, 'allow').answer()
    // Also as text, by a mention.
    discord.say(discord.owner, elsewhere.id, `/disallow <@${ada.id}>`, { mentions: [discord.bot] })
    const [taken] = await answered(discord, elsewhere.id)
    discord.say(ada, direct.id, 'three')
    const [, refusal] = await answered(discord, direct.id, 2)
    const audit = (await next.store.audit.list(9)).map(({ actor, action, subject }) => [actor, action, subject])
    expect([allowed, refused, list, taken, refusal, promptsOf(scene), audit]).toEqual([
      'ada now has access. /disallow revokes it.',
      'Only my owner may let people in.',
      `Let in by /allow:\nada (${ada.id}), by owner\nName a person after /allow.`,
      'ada no longer has access.',
      `I only answer people my owner has let in. To let you in, they can type \`/allow ${ada.id}\`.`,
      ['one', 'two'],
      [
        ['owner', 'access.disallow', `discord/${ada.id}`],
        ['owner', 'access.allow', `discord/${ada.id}`],
      ],
    ])
  })

  it('say what cannot be done, and change nothing', async ({ expect, onTestFinished }) => {
    const { discord, guild, channel, ada, ben, gateway } = await openScene(onTestFinished, ({ ben }) => ({
      discordUsers: [ben.id],
    }))
    const role = discord.addRole(guild, 'crew', { users: [] })
    const give = async (line: string): Promise<string | undefined> => {
      const { id } = discord.say(discord.owner, channel.id, line, { mentions: [discord.bot] })
      return until(
        () => discord.messagesIn(channel.id).find((one) => one.message_reference?.message_id === id)?.content,
        line,
      )
    }
    const said = [
      await give(`/allow <@${discord.bot.id}>`),
      await give('/allow @ada'),
      await give(`/allow <@&${role.id}>`),
      await give(`/allow <@${ada.id}> <@${ben.id}>`),
      await give(`/allow <@${discord.owner.id}>`),
      await give(`/disallow <@${ben.id}>`),
      await give(`/disallow ${ada.id}`),
    ]
    expect([said, await gateway.store.admissions.list(), await gateway.store.audit.list(9)]).toEqual([
      [
        'Nobody has been let in by /allow. Name a person after /allow.',
        'I cannot tell who you mean. Choose a name that Discord suggests after @, or write the id.',
        'That is a role. Add roles to discordRoles in aetheel.json5.',
        'Name one person at a time.',
        'owner already has access (my owner).',
        'ben still has access (listed in discordUsers). Change that in aetheel.json5 and restart the gateway.',
        `${ada.id} was not let in.`,
      ],
      [],
      [],
    ])
  })
})

function promptsOf({ stage }: Scene): string[] {
  return stage.journal().map(({ prompt }) => prompt)
}
