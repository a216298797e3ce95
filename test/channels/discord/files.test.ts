import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type APIMessage, PermissionFlagsBits } from 'discord.js'
import { describe, it } from 'vitest'
import type { FakeDiscord, GivenFile } from './fake-discord.js'
import { steps } from '../../kit/steps-agent.js'
import { answered, answersIn, beginThread, openScene, type Scene } from './stage.js'
import { listen } from '../../kit/loopback.js'

/** Sends a message of the owner with files, and waits for that many answers. */
async function send(scene: Scene, text: string, attachments: GivenFile[], count = 1): Promise<string> {
  const { discord, channel } = scene
  const { id } = discord.say(discord.owner, channel.id, text, { mentions: [discord.bot], attachments })
  await answered(discord, id, count)
  return id
}

function promptsOf({ stage }: Scene): string[] {
  return stage.journal().map(({ prompt }) => prompt)
}

function lastMessage(discord: FakeDiscord, channelId: string): APIMessage | undefined {
  return discord.messagesIn(channelId).findLast(({ author }) => author.id === discord.bot.id)
}

async function contentOf(file: { url: string } | undefined): Promise<string> {
  return (await fetch(file?.url ?? '')).text()
}

describe.concurrent('files that people send', () => {
  it('are saved where the agent works, and their paths passed to it', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const id = await send(scene, 'what is in these?', [
      { name: 'notes.txt', content: 'hello' },
      { name: 'data.json', content: '{"a": 1}' },
    ])
    const inbox = `.aetheel/inbox/${id}`
    const read = (name: string) => readFileSync(join(scene.stage.workingDir, inbox, name), 'utf8')
    expect([promptsOf(scene), read('notes.txt'), read('data.json'), scene.stage.problems()]).toEqual([
      [
        'what is in these?\n' +
          `Attached file: ${inbox}/notes.txt (text/plain, 5 bytes)\n` +
          `Attached file: ${inbox}/data.json (application/json, 8 bytes)`,
      ],
      'hello',
      '{"a": 1}',
      [],
    ])
  })

  it('are saved in the project of the channel', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ stage, channel }) => ({
      projects: { site: { directory: stage.makeDirectory('site'), discordChannels: [channel.id] } },
    }))
    const { stage } = scene
    const id = await send(scene, 'look', [{ name: 'notes.txt', content: 'hello' }])
    const path = `.aetheel/inbox/${id}/notes.txt`
    expect([existsSync(join(stage.directory, 'site', path)), existsSync(join(stage.workingDir, path))]).toEqual([
      true,
      false,
    ])
  })

  it('need no text beside them', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const id = await send(scene, '', [{ name: 'notes.txt', content: 'hello' }])
    expect([promptsOf(scene), scene.discord.threadOf(id)?.name]).toEqual([
      [`Attached file: .aetheel/inbox/${id}/notes.txt (text/plain, 5 bytes)`],
      'Conversation',
    ])
  })

  it('are reported to the person if too large, and the message is answered', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { attachmentMaxMb: 1 })
    const { discord } = scene
    const id = await send(scene, 'look', [{ name: 'big.txt', content: 'x'.repeat(1024 * 1024 + 1) }])
    expect([(await answered(discord, id, 2)).toSorted(), promptsOf(scene)]).toEqual([
      [
        String.raw`-# The file "big.txt" was not saved: it has 1.1 MB, and the limit is 1 MB. Send a smaller one, or raise ATTACHMENT\_MAX\_MB.`,
        'You said: look',
      ],
      ['look'],
    ])
  })

  it('are reported to the person if their type is not allowed', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { attachmentTypes: ['image/*'] })
    const { discord } = scene
    const thread = await beginThread(scene)
    const attachments = [
      { name: 'notes.txt', content: 'hello' },
      { name: 'picture.png', content: 'PNG' },
    ]
    const { id } = discord.say(discord.owner, thread.id, 'look', { attachments })
    await answered(discord, thread.id, 3)
    expect([answersIn(discord, thread.id), promptsOf(scene)[1]]).toEqual([
      expect.arrayContaining([
        String.raw`-# The file "notes.txt" was not saved: files of type text/plain are not accepted here. ATTACHMENT\_TYPES lists the accepted types.`,
      ]),
      `look\nAttached file: .aetheel/inbox/${id}/picture.png (image/png, 3 bytes)`,
    ])
  })

  it('are reported to the person if none was accepted and there was no text', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { attachmentTypes: ['image/*'] })
    const { discord } = scene
    const direct = discord.directChannel(discord.owner)
    discord.say(discord.owner, direct.id, '', { attachments: [{ name: 'notes.txt', content: 'hello' }] })
    await answered(discord, direct.id)
    discord.say(discord.owner, direct.id, 'and now?')
    const answers = await answered(discord, direct.id, 2)
    expect([answers.slice(0, -1).join('\n'), promptsOf(scene)]).toEqual([
      expect.stringContaining('The file "notes.txt" was not saved: files of type text/plain'),
      ['and now?'],
    ])
  })

  it('are reported once, in the thread of the message, if refused in a channel', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { attachmentTypes: ['image/*'] })
    const { discord, channel } = scene
    const id = await send(scene, '', [{ name: 'notes.txt', content: 'hello' }])
    discord.say(discord.owner, id, 'and now?')
    await answered(discord, id, 2)
    expect([answersIn(discord, id), answersIn(discord, channel.id), promptsOf(scene)]).toEqual([
      [expect.stringContaining('The file "notes.txt" was not saved'), 'You said: and now?'],
      [],
      ['and now?'],
    ])
  })

  it('are reported to the person if they cannot be fetched', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    discord.fail('GET /attachments/**', { kind: 'status', status: 404 })
    const id = await send(scene, 'look', [{ name: 'notes.txt', content: 'hello' }])
    expect([(await answered(discord, id, 2)).toSorted(), promptsOf(scene)]).toEqual([
      [
        expect.stringMatching(
          /^-# The file "notes\.txt" was not saved: it could not be fetched \(.*404\)\. Send it again\.$/,
        ),
        'You said: look',
      ],
      ['look'],
    ])
  })

  it('stay with their message when its text is edited while it waits', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { stage, discord } = scene
    const direct = discord.directChannel(discord.owner)
    discord.say(discord.owner, direct.id, steps({ hold: 'it' }, { text: 'released' }))
    const attachments = [{ name: 'notes.txt', content: 'hello' }]
    const waiting = discord.say(discord.owner, direct.id, 'the old text', { attachments })
    discord.edit(waiting, 'the new text')
    const last = discord.say(discord.owner, direct.id, 'the last')
    await discord.waitFor(() => discord.reactionsOn(last.id).length > 0)
    stage.release('it')
    await answered(discord, direct.id, 3)
    expect(promptsOf(scene)[1]).toBe(
      `the new text\nAttached file: .aetheel/inbox/${waiting.id}/notes.txt (text/plain, 5 bytes)`,
    )
  })
})

describe.concurrent('files that an agent names', () => {
  it('come with the answer, without the line that named them', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const list = [{ file: 'report.csv', content: 'a,b\n1,2\n' }, { text: 'Here it is.\n\nMEDIA:report.csv\n' }]
    const id = await send(scene, steps(...list), [])
    const message = lastMessage(discord, id)
    const [file, ...more] = message?.attachments ?? []
    expect([message?.content, file?.filename, await contentOf(file), more]).toEqual([
      'Here it is.',
      'report.csv',
      'a,b\n1,2\n',
      [],
    ])
  })

  it('come without text', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    const id = await send(scene, steps({ file: 'a.txt', content: 'A' }, { text: 'MEDIA:a.txt' }), [])
    const message = lastMessage(discord, id)
    expect([message?.content, message?.attachments.map(({ filename }) => filename)]).toEqual(['', ['a.txt']])
  })

  it('are reported to the person if they must not be sent, and the rest is sent', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, ({ stage }) => {
      writeFileSync(join(stage.directory, 'outside.txt'), 'private')
      symlinkSync(join(stage.directory, 'outside.txt'), join(stage.workingDir, 'link.txt'))
      return {}
    })
    const { discord } = scene
    const named = ['../outside.txt', 'link.txt', '.env', 'missing.txt', 'fine.txt'].map((path) => `MEDIA:${path}`)
    const list = [
      { file: '.env', content: 'SECRET=1' },
      { file: 'fine.txt', content: 'fine' },
      { text: ['Look.', ...named].join('\n') },
    ]
    const id = await send(scene, steps(...list), [])
    const message = lastMessage(discord, id)
    const outside = "it is outside the project's directory. If it may be sent, ask for a copy inside it."
    expect([message?.content.split('\n\n'), message?.attachments.map(({ filename }) => filename)]).toEqual([
      [
        'Look.',
        `-# The file "../outside.txt" was not sent: ${outside}`,
        `-# The file "link.txt" was not sent: ${outside}`,
        expect.stringContaining('-# The file ".env" was not sent: files of this kind may hold secrets'),
        '-# The file "missing.txt" was not sent: it does not exist. Ask where it is.',
      ],
      ['fine.txt'],
    ])
  })

  it('come from directories of the operator, and never from the machine by its web address', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, ({ stage }) => {
      const shared = stage.makeDirectory('shared')
      writeFileSync(join(shared, 'plan.txt'), 'plan')
      return { mediaRoots: [shared] }
    })
    const { discord, stage } = scene
    let asked = 0
    const inside = createServer((_, response) => {
      asked += 1
      response.end('secret')
    })
    const port = await listen(inside, onTestFinished)
    const named = [`MEDIA:${join(stage.directory, 'shared/plan.txt')}`, `MEDIA:http://localhost:${port}/a.txt`]
    const id = await send(scene, steps({ text: ['Look.', ...named].join('\n') }), [])
    const message = lastMessage(discord, id)
    expect([message?.content, message?.attachments.map(({ filename }) => filename), asked]).toEqual([
      `Look.\n\n-# The file "http://localhost:${port}/a.txt" was not sent: localhost:${port} is not on the public internet, ` +
        "and files are fetched only from there. Open it yourself, or ask for a copy in the project's directory.",
      ['plan.txt'],
      0,
    ])
  })

  it('are reported to the person if Discord takes no files of that size', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished)
    const { discord } = scene
    discord.settings.uploadMaxBytes = 10
    const list = [{ file: 'large.txt', content: 'x'.repeat(20) }, { text: 'Here.\nMEDIA:large.txt' }]
    const id = await send(scene, steps(...list), [], 2)
    expect(answersIn(discord, id)).toEqual([
      'Here.',
      '-# Not sent, because Discord does not accept files of this size: large.txt',
    ])
  })

  it('are reported to the person if the bot may attach none', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, ({ discord, channel }) => {
      discord.deny(channel.id, PermissionFlagsBits.AttachFiles)
      return {}
    })
    const { discord } = scene
    const list = [{ file: 'a.txt', content: 'A' }, { text: 'Here.\nMEDIA:a.txt' }]
    const id = await send(scene, steps(...list), [], 2)
    expect(answersIn(discord, id)).toEqual([
      'Here.',
      '-# Not sent, because I need the Attach Files permission here: a.txt',
    ])
  })
})
