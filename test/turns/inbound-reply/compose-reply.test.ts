import { expect, it } from 'vitest'
import { type ReplyConfig, inboundSchema } from '../../../src/config/inbound.js'
import { composeReply, type RelayedTurn } from '../../../src/turns/inbound-reply/compose-reply.js'

const SESSION = '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6'

function config(reply: object): ReplyConfig {
  return inboundSchema.parse({ reply }).reply
}

function compose(reply: object, turn: Partial<RelayedTurn> = {}, body = 'hi') {
  const message = { body, fileLines: [], variables: { From: '+491' } }
  const whole = {
    backend: 'claude',
    canSendFiles: false,
    sessionId: undefined,
    newId: () => 'new-id',
    ...turn,
  } as const
  return composeReply(config(reply), message, whole)
}

it('without a command the configured agent is asked as it is', () => {
  expect(compose({ agent: { kind: 'claude' } })).toEqual({ prompt: 'hi', command: { args: [], isReadOnly: true } })
})

it('a command is composed of the executable and further arguments', () => {
  const agent = { kind: 'claude', format: 'json', identityPrefix: 'You are Ada.' }
  const command = [
    'my-claude',
    '-p',
    '{{Body}}',
    '--name',
    '{{From}}/{{IsNewSession}}/{{SessionId}}',
    '{{Body}}|{{BodyStripped}}',
  ]
  expect(compose({ agent, command })).toEqual({
    prompt: 'You are Ada.\n\nhi',
    command: {
      executable: 'my-claude',
      args: ['-p', '--name', '+491/true/', 'You are Ada.\n\nhi|hi'],
      template: ['-p', '--name', '{{From}}/{{IsNewSession}}/{{SessionId}}', '{{Body}}|{{BodyStripped}}'],
      format: 'json',
      isReadOnly: true,
    },
  })
})

it("the prompt is only the person's words if the command says so", () => {
  const reply = { agent: { kind: 'claude', identityPrefix: 'You are Ada.' }, command: ['claude', '{{BodyStripped}}'] }
  expect(compose(reply).prompt).toBe('hi')
})

it.each<[string, string | undefined, object]>([
  ['begins a session with a new id', undefined, { sessionArgs: ['--session-id', 'new-id'], args: ['new-id true'] }],
  ['continues a session by its own id', SESSION, { sessionArgs: ['-r', SESSION], args: [`${SESSION} false`] }],
])('%s', (_, sessionId, command) => {
  const session = { sessionArgNew: ['--session-id', '{{SessionId}}'], sessionArgResume: ['-r', '{{SessionId}}'] }
  const template = ['{{SessionId}} {{IsNewSession}}']
  const reply = { agent: { kind: 'claude' }, command: ['claude', ...template], session }
  expect(compose(reply, { sessionId }).command).toEqual({
    executable: 'claude',
    template,
    isReadOnly: true,
    ...command,
  })
})

it('arguments for one agent are not given to another', () => {
  const reply = {
    agent: { kind: 'claude', format: 'text', identityPrefix: 'You are Ada.' },
    command: ['claude', '--name', '{{From}}', '{{BodyStripped}}'],
    session: { sessionArgNew: ['--session-id', '{{SessionId}}'] },
  }
  expect(compose(reply, { backend: 'codex' })).toEqual({
    prompt: 'You are Ada.\n\nhi',
    command: { args: [], isReadOnly: true },
  })
})

it('an argument that would become an option is refused', () => {
  const reply = { agent: { kind: 'claude' }, command: ['claude', '{{BodyStripped}} please'] }
  expect(() => compose(reply, {}, '--help')).toThrow('it would begin with "-"')
})
