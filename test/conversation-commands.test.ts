import { describe, expect, it, onTestFinished } from 'vitest'
import { ConversationCommands, isCommand } from '../src/conversation-commands.js'
import { Queue } from '../src/queue/queue.js'
import { Worker } from '../src/queue/worker.js'
import { SessionManager } from '../src/runtime/session-manager.js'
import { openTestStore } from './engines.js'
import { failed } from './scripted-backend.js'

const CHANNEL = 'test'
const START = 1_000_000

/** The agent works until it is stopped, or fails at once. */
async function setup({ isFailing = false } = {}) {
  const store = await openTestStore({ file: ':memory:' })
  const clock = { now: START }
  let ids = 0
  const now = () => clock.now
  const newId = () => `id-${(ids += 1)}`
  const queueOf = (gatewayId: string) =>
    new Queue(store, { gatewayId, maxQueueDepth: 100, leaseMs: 30_000, replyExpiryMs: 900_000, now, newId })
  const queue = queueOf('g1')
  const sessions = new SessionManager(store.sessions, { idleMs: 0, now })
  const worker = new Worker({
    channels: [CHANNEL],
    maxConcurrentQueries: 5,
    leaseMs: 30_000,
    queue,
    store,
    plan: () => ({
      backend: 'claude',
      run: async (_runId, signal) => {
        if (isFailing) return { result: failed('exit'), notes: [] }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { result: failed('cancelled'), notes: [] }
      },
    }),
    onSettled: () => {},
    onEvents: () => {},
    onStep: () => {},
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now,
    newId,
  })
  onTestFinished(() => worker.stop(0))
  const config = { agentBackend: 'claude', backendModel: 'large' } as const
  const isInstalled = async (backend: string) => backend !== 'pi'
  const commands = new ConversationCommands({ config, store, queue, worker, sessions, isInstalled, now, newId })
  return {
    store,
    clock,
    queueOf,
    worker,
    sessions,
    command: (line: string) => commands.run(CHANNEL, 'a', 'ann', line),
    say: (text: string) => queue.accept({ channel: CHANNEL, address: 'a', platformId: newId(), author: 'ann', text }),
    work: async () => {
      worker.wake()
      await expect.poll(() => worker.active().length).toEqual(1)
    },
    conversation: () => store.conversations.find(CHANNEL, 'a'),
  }
}

describe('a line', () => {
  it.each([
    ['/stop', true],
    ['/STOP', true],
    ['/model large', true],
    ['/unknown', true],
    ['/etc/hosts is empty', false],
    ['/', false],
    ['/ stop', false],
    ['/2', false],
    ['stop', false],
    [' /stop', false],
  ])('%j is meant for the gateway: %s', (line, isMeant) => {
    expect(isCommand(line)).toEqual(isMeant)
  })
})

describe('/help and what is unknown', () => {
  it('lists every command', async () => {
    const { command } = await setup()
    const lines = (await command('/help')).split('\n')
    expect(lines.map((line) => line.split(':')[0])).toEqual(['/new', '/stop', '/status', '/model', '/backend', '/help'])
  })

  it.each(['/nothing', '/constructor', '/stopp now'])('%s points to the list', async (line) => {
    const { command } = await setup()
    const [word] = line.split(' ')
    expect(await command(line)).toEqual(`There is no command ${word}. /help lists those there are.`)
  })
})

describe('/new', () => {
  it('forgets the session, and says whether there was one', async () => {
    const { sessions, command, say } = await setup()
    const { conversationId } = await say('hello')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' })
    expect([await command('/new'), await command('/new'), await sessions.get(conversationId, 'claude')]).toEqual([
      'The next message begins a fresh session.',
      'There is no session yet; the next message begins one.',
      undefined,
    ])
  })
})

describe('/stop', () => {
  it('says that nothing runs in a conversation that nobody has written to', async () => {
    const { command } = await setup()
    expect(await command('/stop')).toEqual('Nothing is running here.')
  })

  it('ends the turn and tells what waits behind it', async () => {
    const { store, clock, command, say, work } = await setup()
    const { messageId } = await say('one')
    await say('two')
    await say('three')
    await work()
    clock.now += 12_400
    const answer = await command('/stop')
    expect([answer, (await store.inbox.get(messageId))?.state]).toEqual([
      'Stopped claude after 12 s. 2 more messages wait.',
      'cancelled',
    ])
  })

  it('drops a message that waits to be tried again', async () => {
    const { store, worker, command, say } = await setup({ isFailing: true })
    const { messageId, conversationId } = await say('one')
    worker.wake()
    await expect.poll(async () => (await store.inbox.first(conversationId))?.dueAt).toEqual(START + 5_000)
    await expect.poll(() => worker.active()).toEqual([])
    const status = await command('/status')
    const answer = await command('/stop')
    expect([status.split('\n').at(-1), answer, (await store.inbox.get(messageId))?.state]).toEqual([
      'queue: waiting 5 s before it tries again, 1 waiting',
      'Dropped the message that waited.',
      'dropped',
    ])
  })

  it('asks another gateway that works on it', async () => {
    const { queueOf, command, say } = await setup()
    await say('one')
    const other = queueOf('g2')
    const work = await other.claim([CHANNEL])
    const answer = await command('/stop')
    expect([answer, work && (await other.renew(work))]).toEqual([
      'Another gateway works on it and was asked to stop.',
      'cancelled',
    ])
  })
})

describe('/status', () => {
  it('tells agent, model, session and queue', async () => {
    const { sessions, command, say, work } = await setup()
    const empty = await command('/status')
    const { conversationId } = await say('one')
    await say('two')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' })
    await work()
    expect([empty, await command('/status')]).toEqual([
      'agent: claude\nmodel: large\nsession: none yet\nqueue: 0 waiting',
      'agent: claude\nmodel: large\nsession: s1\nqueue: working, 1 waiting',
    ])
  })

  it('tells what the project says', async () => {
    const { store, command, say } = await setup()
    const { conversationId } = await say('one')
    await store.projects.put({ id: 'p1', directory: '/projects/here', backend: 'codex', model: 'small' })
    await store.conversations.configure(conversationId, { projectId: 'p1' })
    expect(await command('/status')).toEqual(
      'agent: codex\nmodel: small\nproject: p1\nsession: none yet\nqueue: 1 waiting',
    )
  })
})

describe('/model', () => {
  it('shows, chooses and takes back', async () => {
    const { command, conversation } = await setup()
    const answers = []
    for (const line of ['/model', '/model  small ', '/model', '/model default', '/model'])
      answers.push(await command(line))
    expect([answers, (await conversation())?.model]).toEqual([
      [
        'The model is large.',
        'The next message goes to the model small.',
        'The model is small.',
        'The model is the configured one again.',
        'The model is large.',
      ],
      undefined,
    ])
  })

  it.each(['-p', '--dangerous', 'two words', 'a\u0007b'])('does not take %j for a model', async (name) => {
    const { command, conversation } = await setup()
    expect([await command(`/model ${name}`), (await conversation())?.model]).toEqual([
      `${JSON.stringify(name)} is not the name of a model.`,
      undefined,
    ])
  })
})

describe('/backend', () => {
  it('shows, chooses and takes back, and leaves neither the session nor the model of the other agent', async () => {
    const { sessions, command, conversation, say } = await setup()
    const { conversationId } = await say('one')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' })
    await command('/model small')
    const answers = []
    for (const line of ['/backend', '/backend codex', '/backend', '/model']) answers.push(await command(line))
    const chosen = await conversation()
    answers.push(await command('/backend default'))
    expect([answers, chosen, await sessions.get(conversationId, 'claude'), await conversation()]).toEqual([
      [
        'The agent is claude.',
        'The next message goes to codex, in a fresh session.',
        'The agent is codex.',
        "The model is the agent's own.",
        'The next message goes to the configured agent, in a fresh session.',
      ],
      { id: conversationId, channel: CHANNEL, address: 'a', backend: 'codex' },
      undefined,
      { id: conversationId, channel: CHANNEL, address: 'a' },
    ])
  })

  it('stays with the agent there is when the other is not installed', async () => {
    const { command, conversation } = await setup()
    expect([await command('/backend pi'), (await conversation())?.backend]).toEqual([
      'pi is not installed where the gateway runs. "aetheel doctor" says how to install it.',
      undefined,
    ])
  })

  it('names those there are when there is none of that name', async () => {
    const { command, conversation } = await setup()
    expect([await command('/backend cloude'), (await conversation())?.backend]).toEqual([
      expect.stringMatching(/cloude.*claude, codex, gemini, opencode, pi/),
      undefined,
    ])
  })
})

it('every command that was done is on record, with who gave it', async () => {
  const { store, command, conversation } = await setup()
  await command('/model small')
  await command('/nothing')
  const conversationId = (await conversation())?.id
  expect(await store.audit.list(10)).toEqual([
    { at: START, actor: 'ann', action: 'model', subject: conversationId, detail: 'small' },
  ])
})
