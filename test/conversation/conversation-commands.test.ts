import { describe, expect, it } from 'vitest'
import { BackendRegistry, createBackend } from '../../src/backends/registry.js'
import type { AgentResult } from '../../src/backends/types.js'
import type { Place } from '../../src/channels/types.js'
import type { ContinueDependencies } from '../../src/conversation/continuing.js'
import { ConversationCommands } from '../../src/conversation/conversation-commands.js'
import { isCommand, withoutAskPrefix } from '../../src/turns/accept.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { SessionManager } from '../../src/runtime/session-manager.js'
import type { NewRun } from '../../src/store/runs.js'
import { openTestStore } from '../kit/engines.js'
import { failed, succeeded } from '../kit/scripted-backend.js'
import { queueOn } from '../kit/queue.js'
import { approvalsOn } from '../approvals/stage.js'
import { createWorker } from '../kit/worker.js'
import { adapterConfig } from '../kit/adapter-config.js'

const CHANNEL = 'test'
const SECRET = 'sk-0123456789'
const START = Date.UTC(2026, 10, 16, 12, 30)
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const USAGE = {
  inputTokens: 1_200,
  outputTokens: 300,
  cacheReadTokens: 50_000,
  cacheWriteTokens: 40,
  reasoningTokens: 0,
  totalTokens: 51_540,
}

interface PastTurn extends Partial<AgentResult>, Partial<Pick<NewRun, 'backend' | 'model' | 'directory'>> {
  /** The model that the agent reports. */
  told?: string
  place?: Partial<Place>
  text?: string
}

/** The agent works until it is stopped, or fails at once. It first uses the tools, the first of which has ended. */
async function setup({ isFailing = false, tools = [] as string[], takesEdits = false, isDemoAgent = false } = {}) {
  const store = await openTestStore({ file: ':memory:' })
  const clock = { now: START }
  let ids = 0
  const now = () => clock.now
  const newId = () => `id-${(ids += 1)}`
  const queueOf = (gatewayId: string) => queueOn(store, { gatewayId, now, newId })
  const queue = queueOf('g1')
  const sessions = new SessionManager(store.sessions, { idleMs: 0, now })
  // None at first: the worker also looks for messages on its own.
  const served: string[] = []
  const worker = createWorker({
    channels: served,
    queue,
    store,
    plan: ({ conversation }) => ({
      backend: 'claude',
      directory: '/work',
      canSendFiles: false,
      run: async (_runId, signal, { onEvent }) => {
        if (isFailing) return { result: failed('auth'), notes: [] }
        for (const [index, command] of tools.entries()) {
          const about = { toolId: `t${index}`, toolName: 'Bash', timestamp: clock.now }
          onEvent({ type: 'tool_use', ...about, toolInput: { command } })
          if (index === 0) onEvent({ type: 'tool_result', ...about, content: 'done', isError: false })
        }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        const session = { conversationId: conversation.id, backend: 'claude', sessionId: 'of-turn', directory: '/work' }
        return { result: failed('cancelled'), notes: [], session }
      },
    }),
    now,
    newId,
  })
  const agent = { agentBackend: 'claude', isDemoAgent, backendModel: 'large' } as const
  const config = { ...agent, workingDir: '/work', queueMode: 'followup' } as const
  const isInstalled = async (backend: string) => backend !== 'pi'
  const modelsOf = async (backend: string) => (backend === 'claude' ? ['known', 'large'] : [])
  const agents = new BackendRegistry(now)
  for (const name of ['claude', 'codex', 'gemini', 'pi'] as const) agents.register(createBackend(name, adapterConfig()))
  const approvals = approvalsOn(store, { now, newId })
  const scrub = (text: string) => createScrubber([SECRET]).scrub(text)
  const parts = { approvals, agents, store, queue, worker, sessions }
  const submit: ContinueDependencies['submit'] = (channel, message) => queue.accept({ channel, ...message })
  const channels = [{ name: CHANNEL, takesEdits }]
  const dependencies = { ...parts, channels, submit, config, isInstalled, modelsOf, scrub, now, newId }
  const commands = new ConversationCommands(dependencies)
  const accept = (address: string, text: string, author: string, place: Partial<Place> = {}) =>
    queue.accept({ channel: CHANNEL, address, ...place, platformId: newId(), author, text })
  const work = async () => {
    served.push(CHANNEL)
    worker.wake()
    await expect.poll(() => worker.active().length).toEqual(1)
  }
  return {
    store,
    clock,
    queueOf,
    worker,
    sessions,
    approvals,
    commands,
    command: async (line: string, place: Place = { address: 'a' }) =>
      (await commands.run(CHANNEL, place, 'ann', line)).text,
    suggest: (command: string, typed = '', place: Place = { address: 'a' }) =>
      commands.suggest(CHANNEL, place, command, typed),
    say: (text: string, author = 'ann') => accept('a', text, author),
    /** Waits until the message is running and its tools are recorded. */
    work: async (messageId: string) => {
      await work()
      await expect.poll(() => store.runs.running(messageId)).toBeDefined()
      const runId = (await store.runs.running(messageId))?.id ?? ''
      await expect.poll(async () => (await store.events.latestTools(runId)).length).toEqual(tools.length)
    },
    /** Waits until the message has finally failed. */
    fail: async (messageId: string) => {
      served.push(CHANNEL)
      worker.wake()
      await expect.poll(async () => (await store.inbox.get(messageId))?.state).toEqual('failed')
      await expect.poll(() => worker.active()).toEqual([])
    },
    /** A turn that took a minute. */
    past: async (address: string, turn: PastTurn) => {
      const { place, text = 'hello', backend = 'claude', model, told, directory = '/work', ...result } = turn
      const { conversationId } = await accept(address, text, 'bob', place)
      const run = { id: newId(), backend, directory, ...(model !== undefined && { model }) }
      const claimed = await queue.claim([CHANNEL], { address }, () => run)
      if (!claimed) throw new Error('There is nothing to claim')
      const reply = { text: '', notes: [], isError: false }
      const { sessionId } = result
      if (told !== undefined) {
        const event = { type: 'started' as const, model: told, timestamp: clock.now }
        await store.events.record(run.id, [{ seq: 1, event }])
      }
      clock.now += MINUTE_MS
      await queue.settle(claimed, {
        kind: 'answered',
        run: { id: run.id, result: succeeded('hi', result) },
        reply,
        ...(sessionId !== undefined && { session: { conversationId, backend, sessionId, directory } }),
      })
      return conversationId
    },
    conversation: (address = 'a') => store.conversations.find(CHANNEL, address),
  }
}

describe('a line', () => {
  it.each([
    ['/stop', true],
    ['/STOP', true],
    ['/model large', true],
    ['/unknown', true],
    ['/asking', true],
    ['/etc/hosts is empty', false],
    ['/', false],
    ['/ stop', false],
    ['/2', false],
    ['stop', false],
    [' /stop', false],
    ['/ask what is this', false],
    ['/Ask\nwhat', false],
    ['/ask', false],
  ])('%j is meant for the gateway: %s', (line, isMeant) => {
    expect(isCommand(line)).toEqual(isMeant)
  })

  it.each([
    ['/ask what is this', 'what is this'],
    ['/ASK  /ask twice ', '/ask twice '],
    ['/ask', ''],
    ['/asking for it', '/asking for it'],
    ['do /ask this', 'do /ask this'],
  ])('%j asks for %j', (line, text) => {
    expect(withoutAskPrefix(line)).toEqual(text)
  })
})

describe('/help and unknown commands', () => {
  it('lists every command with its arguments', async () => {
    const { command, conversation } = await setup()
    const lines = (await command('/help')).split('\n')
    expect([lines.map((line) => line.split(':')[0]), await conversation()]).toEqual([
      [
        ...[
          '/ask <text>',
          '/new',
          '/compact [focus]',
          '/stop',
          '/continue',
          '/approve [which]',
          '/deny [which]',
          '/status',
          '/queue [mode]',
          '/model [name]',
          '/backend [name]',
        ],
        ...[
          '/sessions',
          '/resume <session>',
          '/project [id]',
          '/allow [person]',
          '/disallow [person]',
          '/usage',
          '/help',
        ],
      ],
      undefined,
    ])
  })

  it.each(['/nothing', '/constructor', '/stopp now'])('%s points to the list', async (line) => {
    const { command } = await setup()
    const [word] = line.split(' ')
    expect(await command(line)).toEqual(
      `Unknown command ${word}. /help lists the commands; /${word} sends ${word} to the agent.`,
    )
  })

  it.each(['/ask this', '/compact'])('%s is a message', async (line) => {
    const { command } = await setup()
    expect(await command(line)).toEqual('Send it as a message.')
  })
})

describe('/new', () => {
  it('forgets the session, and says whether there was one', async () => {
    const { sessions, command, say } = await setup()
    const { conversationId } = await say('hello')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/work' })
    expect([await command('/new'), await command('/new'), await sessions.get(conversationId, 'claude')]).toEqual([
      'The next message starts a fresh session.',
      'There is no session yet; the next message starts one.',
      undefined,
    ])
  })
})

describe('/approve and /deny', () => {
  /** A running turn whose agent asks once for each command. */
  async function setupAsking(...commands: string[]) {
    const stage = await setup()
    const { store, say, work, approvals } = stage
    const { messageId, conversationId } = await say('one')
    await work(messageId)
    const run = await store.runs.running(messageId)
    const message = await store.inbox.get(messageId)
    const conversation = await store.conversations.get(conversationId)
    if (!run || !message || !conversation) throw new Error('Nothing runs')
    const { approve } = approvals.approverFor({ id: run.id, backend: 'claude', message, conversation }, () => {})
    const { signal } = new AbortController()
    const answers = commands.map((line) => approve({ toolName: 'Bash', toolInput: { command: line } }, signal))
    const listed = () => store.approvals.list({ states: ['asked'], conversationId }, 9)
    await expect.poll(async () => (await listed()).length).toEqual(commands.length)
    const waiting = await listed()
    const idOf = (line: string) => waiting.find(({ subject }) => subject === line)?.id.slice(0, 8)
    return { ...stage, answers, idOf }
  }

  it('say that nothing waits', async () => {
    const { command } = await setup()
    const nothing = 'Nothing is waiting for approval here.'
    expect([await command('/approve'), await command('/deny'), await command('/approve always')]).toEqual(
      Array.from({ length: 3 }, () => nothing),
    )
  })

  it('allow what is asked, and record it', async () => {
    const { command, answers, store, idOf } = await setupAsking('ls')
    const told = await command('/approve')
    const [entry] = await store.audit.list(1)
    expect([told, await answers[0], await command('/approve'), entry]).toEqual([
      'Allowed: Bash: ls',
      { isAllowed: true },
      'Nothing is waiting for approval here.',
      expect.objectContaining({
        action: 'approve',
        actor: 'ann',
        subject: expect.stringMatching(new RegExp(`^${idOf('ls')}`)),
      }),
    ])
  })

  it('allow the same from now on', async () => {
    const { command, answers, store } = await setupAsking('ls')
    const told = await command('/approve Always')
    const rules = await store.approvalRules.list({}, 9)
    expect([told, await answers[0], rules.map(({ subject, createdBy }) => [subject, createdBy])]).toEqual([
      'Allowed, now and always: Bash: ls',
      { isAllowed: true },
      [['ls', 'ann']],
    ])
  })

  it('want to know which one where several wait', async () => {
    const { command, answers, idOf } = await setupAsking('ls', 'make')
    const which = await command('/approve')
    const unknown = await command('/deny zzzz')
    const many = await command(`/approve ${idOf('ls')} ${idOf('make')}`)
    const told = [await command(`/deny ${idOf('ls')}`), await command(`/approve ${idOf('make')} always`)]
    const list = ['ls', 'make'].map((line) => `${idOf(line)}: Bash: ${line}`)
    expect([which.split('\n').toSorted(), unknown.split('\n')[0], many, told]).toEqual([
      [...list, 'Which one? Add its id.'].toSorted(),
      'No request zzzz is waiting here.',
      'Write /approve or /approve always, with the id if several are waiting.',
      ['Denied: Bash: ls', 'Allowed, now and always: Bash: make'],
    ])
    expect((await Promise.all(answers)).map(({ isAllowed }) => isAllowed)).toEqual([false, true])
  })

  it('are named in /status', async () => {
    const { command, idOf, answers } = await setupAsking('ls')
    const lines = (await command('/status')).split('\n').filter((line) => line.startsWith('waiting for approval'))
    await command('/deny')
    await Promise.all(answers)
    expect(lines).toEqual([`waiting for approval (${idOf('ls')}): Bash: ls`])
  })
})

describe('/stop', () => {
  it('says that nothing runs in a conversation that nobody has written to', async () => {
    const { command } = await setup()
    expect(await command('/stop')).toEqual('Nothing is running here.')
  })

  it('ends the turn and says what waits behind it', async () => {
    const { store, clock, command, say, work } = await setup()
    const { messageId } = await say('one')
    await say('two')
    await say('three')
    await work(messageId)
    clock.now += 12_400
    const answer = await command('/stop')
    expect([answer, (await store.inbox.get(messageId))?.state]).toEqual([
      'Stopped claude after 12 s. 2 more messages are waiting.',
      'cancelled',
    ])
  })

  it('says what the agent was doing', async () => {
    const { command, say, work } = await setup({ tools: ['ls', 'npm  test', 'sleep 1', 'make', 'more'] })
    await work((await say('one')).messageId)
    expect(await command('/stop')).toEqual('Stopped claude after 0 s, during Bash: more, Bash: make, Bash: sleep 1.')
  })

  it('drops a message that waits', async () => {
    const { store, command, say } = await setup()
    const { messageId } = await say('one')
    await say('two')
    const answer = await command('/stop')
    expect([answer, (await store.inbox.get(messageId))?.state]).toEqual([
      'Dropped the waiting message. 1 more message is waiting.',
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
      'Another gateway is working on it and was asked to stop.',
      'cancelled',
    ])
  })
})

describe('/status', () => {
  it('shows the state if nothing has happened', async () => {
    const { command } = await setup()
    expect((await command('/status')).split('\n')).toEqual([
      'agent: claude',
      'model: large',
      'directory: /work',
      'session: none yet',
      'queue: 0 waiting',
      'queue mode: followup: each message waits for its own turn',
      'usage today: no turns',
    ])
  })

  it('calls the demo agent by its name, not by that of the agent it replaces', async () => {
    const { command } = await setup({ isDemoAgent: true })
    const [status] = (await command('/status')).split('\n')
    expect([status, await command('/backend'), await command('/backend codex'), await command('/backend')]).toEqual([
      'agent: demo',
      'The agent is demo.',
      'The next message goes to codex, in a fresh session.',
      'The agent is codex.',
    ])
  })

  it("shows what runs, with which tool, and the position of the person's message", async () => {
    const { clock, command, say, work, past } = await setup({ tools: ['ls', 'npm test'] })
    await past('a', { sessionId: 's1', usage: USAGE, costUsd: 0.0312 })
    const { messageId } = await say('one', 'bob')
    await say('two', 'bob')
    await say('three')
    await work(messageId)
    clock.now += 13 * MINUTE_MS
    expect((await command('/status')).split('\n')).toEqual([
      'agent: claude',
      'model: large',
      'directory: /work',
      'session: s1, used 13 min ago',
      'working: claude for 13 min, since 12:31 UTC; now Bash: npm test',
      'queue: working, 2 waiting; yours is number 3',
      'queue mode: followup: each message waits for its own turn',
      'usage today: 1 turn, 60 s of work; 1,200 tokens in, 300 out, cache 50,000 read and 40 written; $0.0312',
    ])
  })

  it("shows the project's settings", async () => {
    const { store, command, say } = await setup()
    const { conversationId } = await say('one')
    await store.projects.put({ id: 'p1', directory: '/projects/here', backend: 'codex', model: 'small' }, 'file', 1)
    await store.conversations.configure(conversationId, { projectId: 'p1' })
    expect((await command('/status')).split('\n').slice(0, 5)).toEqual([
      'agent: codex',
      'model: small',
      'project: p1',
      'directory: /projects/here',
      'session: none yet',
    ])
  })

  it('says how long a message waits for its retry', async () => {
    const { queueOf, command, say } = await setup()
    await say('one')
    const work = await queueOf('g2').claim([CHANNEL])
    const run = { id: 'run', result: failed('exit') }
    if (work) await queueOf('g2').settle(work, { kind: 'retry', at: START + 20_000, isAttempt: true, run })
    expect((await command('/status')).split('\n').at(-3)).toEqual('queue: retrying in 20 s, 1 waiting')
  })
})

const FOLLOWUP = 'Mode followup: each message waits for its own turn.'

describe('/queue', () => {
  it('says when there is nothing', async () => {
    const { command } = await setup()
    expect(await command('/queue')).toEqual(`Nothing is running or waiting here.\n${FOLLOWUP}`)
  })

  it('lists running and waiting messages, each in one line, and how many more there are', async () => {
    const { clock, command, say, work } = await setup()
    const { messageId } = await say('first')
    clock.now += 5 * MINUTE_MS
    await say('long and\n\nof two lines: '.padEnd(200, 'x'), 'bob')
    for (let count = 0; count < 13; count += 1) await say('again')
    await work(messageId)
    clock.now += 30_000
    expect((await command('/queue')).split('\n')).toEqual([
      '1. ann, 5 min ago, running: first',
      `2. bob, 30 s ago: long and of two lines: ${'x'.repeat(31)}…`,
      ...[3, 4, 5, 6, 7, 8, 9, 10].map((place) => `${place}. ann, 30 s ago: again`),
      '… and 5 more',
      FOLLOWUP,
    ])
  })

  it.each([
    [true, ['You can edit or delete your message while it waits.']],
    [false, []],
  ])('says how to change what waits if the channel takes edits: %s', async (takesEdits, advice) => {
    const { command, say, work } = await setup({ takesEdits })
    await work((await say('one')).messageId)
    await say('two')
    expect((await command('/queue')).split('\n')).toEqual([
      '1. ann, 0 s ago, running: one',
      '2. ann, 0 s ago: two',
      ...advice,
      FOLLOWUP,
    ])
  })

  it.each([
    ['in 20 s', 20_000],
    ['in 50 min', 50 * MINUTE_MS],
    ['at 14:30 UTC', 120 * MINUTE_MS],
    ['at 2026-11-17 12:30 UTC', DAY_MS],
  ])('says that a message is tried again %s', async (when, afterMs) => {
    const { queueOf, command, say } = await setup()
    await say('one')
    const work = await queueOf('g2').claim([CHANNEL])
    const run = { id: 'run', result: failed('rate_limit') }
    if (work) await queueOf('g2').settle(work, { kind: 'retry', at: START + afterMs, isAttempt: false, run })
    expect((await command('/queue')).split('\n')[0]).toEqual(`1. ann, 0 s ago, retry ${when}: one`)
  })

  it('has nothing to change when nothing waits', async () => {
    const { command, say, work } = await setup({ takesEdits: true })
    await work((await say('one')).messageId)
    expect(await command('/queue')).toEqual(`1. ann, 0 s ago, running: one\n${FOLLOWUP}`)
  })

  it('chooses the mode of the conversation, and takes it back', async () => {
    const { command, conversation } = await setup()
    const chosen = [await command('/queue Steer'), (await conversation())?.queueMode, await command('/queue')]
    const back = [await command('/queue default'), (await conversation())?.queueMode]
    expect([chosen, back]).toEqual([
      [
        expect.stringMatching(/^The mode is steer: a new message reaches the running agent at once/),
        'steer',
        expect.stringContaining('Mode steer: '),
      ],
      ['The mode is followup: each message waits for its own turn.', undefined],
    ])
  })

  it('knows no other mode, and says which there are', async () => {
    const { command, conversation } = await setup()
    expect([await command('/queue faster'), (await conversation())?.queueMode]).toEqual([
      'Unknown mode faster. Known: followup, collect, interrupt, steer, default.',
      undefined,
    ])
  })
})

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}

describe('/model', () => {
  it('shows, chooses and takes back', async () => {
    const { command, conversation } = await setup()
    const answers = []
    for (const line of ['/model', '/model  small ', '/model', '/model default', '/model'])
      answers.push(firstLine(await command(line)))
    expect([answers, await conversation()]).toEqual([
      [
        'The model is large.',
        'The next message uses the model small.',
        'The model is small.',
        'The model is the configured one again.',
        'The model is large.',
      ],
      { id: expect.any(String), channel: CHANNEL, address: 'a' },
    ])
  })

  it('tells which model answered last here, and which others are known', async () => {
    const { command, past } = await setup()
    await past('b', { model: 'small', told: 'claude-small-4' })
    await past('a', { told: 'claude-large-5[1m]' })
    await past('a', { backend: 'codex', told: 'gpt' })
    expect((await command('/model')).split('\n')).toEqual([
      'The model is large.',
      'The last answer from claude here used claude-large-5[1m].',
      'Recently used with claude: small, claude-large-5[1m], claude-small-4',
      'claude lists: known, large',
      '/model <name> chooses one of these, or any other the agent knows; /model default resets it.',
    ])
  })

  it.each(['-p', '--dangerous', 'two words', 'a\u0007b'])('does not take %j for a model', async (name) => {
    const { command, conversation } = await setup()
    expect([await command(`/model ${name}`), (await conversation())?.model]).toEqual([
      `${JSON.stringify(name)} is not a valid model name.`,
      undefined,
    ])
  })
})

describe('/backend', () => {
  it('shows, chooses and takes back, and leaves neither the session nor the model of the other agent', async () => {
    const { sessions, command, conversation, say } = await setup()
    const { conversationId } = await say('one')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/work' })
    await command('/model small')
    const answers = []
    for (const line of ['/backend', '/backend codex', '/backend', '/model'])
      answers.push(firstLine(await command(line)))
    const chosen = await conversation()
    answers.push(await command('/backend default'))
    expect([answers, chosen, await sessions.get(conversationId, 'claude'), await conversation()]).toEqual([
      [
        'The agent is claude.',
        'The next message goes to codex, in a fresh session.',
        'The agent is codex.',
        "The model is the agent's default.",
        'The next message goes to claude, in a fresh session.',
      ],
      { id: conversationId, channel: CHANNEL, address: 'a', backend: 'codex' },
      undefined,
      { id: conversationId, channel: CHANNEL, address: 'a' },
    ])
  })

  it('keeps the model and the session when it names the agent in use', async () => {
    const { sessions, command, say } = await setup()
    const { conversationId } = await say('one')
    await sessions.set({ conversationId, backend: 'claude', sessionId: 's1', directory: '/work' })
    await command('/model small')
    const answers = []
    for (const line of ['/backend claude', '/backend claudecode', '/model'])
      answers.push(firstLine(await command(line)))
    expect([answers, (await sessions.get(conversationId, 'claude'))?.sessionId]).toEqual([
      ['The agent is already claude.', 'The agent is already claude.', 'The model is small.'],
      's1',
    ])
  })

  it('default says so when it is the agent in use', async () => {
    const { command, conversation } = await setup()
    await command('/backend codex', { address: 'room' })
    const thread = { address: 'room/1', parent: 'room' }
    const chosen = await command('/backend claude', thread)
    expect([chosen, await command('/backend default', thread), await command('/backend default')]).toEqual([
      'The next message goes to claude, in a fresh session.',
      'The next message goes to codex, in a fresh session.',
      'The agent is claude again, as configured.',
    ])
    expect((await conversation())?.backend).toBeUndefined()
  })

  it('keeps the current agent if the other is not installed', async () => {
    const { command, conversation } = await setup()
    expect([await command('/backend pi'), (await conversation())?.backend]).toEqual([
      'pi is not installed where the gateway runs. "aetheel doctor --agent pi" shows how to install it.',
      undefined,
    ])
  })

  it('lists the existing ones if there is none of that name', async () => {
    const { command, conversation } = await setup()
    expect([await command('/backend cloude'), (await conversation())?.backend]).toEqual([
      expect.stringMatching(/cloude.*claude, codex, gemini, opencode, pi/),
      undefined,
    ])
  })
})

describe('a place', () => {
  it("gives a command the choices of its parent, and the operator's project", async () => {
    const { store, command } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    await command('/backend codex', { address: 'room' })
    const thread = await command('/status', { address: 'room/thread', parent: 'room', projectId: 'site' })
    // The place has no project any more.
    const later = await command('/status', { address: 'room/thread', parent: 'room' })
    expect([thread.split('\n').slice(0, 4), later.split('\n').slice(0, 3)]).toEqual([
      ['agent: codex', "model: the agent's default", 'project: site', 'directory: /srv/site'],
      ['agent: codex', "model: the agent's default", 'directory: /work'],
    ])
  })
})

describe('the choices of a place', () => {
  const room = { address: 'room' }
  const thread = { address: 'room/thread', parent: 'room' }

  it('apply at once to its parts, until these choose for themselves, and again when they take that back', async () => {
    const { store, command } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    await store.projects.put({ id: 'app', directory: '/srv/app' }, 'file', 1)
    const choices: string[][] = []
    const look = async () => choices.push((await command('/status', thread)).split('\n').slice(0, 4))
    await look()
    await command('/backend codex', room)
    await command('/model large-codex', room)
    await command('/project site', room)
    await look()
    await command('/backend gemini', thread)
    await command('/project app', thread)
    await look()
    await command('/backend default', thread)
    await command('/project default', thread)
    await look()
    await command('/backend default', room)
    await command('/project default', room)
    await look()
    const usual = ['agent: claude', 'model: large', 'directory: /work', 'session: none yet']
    const ofRoom = ['agent: codex', 'model: large-codex', 'project: site', 'directory: /srv/site']
    const own = ['agent: gemini', "model: the agent's default", 'project: app', 'directory: /srv/app']
    expect(choices).toEqual([usual, ofRoom, own, ofRoom, usual])
  })

  it('apply again, with later changes, when a thread takes its own model back', async () => {
    const { command } = await setup()
    const choices: string[][] = []
    const look = async () => choices.push((await command('/status', thread)).split('\n').slice(0, 2))
    await command('/backend codex', room)
    await command('/model big-codex', room)
    await command('/model small-codex', thread)
    await look()
    const answer = await command('/model default', thread)
    await look()
    await command('/backend gemini', room)
    await look()
    expect([answer, choices]).toEqual([
      'The model is the configured one again.',
      [
        ['agent: codex', 'model: small-codex'],
        ['agent: codex', 'model: big-codex'],
        ['agent: gemini', "model: the agent's default"],
      ],
    ])
  })

  it('do not apply again to a thread with its own agent that takes back only the model', async () => {
    const { command } = await setup()
    const choices: string[][] = []
    const look = async () => choices.push((await command('/status', thread)).split('\n').slice(0, 2))
    await command('/backend codex', room)
    await command('/model big-codex', room)
    await command('/backend gemini', thread)
    await command('/model small-gemini', thread)
    await look()
    const answer = await command('/model default', thread)
    await look()
    await command('/backend opencode', room)
    await look()
    expect([answer, choices]).toEqual([
      'The model is the configured one again.',
      [
        ['agent: gemini', 'model: small-gemini'],
        ['agent: gemini', "model: the agent's default"],
        ['agent: gemini', "model: the agent's default"],
      ],
    ])
  })

  it('is not given up by a thread that only wants another model of the same agent', async () => {
    const { command, conversation } = await setup()
    await command('/backend codex', room)
    await command('/model small-codex', thread)
    await command('/backend gemini', room)
    expect([
      await command('/backend', thread),
      firstLine(await command('/model', thread)),
      await conversation(thread.address),
    ]).toEqual([
      'The agent is codex.',
      'The model is small-codex.',
      expect.objectContaining({ backend: 'codex', model: 'small-codex' }),
    ])
  })
})

describe('/sessions', () => {
  it('says so if there are none', async () => {
    const { command } = await setup()
    expect(await command('/sessions')).toEqual('There are no sessions yet.')
  })

  it('lists those that were used in the same directory, last used first, and marks the own', async () => {
    const { command, past, clock } = await setup()
    await past('other', { sessionId: 'of-site-1', directory: '/srv/site', text: 'What of the site?' })
    await past('a', { sessionId: '1a2b3c4d-5e6f-7a8b', text: 'Old  question\nof a' })
    await past('a', { sessionId: '1a2b3c4d-5e6f-7a8b', text: 'New question of a' })
    await past('b', { sessionId: 'ses_0123456789', backend: 'opencode', text: 'Of b' })
    await past('a', { sessionId: '2222', text: 'Now' })
    clock.now += 3 * 3_600_000
    const list = await command('/sessions')
    await command('/new')
    expect([list.split('\n'), (await command('/sessions')).split('\n')[0]]).toEqual([
      [
        '1. claude, 3 h ago: Now (2222, current)',
        '2. opencode, 3 h ago: Of b (ses_01234567)',
        '3. claude, 3 h ago: New question of a (1a2b3c4d-5e6)',
        'Use /resume <number> to resume one.',
      ],
      '1. claude, 3 h ago: Now (2222)',
    ])
  })

  it('shows no known secret, not even the beginning of one; nor does /queue', async () => {
    const { command, past, say } = await setup()
    const text = `Here is the key that you need for the deployment ${SECRET}`
    await past('a', { sessionId: '2222', text })
    await say(text)
    const shown = 'Here is the key that you need for the deployment [secr…'
    expect([await command('/sessions'), await command('/queue')].map((list) => list.includes(shown))).toEqual([
      true,
      true,
    ])
  })

  it('lists others when the project is in another directory, and those of before when it is back', async () => {
    const { store, command, past } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    await past('a', { sessionId: 'usual', text: 'Here' })
    await past('b', { sessionId: 'of-site', directory: '/srv/site', text: 'There' })
    await command('/project site')
    const inProject = await command('/sessions')
    await command('/project default')
    const advice = 'Use /resume <number> to resume one.'
    expect([inProject, await command('/sessions')]).toEqual([
      `1. claude, 60 s ago: There (of-site)\n${advice}`,
      `1. claude, 2 min ago: Here (usual)\n${advice}`,
    ])
  })

  it('lists none of turns with an unknown directory', async () => {
    const { store, command, say } = await setup()
    const { messageId, conversationId } = await say('one')
    await store.runs.begin({ id: 'old', messageId, conversationId, gatewayId: 'g1', backend: 'claude' }, START)
    await store.runs.end('old', 'answered', succeeded('hi', { sessionId: 's1' }), START)
    expect(await command('/sessions')).toEqual('There are no sessions yet.')
  })
})

describe('/resume', () => {
  it.each([
    ['its number', '2'],
    ['its id', 'aaaa-1111-2222'],
    ['the beginning of its id', 'aaaa'],
  ])('continues a session by %s, and says so', async (_, wanted) => {
    const { store, command, past } = await setup()
    const id = await past('a', { sessionId: 'aaaa-1111-2222', text: 'Fix the login page', sessionUsage: USAGE })
    await past('a', { sessionId: 'bbbb-1111-2222' })
    const answer = await command(`/resume ${wanted}`)
    expect([answer, await store.sessions.get(id)]).toEqual([
      'The next message resumes this claude session: Fix the login page',
      {
        conversationId: id,
        backend: 'claude',
        sessionId: 'aaaa-1111-2222',
        directory: '/work',
        usage: USAGE,
        usedAt: START + 2 * MINUTE_MS,
      },
    ])
  })

  it('takes the agent of the session, in the directory of the project', async () => {
    const { store, command, past, conversation } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    const place = { projectId: 'site' }
    const id = await past('a', { place })
    await command('/model small', { address: 'a', ...place })
    await past('b', { place, sessionId: 'of-codex', backend: 'codex', directory: '/srv/site' })
    await store.sessions.reset((await conversation('b'))?.id ?? '', START)
    await command('/resume 1', { address: 'a', ...place })
    const session = await store.sessions.get(id)
    expect([session?.backend, session?.directory, await conversation()]).toEqual([
      'codex',
      '/srv/site',
      { id, channel: CHANNEL, address: 'a', projectId: 'site', backend: 'codex' },
    ])
  })

  it('takes it away from the conversation that was in it', async () => {
    const { store, command, past } = await setup()
    const other = await past('other', { sessionId: 'shared', text: 'Something' })
    const answer = await command('/resume shared')
    expect([answer, await store.sessions.get(other)]).toEqual([
      'The next message resumes this claude session: Something\n' +
        'The conversation that used it will start a fresh one.',
      undefined,
    ])
  })

  it('leaves it to a conversation that works in it now', async () => {
    const { store, queueOf, command, past, conversation } = await setup()
    const other = await past('other', { sessionId: 'shared' })
    await queueOf('g1').accept({ channel: CHANNEL, address: 'other', platformId: 'p', author: 'bob', text: 'more' })
    await queueOf('g2').claim([CHANNEL])
    const answer = await command('/resume shared')
    const own = await store.sessions.get((await conversation())?.id ?? '')
    expect([answer, own, (await store.sessions.get(other))?.sessionId]).toEqual([
      'Another conversation is using that session. Wait for it to finish, or stop it there.',
      undefined,
      'shared',
    ])
  })

  it('holds from the next message on: the turn that runs does not undo it', async () => {
    const { store, clock, command, past, say, work } = await setup()
    const id = await past('a', { sessionId: 'old-session', text: 'Old' })
    await command('/new')
    clock.now += MINUTE_MS
    await work((await say('now')).messageId)
    clock.now += MINUTE_MS
    const answer = await command('/resume old-session')
    await command('/stop')
    expect([answer, (await store.sessions.get(id))?.sessionId]).toEqual([
      'The next message resumes this claude session: Old\nThe running turn is not affected.',
      'old-session',
    ])
  })

  it.each([
    ['3', 'There is no session 3 here. /sessions lists them.'],
    ['0', 'There is no session 0 here. /sessions lists them.'],
    ['aaa', 'There is no session aaa here. /sessions lists them.'],
    ['%%%%', 'There is no session %%%% here. /sessions lists them.'],
    ['aaaa', 'More than one session begins with aaaa. Type more of its id, or its number in /sessions.'],
    ['aaaa-2', 'This conversation already uses that session.'],
  ])('%s: says what is wrong', async (wanted, words) => {
    const { store, command, past } = await setup()
    await past('b', { sessionId: 'aaaa-1' })
    const id = await past('a', { sessionId: 'aaaa-2' })
    expect([await command(`/resume ${wanted}`), (await store.sessions.get(id))?.sessionId]).toEqual([words, 'aaaa-2'])
  })

  it('refuses a session of an agent that is not installed', async () => {
    const { command, past } = await setup()
    await past('b', { sessionId: 'of-pi', backend: 'pi' })
    expect(await command('/resume 1')).toEqual(
      'pi is not installed where the gateway runs. "aetheel doctor --agent pi" shows how to install it.',
    )
  })

  it('lists them if none is named', async () => {
    const { command } = await setup()
    expect(await command('/resume')).toEqual('There are no sessions yet.')
  })
})

describe('a project in a pod', () => {
  const pod = { context: 'dev', namespace: 'agents', name: 'web-0' }
  const place = '/workspace in the pod web-0 (namespace agents, context dev)'

  it('is shown with its pod', async () => {
    const { store, command, suggest } = await setup()
    await store.projects.put({ id: 'web', directory: '/workspace', pod }, 'cluster', 1)
    const answers = [
      await command('/project web'),
      await command('/project'),
      (await command('/status')).split('\n')[3],
    ]
    expect([...answers, await suggest('project')]).toEqual([
      `The project is web: the next message goes to claude in ${place}, in a fresh session.`,
      `The project is web: claude works in ${place}.\nAvailable:\nweb: ${place}`,
      `directory: ${place}`,
      [
        { label: `web: ${place}`, value: 'web' },
        { label: 'default', value: 'default' },
      ],
    ])
  })

  it('takes agents that are not installed here: the pod may have them', async () => {
    const { store, command, suggest } = await setup()
    await store.projects.put({ id: 'web', directory: '/workspace', pod }, 'cluster', 1)
    const here = await command('/backend pi')
    await command('/project web')
    expect([here, await command('/backend pi'), (await suggest('backend', 'pi')).map(({ label }) => label)]).toEqual([
      'pi is not installed where the gateway runs. "aetheel doctor --agent pi" shows how to install it.',
      'The next message goes to pi, in a fresh session.',
      ['pi'],
    ])
  })

  it('continues only sessions of that pod', async () => {
    const { store, command, past } = await setup()
    await store.projects.put({ id: 'web', directory: '/workspace', pod }, 'cluster', 1)
    await past('a', { text: 'Here', sessionId: 'session-here', directory: '/workspace' })
    await past('a', { text: 'There', sessionId: 'session-there', directory: 'pod:dev:agents:web-0::/workspace' })
    await command('/project web')
    const listed = await command('/sessions')
    await command('/resume 1')
    const conversation = await store.conversations.find(CHANNEL, 'a')
    const session = await store.sessions.get(conversation?.id ?? '')
    expect([listed.includes('There'), listed.includes('Here'), session?.directory]).toEqual([
      true,
      false,
      'pod:dev:agents:web-0::/workspace',
    ])
  })
})

it('an unregistered agent is shown with its replacement', async () => {
  const { store, command } = await setup()
  await store.projects.put({ id: 'site', directory: '/srv/site', backend: 'cursor', model: 'its-own' }, 'file', 1)
  await command('/project site')
  const [agent, model] = (await command('/status')).split('\n')
  expect([agent, model, await command('/backend')]).toEqual([
    'agent: claude (cursor is not registered here)',
    'model: large',
    'The agent is claude.',
  ])
})

describe('/project', () => {
  it('shows the project, and those there are', async () => {
    const { store, command } = await setup()
    const empty = await command('/project')
    await store.projects.put({ id: 'site', directory: '/srv/site', backend: 'codex' }, 'file', 1)
    await store.projects.put({ id: 'app', directory: '/srv/app' }, 'file', 1)
    await command('/project site')
    expect([empty, await command('/project')]).toEqual([
      'No project: claude works in /work.',
      'The project is site: codex works in /srv/site.\nAvailable:\napp: /srv/app\nsite: /srv/site',
    ])
  })

  it('chooses and takes back, each in a fresh session', async () => {
    const { store, command, past } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site', backend: 'codex' }, 'file', 1)
    const id = await past('a', { sessionId: 's1' })
    const chosen = await command('/project SITE')
    const sessions = [await store.sessions.get(id)]
    await store.sessions.set(
      { conversationId: id, backend: 'codex', sessionId: 's2', directory: '/srv' },
      START + DAY_MS,
    )
    const answers = [chosen, await command('/project site')]
    sessions.push(await store.sessions.get(id))
    answers.push(await command('/project default'))
    sessions.push(await store.sessions.get(id))
    expect([answers, sessions.map((session) => session?.sessionId)]).toEqual([
      [
        'The project is site: the next message goes to codex in /srv/site, in a fresh session.',
        'The project is site, as before.',
        'No project: the next message goes to claude in /work, in a fresh session.',
      ],
      [undefined, 's2', undefined],
    ])
  })

  it('goes back to the project of the place', async () => {
    const { store, command } = await setup()
    const place = { address: 'a', projectId: 'site' }
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    await store.projects.put({ id: 'app', directory: '/srv/app' }, 'file', 1)
    await command('/project app', place)
    expect(await command('/project default', place)).toEqual(
      'The project is site: the next message goes to claude in /srv/site, in a fresh session.',
    )
  })

  it('says that a running turn stays where it began', async () => {
    const { store, command, say, work } = await setup()
    await store.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
    await work((await say('one')).messageId)
    expect((await command('/project site')).split('\n')[1]).toEqual('The running turn is not affected.')
  })

  it('lists the existing ones if there is none of that name', async () => {
    const { store, command, conversation } = await setup()
    const none = await command('/project x')
    await store.projects.put({ id: 'app', directory: '/srv/app' }, 'file', 1)
    expect([none, await command('/project x'), (await conversation())?.projectId]).toEqual([
      'There is no project x. Known: none yet.',
      'There is no project x. Known: app.',
      undefined,
    ])
  })
})

describe('/usage', () => {
  it('counts here today, here lately, and in the whole project', async () => {
    const { clock, command, past } = await setup()
    clock.now -= 40 * DAY_MS
    await past('a', { usage: USAGE, costUsd: 100 })
    clock.now = START - 13 * 3_600_000
    await past('a', { usage: USAGE, costUsd: 1 })
    clock.now = START
    await past('a', {})
    await past('b', { usage: USAGE, costUsd: 2.5 })
    await past('c', { usage: USAGE, costUsd: 50, place: { projectId: 'site' } })
    expect([
      await command('/usage'),
      (await command('/usage', { address: 'c', projectId: 'site' })).split('\n')[2],
    ]).toEqual([
      [
        'here today (UTC): 1 turn, 60 s of work',
        'here, last 30 days: 2 turns, 2 min of work; 1,200 tokens in, 300 out, cache 50,000 read and 40 written; $1.00 for 1 of them',
        'everything without a project, last 30 days: 3 turns, 3 min of work; 2,400 tokens in, 600 out, cache 100,000 read and 80 written; $3.50 for 2 of them',
      ].join('\n'),
      'project site, last 30 days: 1 turn, 60 s of work; 1,200 tokens in, 300 out, cache 50,000 read and 40 written; $50.00',
    ])
  })
})

describe('what is suggested', () => {
  it('is each mode with what it means', async () => {
    const { suggest } = await setup()
    expect([(await suggest('queue')).map(({ value }) => value), await suggest('queue', 'coll')]).toEqual([
      ['followup', 'collect', 'interrupt', 'steer', 'default'],
      [{ label: 'collect: waiting messages share the next turn', value: 'collect' }],
    ])
  })

  it('after /backend: those that are installed first', async () => {
    const { suggest } = await setup()
    expect([await suggest('backend'), await suggest('backend', ' OD')]).toEqual([
      [
        { label: 'claude', value: 'claude' },
        { label: 'codex', value: 'codex' },
        { label: 'gemini', value: 'gemini' },
        { label: 'opencode', value: 'opencode' },
        { label: 'pi (not installed)', value: 'pi' },
        { label: 'default', value: 'default' },
      ],
      [
        { label: 'codex', value: 'codex' },
        { label: 'opencode', value: 'opencode' },
      ],
    ])
  })

  it('after /model: those the agent was used with lately, then those it is known to have', async () => {
    const { suggest, past } = await setup()
    await past('a', { model: 'old' })
    await past('b', { model: 'large' })
    await past('b', { model: 'of-codex', backend: 'codex' })
    const values = async (typed?: string) => (await suggest('model', typed)).map(({ value }) => value)
    expect([await values(), await values('L')]).toEqual([
      ['large', 'old', 'known', 'default'],
      ['large', 'old', 'default'],
    ])
  })

  it("after /model in a place where nobody has written: those of its parent's agent", async () => {
    const { store, suggest, command, past, conversation } = await setup()
    await past('b', { model: 'of-codex', backend: 'codex' })
    await past('b', { model: 'of-gemini', backend: 'gemini' })
    await store.projects.put({ id: 'site', directory: '/srv/site', backend: 'gemini' }, 'file', 1)
    await command('/backend codex', { address: 'room' })
    const inThread = await suggest('model', 'of', { address: 'thread', parent: 'room', projectId: 'site' })
    const ofProject = await suggest('model', 'of', { address: 'alone', projectId: 'site' })
    expect([inThread, ofProject, await conversation('thread')]).toEqual([
      [{ label: 'of-codex', value: 'of-codex' }],
      [{ label: 'of-gemini', value: 'of-gemini' }],
      undefined,
    ])
  })

  it('after /project: each with its directory, found by that too', async () => {
    const { store, suggest } = await setup()
    await store.projects.put({ id: 'site', directory: `/srv/${'deep/'.repeat(40)}` }, 'file', 1)
    await store.projects.put({ id: 'app', directory: '/srv/app' }, 'file', 1)
    const label = `site: /srv/${'deep/'.repeat(40)}`.slice(0, 99)
    expect([await suggest('project'), await suggest('project', 'deep')]).toEqual([
      [
        { label: 'app: /srv/app', value: 'app' },
        { label: `${label}…`, value: 'site' },
        { label: 'default', value: 'default' },
      ],
      [{ label: `${label}…`, value: 'site' }],
    ])
  })

  it('after /resume: the sessions', async () => {
    const { suggest, past } = await setup()
    await past('a', { sessionId: 'first-session', text: 'Fix the login page' })
    await past('b', { sessionId: 'second-session', text: 'And the footer' })
    expect([(await suggest('resume')).map(({ value }) => value), await suggest('resume', 'LOGIN')]).toEqual([
      ['second-session', 'first-session'],
      [{ label: '2. claude, 2 min ago: Fix the login page (first-sessio)', value: 'first-session' }],
    ])
  })

  it('is not more, and not longer, than fits', async () => {
    const { suggest, past } = await setup()
    for (let index = 0; index < 30; index += 1) await past('a', { model: `model-${index}` })
    await past('a', { model: 'x'.repeat(101) })
    const values = (await suggest('model')).map(({ value }) => value)
    expect([values.length, values[0]]).toEqual([25, 'model-29'])
  })

  it.each(['new', 'constructor', ''])('after %j: nothing', async (command) => {
    const { suggest } = await setup()
    expect(await suggest(command)).toEqual([])
  })
})

describe('the Stop button', () => {
  it('ends the turn of its message', async () => {
    const { store, commands, say, work } = await setup({ tools: ['ls', 'make'] })
    const { messageId } = await say('one')
    await say('two')
    await work(messageId)
    const { text } = await commands.button('stop', messageId, 'bob')
    expect([text, (await store.inbox.get(messageId))?.state]).toEqual([
      'Stopped claude after 0 s, during Bash: make. 1 more message is waiting.',
      'cancelled',
    ])
  })

  it('does not end the turn of the next message', async () => {
    const { worker, commands, command, say, work } = await setup()
    const { messageId } = await say('one')
    const { messageId: next } = await say('two')
    await command('/stop')
    await work(next)
    expect([(await commands.button('stop', messageId, 'bob')).text, worker.active().length]).toEqual([
      'That has already finished.',
      1,
    ])
  })

  it('drops its message while that waits', async () => {
    const { store, commands, say } = await setup()
    await say('one')
    const { messageId } = await say('two')
    expect([(await commands.button('stop', messageId, 'bob')).text, (await store.inbox.get(messageId))?.state]).toEqual(
      ['Dropped the waiting message. 1 more message is waiting.', 'dropped'],
    )
  })

  it('asks another gateway that works on its message', async () => {
    const { queueOf, commands, say } = await setup()
    const { messageId } = await say('one')
    const other = queueOf('g2')
    const work = await other.claim([CHANNEL])
    expect([(await commands.button('stop', messageId, 'bob')).text, work && (await other.renew(work))]).toEqual([
      'Another gateway is working on it and was asked to stop.',
      'cancelled',
    ])
  })

  it('leaves a message that has failed, and one that nobody knows', async () => {
    const { store, commands, say, fail } = await setup({ isFailing: true })
    const { messageId } = await say('one')
    await fail(messageId)
    const answers = [await commands.button('stop', messageId, 'bob'), await commands.button('stop', 'none', 'bob')]
    expect([answers.map(({ text }) => text), (await store.inbox.get(messageId))?.state]).toEqual([
      ['That has already finished.', 'That has already finished.'],
      'failed',
    ])
  })
})

describe('the Retry button', () => {
  it('takes a message up that has failed, once', async () => {
    const { store, commands, say, fail, worker } = await setup({ isFailing: true })
    const { messageId } = await say('one')
    await fail(messageId)
    await worker.stop(0)
    const answers = [await commands.button('retry', messageId, 'bob'), await commands.button('retry', messageId, 'bob')]
    expect([answers.map(({ text }) => text), (await store.inbox.get(messageId))?.state]).toEqual([
      ['Queued again.', 'It is already waiting or running.'],
      'open',
    ])
  })

  it.each([
    ['/stop', 'It was removed from the queue. Send it again.'],
    ['/queue', 'It is already waiting or running.'],
  ])('leaves a message alone after %s', async (line, words) => {
    const { commands, command, say } = await setup()
    const { messageId } = await say('one')
    await command(line)
    expect(await commands.button('retry', messageId, 'bob')).toEqual({ text: words, isDone: true })
  })

  it('says so if there is no such message, and may be pressed again', async () => {
    const { commands } = await setup()
    expect(await commands.button('retry', 'none', 'bob')).toEqual({
      text: expect.stringMatching(/^There is no message none\./),
      isDone: false,
    })
  })
})

it('every change is recorded, with its author', async () => {
  const { store, commands, command, conversation, say } = await setup()
  const { messageId } = await say('one')
  for (const line of ['/model small', '/model', '/nothing', '/status now', '/backend pi', '/resume 5', '/new']) {
    await command(line)
  }
  await commands.button('retry', messageId, 'bob')
  await commands.button('stop', messageId, 'bob')
  const id = (await conversation())?.id
  const entries = (await store.audit.list(10)).toSorted((one, other) => one.action.localeCompare(other.action))
  expect(entries).toMatchObject([
    { at: START, actor: 'ann', action: 'model', subject: id, detail: 'small' },
    { at: START, actor: 'ann', action: 'new', subject: id },
    { at: START, actor: 'bob', action: 'stop', subject: messageId },
  ])
})
