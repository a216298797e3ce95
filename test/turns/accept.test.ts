import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { channelHost } from '../../src/turns/accept.js'
import type { Acceptance, ChannelMessage, IncomingFile } from '../../src/channels/types.js'
import type { ConversationCommands } from '../../src/conversation/conversation-commands.js'
import { openTestStore } from '../kit/engines.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { queueOn } from '../kit/queue.js'

const NOW = 1_800_000_000_000

async function setup() {
  const directory = temporaryDirectory()
  const workingDir = join(directory, 'work')
  const site = join(directory, 'site')
  for (const path of [workingDir, site, join(directory, 'out'), join(directory, 'data')]) mkdirSync(path)
  const store = await openTestStore({ file: ':memory:' })
  await store.projects.put({ id: 'site', directory: site }, 'file', 1)
  const now = (): number => NOW
  const queue = queueOn(store, { maxQueueDepth: 10, replyExpiryMs: 50_000, now })
  const fired: unknown[] = []
  const taken: Acceptance[] = []
  const asked: unknown[] = []
  const woken = { times: 0 }
  /** Records its arguments. */
  const answer = async (...given: unknown[]): Promise<string> => {
    asked.push(given)
    return 'Done.'
  }
  const run = async (...given: unknown[]) => ({ text: await answer(...given), isChange: true })
  const host = channelHost('chat', {
    config: {
      home: join(directory, 'data'),
      workingDir,
      attachmentMaxMb: 1,
      attachmentTypes: ['text/*'],
      mediaRoots: [join(directory, 'out'), directory],
    },
    store,
    queue,
    worker: { accept: (...args) => queue.accept(...args), endMessage() {} },
    sender: { wake() {} },
    commands: { run, button: answer, suggest: async () => [] } as unknown as ConversationCommands,
    hooks: { fire: (name, payload) => fired.push([name, payload]) },
    audience: { accepted: (acceptance) => void taken.push(acceptance), undelivered() {} },
    onStep() {},
    wake: () => {
      woken.times += 1
    },
    now,
  })
  const textOf = async ({ messageId }: Acceptance) => (await store.inbox.get(messageId))?.text
  return { directory, workingDir, site, store, queue, host, fired, taken, asked, woken, textOf }
}

/** `reads` counts how often a file was fetched. */
function file(name: string, content: string, more: Partial<IncomingFile> = {}): IncomingFile & { reads: number } {
  const one = {
    name,
    type: 'text/plain',
    bytes: content.length,
    reads: 0,
    read: async () => {
      one.reads += 1
      return Buffer.from(content)
    },
    ...more,
  }
  return one
}

function message(platformId: string, more: Partial<ChannelMessage> = {}): ChannelMessage {
  return { address: 'a', platformId, author: 'ann', text: 'Look', ...more }
}

describe('a message', () => {
  it('is accepted, and reported to the hooks', async () => {
    const { host, fired, taken, textOf } = await setup()
    const acceptance = await host.onMessage(message('1'))
    const { messageId, conversationId } = acceptance
    expect([acceptance, taken, fired, await textOf(acceptance)]).toEqual([
      { status: 'accepted', messageId, conversationId, position: 0, notes: [] },
      [acceptance],
      [['message-received', { messageId, conversationId, channel: 'chat', status: 'accepted' }]],
      'Look',
    ])
  })

  it('that comes again is reported to no hook', async () => {
    const { host, fired } = await setup()
    const { messageId, conversationId } = await host.onMessage(message('1'))
    expect([await host.onMessage(message('1')), fired.length]).toEqual([
      { status: 'duplicate', messageId, conversationId },
      1,
    ])
  })

  it.each([
    ['/ask Look at it', 'Look at it'],
    ['/ASK\nLook', 'Look'],
    ['/asking', '/asking'],
    ['Look, /ask', 'Look, /ask'],
  ])('is meant without /ask before it: %j', async (text, meant) => {
    const { host, textOf } = await setup()
    expect(await textOf(await host.onMessage(message('1', { text })))).toBe(meant)
  })

  it.each([
    ['/stop', true],
    ['/model large', true],
    ['/ask /stop', false],
    ['/etc/hosts is empty', false],
    ['stop', false],
  ])('is a command or not: %j', async (line, isCommand) => {
    expect((await setup()).host.isCommand(line)).toBe(isCommand)
  })
})

describe('files of a message', () => {
  it('are saved where the agent works, and their paths passed to it', async () => {
    const { host, workingDir, textOf } = await setup()
    const files = [file('a.txt', 'Hello'), file('b.txt', 'World!')]
    const acceptance = await host.onMessage(message('1', { files }))
    const inbox = join(workingDir, '.aetheel/inbox/1')
    expect([acceptance, await textOf(acceptance), readFileSync(join(inbox, 'b.txt'), 'utf8')]).toEqual([
      { ...acceptance, status: 'accepted', position: 0, notes: [] },
      [
        'Look',
        'Attached file: .aetheel/inbox/1/a.txt (text/plain, 5 bytes)',
        'Attached file: .aetheel/inbox/1/b.txt (text/plain, 6 bytes)',
      ].join('\n'),
      'World!',
    ])
  })

  it('are there for command templates by the first of them, on a channel that has templates', async () => {
    const { host, store, workingDir } = await setup()
    const files = [file('a.txt', 'Hello'), file('b.txt', 'World!')]
    const optionsOf = async (platformId: string, more: Partial<ChannelMessage>) => {
      const { messageId } = await host.onMessage(message(platformId, more))
      return (await store.inbox.get(messageId))?.options
    }
    expect([
      await optionsOf('1', { files, options: { variables: { From: '+49' } } }),
      await optionsOf('2', { files, options: { model: 'm' } }),
      await optionsOf('3', { options: { variables: { From: '+49' } } }),
    ]).toEqual([
      {
        variables: { From: '+49', MediaPath: join(workingDir, '.aetheel/inbox/1/a.txt'), MediaType: 'text/plain' },
      },
      { model: 'm' },
      { variables: { From: '+49' } },
    ])
  })

  it('may come without a text', async () => {
    const { host, textOf } = await setup()
    const acceptance = await host.onMessage(message('1', { text: '', files: [file('a.txt', 'Hello')] }))
    expect(await textOf(acceptance)).toBe('Attached file: .aetheel/inbox/1/a.txt (text/plain, 5 bytes)')
  })

  it('are saved in the project that the operator gave to the place', async () => {
    const { host, site, workingDir } = await setup()
    await host.onMessage(message('1', { projectId: 'site', files: [file('a.txt', 'Hello')] }))
    expect([site, workingDir].map((path) => existsSync(join(path, '.aetheel/inbox/1/a.txt')))).toEqual([true, false])
  })

  it("are saved in the project chosen for the conversation's parent", async () => {
    const { host, store, site } = await setup()
    const { conversationId } = await host.onMessage(message('1', { address: 'room' }))
    await store.conversations.configure(conversationId, { projectId: 'site' })
    const files = [file('a.txt', 'Hello')]
    await host.onMessage(message('2', { address: 'room/thread', parent: 'room', files }))
    expect(existsSync(join(site, '.aetheel/inbox/2/a.txt'))).toBe(true)
  })

  it('cannot be put into a pod: the person is told, and the text is accepted', async () => {
    const { host, store, textOf, directory } = await setup()
    const pod = { namespace: 'agents', name: 'web-0' }
    const there = join(directory, 'in-the-pod')
    await store.projects.put({ id: 'web', directory: there, pod }, 'file', 1)
    const files = [file('a.txt', 'Hello'), file('b\n.txt', 'World')]
    const taken = await host.onMessage(message('1', { projectId: 'web', files }))
    const alone = await host.onMessage(message('2', { projectId: 'web', files, text: '' }))
    const note =
      'Not passed on: "a.txt", "b .txt". The agent works in the pod web-0 (namespace agents), which cannot receive files yet. Copy them there yourself and name their paths.'
    expect([taken, alone, await textOf(taken), files.map(({ reads }) => reads), existsSync(there)]).toEqual([
      { ...taken, status: 'accepted', notes: [note] },
      { ...alone, status: 'refused', reason: note },
      'Look',
      [0, 0],
      false,
    ])
  })

  it('are not fetched again for a message that comes again', async () => {
    const { host, textOf } = await setup()
    const one = file('a.txt', 'Hello')
    const first = await host.onMessage(message('1', { files: [one] }))
    const again = await host.onMessage(message('1', { files: [one] }))
    expect([again, one.reads, await textOf(again)]).toEqual([
      { status: 'duplicate', messageId: first.messageId, conversationId: first.conversationId },
      1,
      'Look\nAttached file: .aetheel/inbox/1/a.txt (text/plain, 5 bytes)',
    ])
  })

  it('that cannot be saved do not lose the message, and the person is told', async () => {
    const { host, textOf } = await setup()
    const large = file('large.txt', '', { bytes: 2 * 1024 * 1024 })
    const acceptance = await host.onMessage(message('1', { files: [large, file('a.txt', 'Hello')] }))
    expect([acceptance, large.reads, await textOf(acceptance)]).toEqual([
      { ...acceptance, status: 'accepted', notes: [expect.stringMatching(/^The file "large.txt" was not saved: /)] },
      0,
      'Look\nAttached file: .aetheel/inbox/1/a.txt (text/plain, 5 bytes)',
    ])
  })

  it('that cannot be taken and are all there is are the reason why the message is refused', async () => {
    const { host, store } = await setup()
    const large = file('large.txt', '', { bytes: 2 * 1024 * 1024 })
    const { status, conversationId } = await host.onMessage(message('1', { text: '', files: [large] }))
    const [told] = await store.outbox.history(conversationId, 9)
    expect([status, [told?.reply.text, ...(told?.reply.notes ?? [])].join(' ')]).toEqual([
      'refused',
      expect.stringContaining('The file "large.txt" was not saved: '),
    ])
  })

  it('that do not come are given up after a minute', async () => {
    const { host } = await setup()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    let isAsked = (): void => {}
    const asked = new Promise<void>((resolve) => (isAsked = resolve))
    const never = file('a.txt', 'Hello', {
      read: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
          isAsked()
        }),
    })
    const taking = host.onMessage(message('1', { files: [never] }))
    await asked
    vi.advanceTimersByTime(60_000)
    expect(await taking).toEqual(
      expect.objectContaining({ status: 'accepted', notes: [expect.stringContaining('it took longer than 60 s')] }),
    )
  })
})

describe('an edit', () => {
  it('changes a message that waits, with its files, which are not fetched again', async () => {
    const { host, textOf } = await setup()
    const one = file('a.txt', 'Hello')
    const acceptance = await host.onMessage(message('1', { files: [one] }))
    const outcome = await host.onEdit(message('1', { text: '/ask Look here', files: [one] }))
    expect([outcome, one.reads, await textOf(acceptance)]).toEqual([
      'changed',
      1,
      'Look here\nAttached file: .aetheel/inbox/1/a.txt (text/plain, 5 bytes)',
    ])
  })

  it('that takes a file away leaves its name out', async () => {
    const { host, textOf } = await setup()
    const acceptance = await host.onMessage(message('1', { files: [file('a.txt', 'Hello')] }))
    await host.onEdit(message('1', { text: 'Look here' }))
    expect(await textOf(acceptance)).toBe('Look here')
  })

  it('comes too late when an agent has begun', async () => {
    const { host, queue, textOf } = await setup()
    const acceptance = await host.onMessage(message('1'))
    await queue.claim(['chat'])
    expect([await host.onEdit(message('1', { text: 'Changed' })), await textOf(acceptance)]).toEqual(['late', 'Look'])
  })

  it('of what never was a message fetches nothing and takes nothing in', async () => {
    const { host, store, workingDir } = await setup()
    const one = file('a.txt', 'Hello')
    const outcome = await host.onEdit(message('1', { files: [one] }))
    expect([outcome, one.reads, await store.inbox.listOpen(9), existsSync(join(workingDir, '.aetheel'))]).toEqual([
      'unknown',
      0,
      [],
      false,
    ])
  })
})

describe('a message that is taken back', () => {
  it('is left out when it waits', async () => {
    const { host, store, queue, woken } = await setup()
    const { messageId } = await host.onMessage(message('1'))
    await host.onMessage(message('2'))
    await host.onDelete('1')
    const next = await queue.claim(['chat'])
    expect([(await store.inbox.get(messageId))?.state, next?.message.platformId, woken.times]).toEqual([
      'dropped',
      '2',
      1,
    ])
  })

  it('continues if an agent has begun with it', async () => {
    const { host, store, queue } = await setup()
    const { messageId } = await host.onMessage(message('1'))
    await queue.claim(['chat'])
    await host.onDelete('1')
    expect([(await store.inbox.get(messageId))?.state, await store.jobs.get(messageId)]).toEqual([
      'open',
      expect.objectContaining({ state: 'active' }),
    ])
  })

  it('stays a dead letter if it has failed', async () => {
    const { host, store, queue } = await setup()
    const { messageId } = await host.onMessage(message('1'))
    const work = await queue.claim(['chat'])
    const reply = { text: 'No', notes: [], isError: true }
    if (work) await queue.settle(work, { kind: 'failed', problem: 'p', reply })
    await host.onDelete('1')
    expect((await store.inbox.get(messageId))?.state).toBe('failed')
  })

  it('may be one that we never had, or had of another channel', async () => {
    const { host, store, queue } = await setup()
    const { messageId } = await queue.accept({ ...message('1'), channel: 'mail' })
    await host.onDelete('1')
    await host.onDelete('2')
    expect((await store.inbox.get(messageId))?.state).toBe('open')
  })
})

it('commands and buttons are answered, and may have made work', async () => {
  const { host, asked, woken } = await setup()
  const answers = [await host.onCommand({ address: 'a' }, 'ann', '/stop'), await host.onButton('retry', 'm', 'ann')]
  expect([answers, asked, woken.times]).toEqual([
    ['Done.', 'Done.'],
    [
      ['chat', { address: 'a' }, 'ann', '/stop'],
      ['retry', 'm', 'ann'],
    ],
    2,
  ])
})

it("a channel's values are its own", async () => {
  const { host, store } = await setup()
  await host.remember('cursor', '1')
  await store.channelValues.set('mail', 'cursor', '2')
  const claims = [await host.claim('one'), await host.claim('one'), await store.channelValues.claim('mail', 'one', NOW)]
  expect([await host.recall('cursor'), await host.recall('none'), claims]).toEqual([
    '1',
    undefined,
    [true, false, true],
  ])
})

it('a channel sees only its own conversations', async () => {
  const { host, queue } = await setup()
  await host.onMessage(message('1'))
  await queue.accept({ ...message('1', { address: 'b' }), channel: 'mail' })
  expect([await host.addresses(NOW), await host.addresses(NOW + 1)]).toEqual([['a'], []])
})

describe('files of an answer', () => {
  it('are opened where the agent worked and in the directories of the operator, never in the data directory', async () => {
    const { host, directory, workingDir } = await setup()
    const paths = ['work/a.txt', 'out/b.txt', 'data/c.txt'].map((path) => join(directory, path))
    for (const path of paths) writeFileSync(path, 'x')
    const { signal } = new AbortController()
    const open = (path: string) =>
      host.openFile({ path, directory: workingDir }, 10, signal).then(
        ({ name }) => name,
        () => 'refused',
      )
    const locate = (path: string) => host.locateFile({ path, directory: workingDir }).catch(() => 'refused')
    expect([await Promise.all(paths.map(open)), await Promise.all(paths.map(locate))]).toEqual([
      ['a.txt', 'b.txt', 'refused'],
      [...paths.slice(0, 2), 'refused'],
    ])
  })
})
