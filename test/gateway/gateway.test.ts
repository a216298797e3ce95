import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import type { OutgoingReply } from '../../src/channels/types.js'
import { databaseFile } from '../../src/gateway.js'
import { requireBackend } from '../../src/runtime/required-agents.js'
import { openStore } from '../../src/store/store.js'
import { AgentScript } from '../contract/agent-script.js'
import { brokenInvariants } from '../contract/invariants.js'
import { agentPath } from '../kit/agents.js'
import { printedAnswer } from '../contract/wire-formats.js'
import { STEPS_AGENT, steps } from '../kit/steps-agent.js'
import { guardiansOf, Stage, TestChannel } from '../kit/stage.js'

/** Prints its directory and arguments. */
const CALL_AGENT = `#!/bin/sh
cat > /dev/null
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"%s"}\\n' "$PWD $*"
`

/** Names a file, and says whether it was told that it may send one. */
const FILE_AGENT = `#!/bin/sh
cat > /dev/null
case "$*" in *--append-system-prompt-file*) ;; *) set -- --append-system-prompt-file /dev/null ;; esac
while [ "$1" != --append-system-prompt-file ]; do shift; done
grep -q '^MEDIA:<path>$' "$2" && can='send files' || can='send nothing'
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"I can %s.%sMEDIA:plot.png"}\\n' "$can" '\\n'
`

describe.concurrent('a gateway', () => {
  it('answers a message, shows what the agent does, and leaves nothing recorded as running', async ({
    expect,
    onTestFinished,
  }) => {
    const { gateway, channel, steps } = await new Stage(onTestFinished).start()
    const acceptance = await channel.say('a', 'What is my name?', 'p1')
    await expect.poll(() => channel.replies.length).toEqual(1)
    const { messageId } = acceptance
    const events = channel.shown.map(({ event }) => event)
    expect({
      acceptance,
      replies: channel.replies,
      steps,
      numbers: channel.shown.map(({ seq }) => seq),
      broken: brokenInvariants(events),
      streamed: events.map((event) => (event.type === 'output' ? event.content : '')).join(''),
      processes: await gateway.store.ledger.processesOf(gateway.id),
    }).toEqual({
      acceptance: { status: 'accepted', messageId, conversationId: expect.any(String), position: 0, notes: [] },
      replies: [
        {
          text: 'I do not know it yet.',
          notes: [],
          isError: false,
          idempotencyKey: expect.any(String),
          address: 'a',
          messageId,
          platformId: 'p1',
          author: 'ann',
          createdAt: expect.any(Number),
          attempt: 1,
        },
      ],
      steps: ['accepted', 'claimed', 'streaming', 'finished', 'committed', 'sent'],
      numbers: channel.shown.map((_, index) => index + 1),
      broken: [],
      streamed: 'I do not know it yet.',
      processes: [],
    })
  })

  it('puts what an agent sends for developers into the log, and marks it', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { channel } = await stage.start({ BACKEND_CLI_PATH: STEPS_AGENT })
    const compacted = { type: 'system', subtype: 'compact_boundary' }
    await channel.say('a', steps({ print: { type: 'dream' } }, { print: compacted }, { text: 'Done.' }))
    await expect.poll(() => channel.texts()).toEqual(['Done.'])
    const notices = channel.shown.flatMap(({ event }) =>
      event.type === 'notice' ? [[event.content, event.isTechnical]] : [],
    )
    expect([notices, stage.logsOf('agent.notice').map(({ notice }) => notice)]).toEqual([
      [
        ['The agent sent an unknown event: dream', true],
        ['The conversation was compacted to make room.', undefined],
      ],
      ['The agent sent an unknown event: dream'],
    ])
  })

  it('answers a message that is delivered again once', async ({ expect, onTestFinished }) => {
    const { channel } = await new Stage(onTestFinished).start()
    const first = await channel.say('a', 'hello', 'p1')
    const again = await channel.say('a', 'hello', 'p1')
    await channel.say('b', 'hello', 'p2')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const late = await channel.say('a', 'hello', 'p1')
    expect([again, late].map(({ status, messageId }) => ({ status, messageId }))).toEqual([
      { status: 'duplicate', messageId: first.messageId },
      { status: 'duplicate', messageId: first.messageId },
    ])
  })

  it('continues the same session after a restart', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const before = await stage.start()
    await before.channel.say('a', 'my name is Ada')
    await expect.poll(() => before.channel.replies.length).toEqual(1)
    await before.stop()
    const after = await stage.start()
    await after.channel.say('a', 'What is my name?')
    await expect.poll(() => after.channel.texts()).toEqual(['Your name is Ada; you told me earlier in this session.'])
  })

  it('tells the person if the agent has lost the session, and answers anyway', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start()
    const { conversationId } = await channel.say('a', 'my name is Ada')
    await expect.poll(() => channel.replies.length).toEqual(1)
    const session = { conversationId, backend: 'claude', sessionId: 'gone', directory: stage.workingDir }
    await gateway.store.sessions.set(session, Date.now())
    await channel.say('a', 'What is my name?')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const { text, notes, isError } = channel.replies[1] ?? {}
    expect({ text, notes, isError }).toEqual({
      text: 'I do not know it yet.',
      notes: ['The earlier session was lost; this answer starts a fresh one and remembers nothing from before.'],
      isError: false,
    })
  })

  it("works with the directory and agent of the conversation's project", async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const directory = stage.makeDirectory('project')
    const project = { directory, model: 'small', allowedTools: ['Read'], maxTurns: 3 }
    const BACKEND_CLI_PATH = stage.executable('call-agent', CALL_AGENT)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH }, { projects: { one: project } })
    const { conversationId } = await channel.say('a', 'Where are you?')
    await expect.poll(() => channel.replies.length).toEqual(1)
    await gateway.store.conversations.configure(conversationId, { projectId: 'one' })
    await channel.say('a', 'Where are you?')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const [usual, inProject] = channel.replies.map(({ text, notes }) => ({
      directory: text.split(' ')[0],
      model: / --model (\S+)/.exec(text)?.[1],
      tools: / --allowed-?[tT]ools (\S+)/.exec(text)?.[1],
      maxTurns: / --max-turns (\S+)/.exec(text)?.[1],
      notes,
    }))
    expect([usual, inProject]).toEqual([
      { directory: stage.workingDir, model: undefined, tools: undefined, maxTurns: '25', notes: [] },
      {
        directory,
        model: 'small',
        tools: 'Read',
        maxTurns: '3',
        notes: ['The working directory has changed; this answer starts a fresh session there.'],
      },
    ])
  })

  it("tells the person what is wrong if the project's directory is gone", async ({ expect, onTestFinished }) => {
    const { gateway, channel } = await new Stage(onTestFinished).start()
    const { conversationId } = await channel.say('a', 'hello')
    await expect.poll(() => channel.replies.length).toEqual(1)
    await gateway.store.conversations.configure(conversationId, { projectId: 'gone' })
    await channel.say('a', 'hello')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const { text, isError, canRetry } = channel.replies[1] ?? {}
    expect([text, isError, canRetry]).toEqual(['The project gone of this conversation was not found.', true, true])
  })

  it("works with the current choices of a place's parent, in the operator's directory", async ({
    expect,
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished)
    const [site, app] = [stage.makeDirectory('site'), stage.makeDirectory('app')]
    const projects = { site: { directory: site }, app: { directory: app } }
    const BACKEND_CLI_PATH = stage.executable('call-agent', CALL_AGENT)
    const { channel } = await stage.start({ BACKEND_CLI_PATH }, { projects })
    const thread = { address: 'room/thread', parent: 'room', projectId: 'site' }
    const calls: Array<[directory: string | undefined, model: string | undefined]> = []
    const ask = async () => {
      const count = channel.replies.length
      await channel.say(thread, 'Where are you?')
      await expect.poll(() => channel.replies.length).toEqual(count + 1)
      const text = channel.texts().at(-1) ?? ''
      calls.push([text.split(' ')[0], / --model (\S+)/.exec(text)?.[1]])
    }
    await ask()
    await channel.command('room', '/project app')
    await channel.command('room', '/model small')
    await ask()
    await channel.command('room', '/model large')
    await ask()
    await channel.command(thread, '/project site')
    await channel.command(thread, '/model own')
    await ask()
    expect(calls).toEqual([
      [site, undefined],
      [app, 'small'],
      [app, 'large'],
      [site, 'own'],
    ])
  })

  it.for<[string, boolean, Partial<OutgoingReply>]>([
    ['takes files: they go with the answer, and the agent was told how', true, { text: 'I can send files.' }],
    ['takes none: the lines stay in the answer', false, { text: 'I can send nothing.\nMEDIA:plot.png' }],
  ])(
    'delivers an answer that names files to a channel that %s',
    async ([, takesFiles, expected], { expect, onTestFinished }) => {
      const stage = new Stage(onTestFinished)
      const directory = stage.makeDirectory('site')
      const BACKEND_CLI_PATH = stage.executable('file-agent', FILE_AGENT)
      const file = { projects: { site: { directory } } }
      const { channel } = await stage.start({ BACKEND_CLI_PATH }, file, new TestChannel(takesFiles))
      await channel.say({ address: 'a', projectId: 'site' }, 'Draw it')
      await expect.poll(() => channel.replies.length).toEqual(1)
      const { text, files } = channel.replies[0] ?? {}
      expect({ text, files }).toEqual({
        ...expected,
        files: takesFiles ? [{ path: 'plot.png', directory }] : undefined,
      })
    },
  )

  it('explains why an agent failed, and retries the message with the button', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { channel } = await stage.start({ BACKEND_CLI_PATH: agentPath('fake-agent.sh') })
    const script = new AgentScript('claude', stage.directory)
    const { messageId } = await channel.say('a', script.prompt([{ fail: 'Please run /login' }, { exit: 1 }]))
    await expect.poll(() => channel.replies.length).toEqual(1)
    const answer = await channel.host().onButton('retry', messageId, 'ann')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const failure = {
      text: expect.stringMatching(/^claude is not logged in where the gateway runs.*\n\nIt said: .*Please run \/login/),
      isError: true,
      canRetry: true,
      messageId,
      attempt: 1,
    }
    expect([answer, channel.replies]).toMatchObject([{ text: 'Queued again.', isDone: true }, [failure, failure]])
  })

  it('ends the whole tree of an agent on /stop and is free for the next message', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: agentPath('fake-agent.sh') })
    const script = new AgentScript('claude', stage.directory)
    const hidingTools = script.prompt([
      { start: true },
      { ignoreSignals: ['SIGINT', 'SIGTERM'] },
      { descendant: 'own-session' },
      { descendant: 'orphan' },
      { touch: 'ready' },
      { hang: true },
    ])
    await channel.say('a', hidingTools)
    await expect.poll(() => existsSync(join(stage.workingDir, 'ready'))).toEqual(true)
    const during = { alive: stage.alive().length, processes: await gateway.store.ledger.processesOf(gateway.id) }
    const answer = await channel.command('a', '/stop')
    const after = { alive: stage.alive(), processes: await gateway.store.ledger.processesOf(gateway.id) }
    await channel.say('a', script.prompt([{ answer: 'free' }]))
    await expect.poll(() => channel.texts()).toEqual(['free'])
    expect([during.alive, during.processes.length, answer, after]).toEqual([
      3,
      1,
      expect.stringMatching(/^Stopped claude after \d+ s\.$/),
      { alive: [], processes: [] },
    ])
  })

  it('changes the agent with /backend, in a fresh session', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    writeFileSync(join(stage.workingDir, 'answer'), printedAnswer('codex', 'Codex here.'))
    stage.executable('codex', '#!/bin/sh\ncat > /dev/null\ncat answer\n')
    const { channel } = await stage.start()
    const lines = ['my name is Ada', '/backend codex', 'What is my name?', '/backend default', 'What is my name?']
    const answers: string[] = []
    for (const line of lines) {
      if (line.startsWith('/')) answers.push(await channel.command('a', line))
      else {
        const count = channel.replies.length
        await channel.say('a', line)
        await expect.poll(() => channel.replies.length).toEqual(count + 1)
        answers.push(channel.texts().at(-1) ?? '')
      }
    }
    expect(answers).toEqual([
      'Your name is Ada; you told me earlier in this session.',
      'The next message goes to codex, in a fresh session.',
      'Codex here.',
      'The next message goes to claude, in a fresh session.',
      'I do not know it yet.',
    ])
  })

  it('tells the hooks what happens, in order', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const on = ['message-received', 'run-started', 'run-finished', 'reply-sent', 'error']
    const hooks = [{ on, command: ['/bin/sh', '-c', 'cat >> told; echo >> told'] }]
    const { channel, stop } = await stage.start({}, { hooks })
    const { messageId, conversationId } = await channel.say('a', 'hello')
    await expect.poll(() => channel.replies.length).toEqual(1)
    await stop()
    const lines = readFileSync(join(stage.workingDir, 'told'), 'utf8').trim().split('\n')
    const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const about = { at: expect.any(String), conversationId }
    expect(told).toEqual([
      { hook: 'message-received', ...about, messageId, channel: 'test', status: 'accepted' },
      { hook: 'run-started', ...about, backend: 'claude', runId: expect.any(String) },
      {
        hook: 'run-finished',
        ...about,
        backend: 'claude',
        runId: told[1]?.['runId'],
        durationMs: expect.any(Number),
        isCancelled: false,
        isPaused: false,
      },
      { hook: 'reply-sent', ...about, replyId: expect.any(String), channel: 'test', messageId },
    ])
  })

  it('tells the hooks about a failed agent', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const hooks = [{ on: ['error'], command: ['/bin/sh', '-c', 'cat > part; mv part told'] }]
    const { channel } = await stage.start({ BACKEND_CLI_PATH: agentPath('fake-agent.sh') }, { hooks })
    const script = new AgentScript('claude', stage.directory)
    const { conversationId } = await channel.say('a', script.prompt([{ fail: 'Out of order' }, { exit: 1 }]))
    const told = join(stage.workingDir, 'told')
    await expect.poll(() => existsSync(told)).toEqual(true)
    expect(JSON.parse(readFileSync(told, 'utf8'))).toMatchObject({
      hook: 'error',
      conversationId,
      backend: 'claude',
      reason: 'exit',
      message: expect.stringContaining('Out of order'),
    })
  })

  it('keeps its data readable only by its owner', async ({ expect, onTestFinished }) => {
    const { config } = await new Stage(onTestFinished).start()
    expect(statSync(config.home).mode & 0o777).toEqual(0o700)
  })
})

describe.concurrent('a gateway that stops', () => {
  it('leaves nothing: no guardian, no agent, no record of itself', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { gateway, config, channel, stop } = await stage.start()
    await channel.say('a', 'hello')
    await expect.poll(() => channel.replies.length).toEqual(1)
    const during = [guardiansOf(gateway), (await gateway.store.ledger.gateways()).map(({ id }) => id)]
    await stop()
    const store = await openStore({ file: databaseFile(config) }, stage.log)
    const after = [guardiansOf(gateway), stage.alive(), await store.ledger.gateways()]
    await store.close()
    expect([during, after]).toEqual([
      [1, [gateway.id]],
      [0, [], []],
    ])
  })

  it('lets the agents finish, and their answers go out', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const { channel, steps, stop } = await stage.start({ MAX_CONCURRENT_QUERIES: '3' })
    for (const address of ['a', 'b', 'c']) await channel.say(address, 'What is my name?')
    await expect.poll(() => steps.filter((step) => step === 'claimed').length).toEqual(3)
    await stop()
    expect(channel.texts()).toEqual(Array.from({ length: 3 }, () => 'I do not know it yet.'))
  })

  it('releases unfinished work at once if it may not drain, and the next gateway continues it', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished)
    const agent = { BACKEND_CLI_PATH: stage.executable('patient-agent', PATIENT_AGENT) }
    const before = await stage.start({ ...agent, DRAIN_TIMEOUT_MS: '0' })
    await before.channel.say('a', 'Please count.')
    await expect.poll(() => before.channel.shown.some(({ event }) => event.type === 'output')).toEqual(true)
    await before.stop()
    const left = stage.alive()
    const after = await stage.start(agent)
    await expect.poll(() => after.channel.replies.length).toEqual(1)
    await after.stop()
    expect([left, before.channel.replies, after.channel.texts()]).toEqual([[], [], ['I go on.']])
  })
})

/** Counts until it is stopped, and continues when resumed. */
const PATIENT_AGENT = `#!/usr/bin/env node
const print = (line) => console.log(JSON.stringify({ ...line, session_id: '11111111-1111-4111-8111-111111111111' }))
print({ type: 'system', subtype: 'init' })
if (process.argv.includes('--resume')) print({ type: 'result', subtype: 'success', is_error: false, result: 'I go on.' })
else {
  const delta = { type: 'text_delta', text: 'One.' }
  print({ type: 'stream_event', event: { type: 'content_block_delta', delta } })
  setInterval(() => {}, 1_000_000)
}
`

class FailingChannel extends TestChannel {
  override async start(): Promise<void> {
    throw new Error('The token was refused.')
  }
}

describe.concurrent('a gateway that cannot start', () => {
  it('says why and leaves nothing behind', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    await expect(stage.start({}, {}, new FailingChannel())).rejects.toThrow('The token was refused.')
    const store = await openStore({ file: databaseFile(stage.config()) }, stage.log)
    const gateways = await store.ledger.gateways()
    await store.close()
    expect([gateways, stage.alive()]).toEqual([[], []])
  })
})

describe.concurrent('the agent that is chosen', () => {
  it('is found before the gateway starts', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    await expect(requireBackend(stage.config(), stage.environment, stage.log)).resolves.toBeUndefined()
  })

  it('is reported missing by name and path, in the error and in the log', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const BACKEND_CLI_PATH = join(stage.directory, 'nowhere')
    const missing = requireBackend(stage.config({ BACKEND_CLI_PATH }), stage.environment, stage.log)
    await expect(missing).rejects.toMatchObject({
      code: 'backend_missing',
      message: expect.stringMatching(/^The agent claude cannot be used\. .*nowhere/),
    })
    expect(stage.logsOf('backend.missing')).toMatchObject([{ backend: 'claude', path: BACKEND_CLI_PATH }])
  })

  it('must have the directory that messages from WhatsApp are answered in', async ({ expect, onTestFinished }) => {
    const stage = new Stage(onTestFinished)
    const cwd = join(stage.directory, 'nowhere')
    const twilio = {
      TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
      TWILIO_AUTH_TOKEN: 'x',
      TWILIO_WHATSAPP_FROM: '+4930123456',
    }
    const config = stage.config(twilio, { inbound: { reply: { agent: { kind: 'claude' }, cwd } } })
    await expect(requireBackend(config, stage.environment, stage.log)).rejects.toMatchObject({
      code: 'config_invalid',
      message: `The directory ${cwd} for messages from WhatsApp does not exist. Create it, or set inbound.reply.cwd to an existing one.`,
    })
  })
})
