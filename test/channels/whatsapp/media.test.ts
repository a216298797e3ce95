// Files sent by people, files sent by agents, and voice messages that become text.

import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'vitest'
import { FileLinks } from '../../../src/channels/whatsapp/file-links.js'
import { nameFor, sendableType } from '../../../src/channels/whatsapp/media-types.js'
import { steps } from '../../kit/steps-agent.js'
import { ADA, PUBLIC_URL, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

const PICTURE = { type: 'image/jpeg', content: Buffer.from('a picture') }
const VOICE = { type: 'audio/ogg', content: Buffer.from('hello from a voice') }

describe('A file that a person sends', { concurrent: true }, () => {
  it.for([true, false])('is saved and named to the agent (webhook: %s)', async (isListening, context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({}, { isListening })
    const { twilio } = stage

    if (isListening) await twilio.say(ADA, 'look', [PICTURE])
    else twilio.write(ADA, 'look', [PICTURE])
    await until(() => stage.journal().length === 1, 'the run')

    const [{ prompt } = { prompt: '' }] = stage.journal()
    const path = /Attached file: (\S+) \(image\/jpeg, 9 bytes\)/.exec(prompt)?.[1] ?? ''
    expect([prompt, readFileSync(join(stage.workingDir, path), 'utf8')]).toEqual([
      expect.stringContaining('look'),
      'a picture',
    ])
  })

  it('may come without text, and several at once', async ({ expect, onTestFinished }) => {
    const { stage, twilio } = await open(onTestFinished)

    await twilio.say(ADA, '', [PICTURE, { type: 'application/pdf', content: Buffer.from('%PDF') }])
    await until(() => stage.journal().length === 1, 'the run')

    const [{ prompt } = { prompt: '' }] = stage.journal()
    expect(prompt.match(/[\w-]+\.\w+ \(/g)).toEqual(['image.jpg (', 'document-2.pdf ('])
  })

  it('that is elsewhere on this network is not fetched, and the person is told', async (context) => {
    const { expect, onTestFinished } = context
    const { stage, twilio } = await open(onTestFinished)
    const other = await WhatsAppStage.open(onTestFinished)

    await twilio.say(ADA, 'look', [{ ...PICTURE, redirectTo: `${other.twilio.apiUrl}/v2/Channels/Senders` }])

    await expect
      .poll(() => twilio.textsTo(ADA).toSorted())
      .toEqual([expect.stringMatching(/^The file "image.jpg" was not saved: .*public internet/), 'You said: look'])
    expect([other.twilio.asked, stage.journal().length]).toEqual([[], 1])
  })

  it('that is too large is not fetched completely, and the person is told', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.startWith(stage.config({}, { attachmentMaxMb: 1 }))
    const content = Buffer.alloc(2 * 1024 * 1024)

    await stage.twilio.say(ADA, 'look', [{ ...PICTURE, content }])

    await expect
      .poll(() => stage.twilio.textsTo(ADA).toSorted())
      .toEqual([
        'The file "image.jpg" was not saved: it is larger than the limit of 1 MB. Send a smaller one, or raise ATTACHMENT_MAX_MB.',
        'You said: look',
      ])
  })
})

describe('A file that an agent sends', { concurrent: true }, () => {
  it('goes out by a link that Twilio can fetch, with the text', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)

    await twilio.say(ADA, steps({ file: 'plot one.png', content: 'pixels' }, { text: 'Here.\nMEDIA: plot one.png' }))
    const [sent] = await until(() => twilio.sentTo(ADA).length === 1 && twilio.sentTo(ADA), 'the answer')

    const fetched = await twilio.fetchFile(sent?.mediaUrl ?? '')
    expect([sent?.body, fetched]).toEqual(['Here.', { status: 200, body: 'pixels', type: 'image/png' }])
  })

  it('goes out one by one when there are several', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    const files = ['a.png', 'b.pdf'].map((file) => ({ file, content: file }))

    await twilio.say(ADA, steps(...files, { text: 'Two.\nMEDIA: a.png\nMEDIA: b.pdf\nMEDIA: https://x.example/c.jpg' }))
    const sent = await until(() => twilio.sentTo(ADA).length === 3 && twilio.sentTo(ADA), 'the answer')

    expect(sent.map(({ body, mediaUrl }) => [body, mediaUrl?.split('/').at(-1)])).toEqual([
      ['Two.', 'a.png'],
      ['', 'b.pdf'],
      ['', 'c.jpg'],
    ])
  })

  it.for([
    ['is not there', 'none.png', /it does not exist/],
    ['is outside', '/etc/hostname.png', /outside/],
    [
      'is of a kind that WhatsApp does not take',
      'a.zip',
      /WhatsApp accepts only pictures.* Ask for it as a PDF or a picture\.$/,
    ],
    ['may hold secrets', '.env', /may hold secrets/],
    ['is of such a kind and outside', '/etc/passwd', /outside/],
    ['is on this machine', 'http://127.0.0.1/x.jpg', /127\.0\.0\.1 is not on the public internet/],
    ['is in this network', 'http://10.0.0.1:8080/x.jpg', /10\.0\.0\.1:8080 is not on the public internet/],
    [
      'has a password in its address',
      'https://u:p@x.example/a.png',
      /"https:\/\/x\.example\/a\.png".* its URL contains a user name or a password/,
    ],
    ['is a link to elsewhere', 'link.png', /outside/],
    ['is too large', 'large.png', /the limit is 1 MB\. Ask for a smaller part/],
  ] as const)('that %s is not sent, and the person is told', async ([, path, reason], context) => {
    const { expect, onTestFinished } = context
    const { stage, twilio } = await open(onTestFinished, { mediaMaxMb: 1 })
    writeFileSync(join(stage.workingDir, 'a.zip'), 'zip')
    writeFileSync(join(stage.workingDir, '.env'), 'KEY=1')
    writeFileSync(join(stage.workingDir, 'large.png'), Buffer.alloc(1024 * 1024 + 1))
    writeFileSync(join(stage.directory, 'secret.png'), 'secret')
    symlinkSync(join(stage.directory, 'secret.png'), join(stage.workingDir, 'link.png'))

    await twilio.say(ADA, steps({ text: `Here.\nMEDIA: ${path}` }))

    await expect
      .poll(() => twilio.sentTo(ADA).map(({ body, mediaUrl }) => [body, mediaUrl]))
      .toEqual([
        ['Here.', undefined],
        [expect.stringMatching(reason), undefined],
      ])
  })

  it('cannot go out without a public URL, and the person is told what to do', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({}, { isListening: false })
    const { twilio } = stage

    twilio.write(ADA, steps({ file: 'a.png', content: 'pixels' }, { text: 'Here.\nMEDIA: a.png' }))

    await expect
      .poll(() => twilio.textsTo(ADA))
      .toEqual(['Here.', expect.stringMatching(/^The file "a.png" was not sent: .*publicUrl/)])
  })

  it('that Twilio does not take does not keep the text back', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    twilio.fail('create', { kind: 'status', status: 400, code: 21620, message: 'Invalid media URL' })

    await twilio.say(ADA, steps({ file: 'a.png', content: 'pixels' }, { text: 'Here.\nMEDIA: a.png' }))

    await expect
      .poll(() => twilio.textsTo(ADA))
      .toEqual([expect.stringMatching(/^Here\.\n\nThe file "a.png" was not sent: Twilio cannot use the URL/)])
  })

  it('comes once, and so do the others, when one of them is gone by the second attempt', async (context) => {
    const { expect, onTestFinished } = context
    const { stage, twilio } = await open(onTestFinished)
    const names = ['a.png', 'b.png', 'c.png']
    for (const name of names) writeFileSync(join(stage.workingDir, name), name)
    twilio.fail('create', { kind: 'status', status: 500 }, 1, 2)

    await twilio.say(ADA, steps({ text: `Here.\n${names.map((name) => `MEDIA: ${name}`).join('\n')}` }))
    await until(() => twilio.faultCount === 1, 'the fault')
    rmSync(join(stage.workingDir, 'a.png'))
    await twilio.say(ADA, 'last')
    await until(() => twilio.textsTo(ADA).includes('You said: last'), 'the next answer')

    expect(twilio.sentTo(ADA).map(({ body, mediaUrl }) => [body, mediaUrl?.split('/').at(-1)])).toEqual([
      ['Here.', 'a.png'],
      ['', 'b.png'],
      ['', 'c.png'],
      ['You said: last', undefined],
    ])
  })

  it('that Twilio accepted without saying so comes once, even if it is gone since', async (context) => {
    const { expect, onTestFinished } = context
    const { stage, twilio } = await open(onTestFinished)
    for (const name of ['a.png', 'b.png']) writeFileSync(join(stage.workingDir, name), name)
    twilio.fail('create', { kind: 'drop', hasEffect: true })

    await twilio.say(ADA, steps({ text: 'Here.\nMEDIA: a.png\nMEDIA: b.png' }))
    await until(() => twilio.faultCount === 1, 'the fault')
    rmSync(join(stage.workingDir, 'a.png'))
    await twilio.say(ADA, 'last')
    await until(() => twilio.textsTo(ADA).includes('You said: last'), 'the next answer')

    expect(twilio.sentTo(ADA).map(({ body, mediaUrl }) => [body, mediaUrl?.split('/').at(-1)])).toEqual([
      ['Here.', 'a.png'],
      ['', 'b.png'],
      ['You said: last', undefined],
    ])
  })

  it('is judged again whenever it is fetched', async ({ expect, onTestFinished }) => {
    const { stage, twilio } = await open(onTestFinished)
    await twilio.say(ADA, steps({ file: 'a.png', content: 'pixels' }, { text: 'Here.\nMEDIA: a.png' }))
    const [sent] = await until(() => twilio.sentTo(ADA).length === 1 && twilio.sentTo(ADA), 'the answer')
    const url = sent?.mediaUrl ?? ''
    const link = url.split('/').at(-2) ?? ''
    const other = `${link.slice(0, 30)}${link[30] === 'A' ? 'B' : 'A'}${link.slice(31)}`

    const statuses = [await twilio.fetchFile(url), await twilio.fetchFile(url.replace(link, other))]
    writeFileSync(join(stage.directory, 'secret.png'), 'secret')
    rmSync(join(stage.workingDir, 'a.png'))
    symlinkSync(join(stage.directory, 'secret.png'), join(stage.workingDir, 'a.png'))
    statuses.push(await twilio.fetchFile(url), await twilio.fetchFile(`${PUBLIC_URL}/whatsapp/files/`))

    expect(statuses.map(({ status }) => status)).toEqual([200, 404, 404, 404])
  })

  it('is fetched and nothing else', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    const form = new URLSearchParams({ a: '1' })
    const answers = [await twilio.post('/whatsapp/files/x', form), await twilio.post('/whatsapp/files/x/a.png', form)]
    expect(answers.map(({ status, body }) => `${status} ${body}`)).toEqual([
      '405 Files are fetched here, by GET.',
      '405 Files are fetched here, by GET.',
    ])
  })
})

describe('A link to a file', () => {
  it('is valid for a quarter of an hour, and only with the key', ({ expect }) => {
    let now = 1_000_000
    const links = new FileLinks('token', () => now)
    const file = { path: 'a b.png', directory: '/work' }
    const link = links.seal(file)

    const early = links.open(link)
    now += 15 * 60_000
    const last = links.open(link)
    now += 1

    expect([early, last, links.open(link), new FileLinks('other', () => 0).open(link), links.open('')]).toEqual([
      file,
      file,
      undefined,
      undefined,
      undefined,
    ])
  })

  it('reveals nothing about its target', ({ expect }) => {
    const links = new FileLinks('token', () => 0)
    const file = { path: '/srv/site/a.png', directory: '/srv/site' }
    const [one, other] = [links.seal(file), links.seal(file)]
    expect([one === other, /^[\w-]+$/.test(one), Buffer.from(one, 'base64url').includes('work')]).toEqual([
      false,
      true,
      false,
    ])
  })
})

describe('A voice message', { concurrent: true }, () => {
  it('becomes text by the command of the operator, and is kept', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const command = makeCommand(stage, 'cat "$2"; test "$1" = audio/ogg')
    await stage.start({ transcribeAudio: { command: [command, '{{MediaType}}', '{{MediaPath}}'] } })

    await stage.twilio.say(ADA, '', [VOICE])
    await until(() => stage.journal().length === 1, 'the run')

    expect(stage.journal()[0]?.prompt).toMatch(/hello from a voice/)
    await expect.poll(() => stage.twilio.sentTo(ADA).length).toEqual(1)
  })

  it('with words beside it is given to the agent with both', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const command = makeCommand(stage, 'cat "$1"')
    await stage.start({ transcribeAudio: { command: [command, '{{MediaPath}}'] } })

    await stage.twilio.say(ADA, 'my words', [VOICE])
    await until(() => stage.journal().length === 1, 'the run')

    expect(stage.journal()[0]?.prompt).toMatch(/\n\nmy words\n+Transcript:\nhello from a voice$/)
  })

  it.for([
    ['fails', 'echo "no model" >&2; exit 3', 60, /ended with exit code 3: no model/],
    ['takes too long', 'exec sleep 100', 1, /did not finish within 1000 ms/],
    ['prints nothing', 'true', 60, /no speech was recognised/],
  ] as const)('stays as it is when the command %s, and the person is told', async (scenario, context) => {
    const [, script, timeoutSeconds, reason] = scenario
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({
      transcribeAudio: { command: [makeCommand(stage, script), '{{MediaPath}}'], timeoutSeconds },
    })

    await stage.twilio.say(ADA, 'listen', [VOICE])

    await expect
      .poll(() => stage.twilio.textsTo(ADA).toSorted())
      .toEqual([expect.stringMatching(/could not be transcribed/), expect.stringMatching(/^You said: .*listen/s)])
    expect(stage.twilio.textsTo(ADA).join('\n')).toMatch(reason)
    expect(stage.alive()).toEqual([])
  })
})

describe('The type of a file', () => {
  it('is known by its name, for what WhatsApp takes', ({ expect }) => {
    const names = ['a.PNG', 'b.jpeg', 'c.pdf', 'd.tar.gz', 'e', '.png', 'f.mp4']
    expect(names.map((name) => sendableType(name))).toEqual([
      'image/png',
      'image/jpeg',
      'application/pdf',
      undefined,
      undefined,
      'image/png',
      'video/mp4',
    ])
  })

  it('names a file that comes without a name', ({ expect }) => {
    const types = ['image/jpeg', 'audio/ogg; codecs=opus', 'application/pdf', 'text/vcard', 'application/x-weird+y', '']
    expect(types.map((type, index) => nameFor(type, index))).toEqual([
      'image.jpg',
      'audio-2.ogg',
      'document-3.pdf',
      'document-4.vcf',
      'document-5.bin',
      'document-6.bin',
    ])
  })
})

function makeCommand({ directory }: WhatsAppStage, script: string): string {
  const path = join(directory, 'transcribe.sh')
  if (!existsSync(path)) writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

async function open(onTestFinished: TestContext['onTestFinished'], reply: object = {}) {
  const stage = await WhatsAppStage.open(onTestFinished)
  await stage.start(reply)
  return { stage, twilio: stage.twilio }
}
