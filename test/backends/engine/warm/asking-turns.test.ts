// What is specific to each protocol in a turn that needs approvals.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { approvalRequestOf } from '../../../../src/backends/gemini/warm-lines.js'
import type { ApprovalRequest, Approve } from '../../../../src/backends/types.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'
import { openTalk } from './direct-talk.js'
import { createPlace } from './warm-stage.js'

const NONE = new AbortController().signal
const ALLOW: Approve = async () => ({ isAllowed: true })

/** Allows everything and records the requests. */
function noting(): { asked: ApprovalRequest[]; approve: Approve } {
  const asked: ApprovalRequest[] = []
  return {
    asked,
    async approve(request) {
      asked.push(request)
      return { isAllowed: true }
    },
  }
}

async function launchArgs(name: 'claude' | 'gemini', allowedTools: string[], isUntrusted = false) {
  const backend = createFakeBackend(name, 'unused', createStage())
  const turn = backend.cli.turnOf({ prompt: 'hi', approve: ALLOW, allowedTools, isUntrusted })
  return (await backend.cli.definition.driver?.launch(turn, createPlace(), NONE, {}))?.args ?? []
}

function canUse(id: string, tool_name: string, more: object = {}) {
  const request = { subtype: 'can_use_tool', tool_name, input: { a: 1 }, ...more }
  return { type: 'control_request', request_id: id, request }
}

function claudeSaid(id: string, behavior: 'allow' | 'deny') {
  const more = { allow: { updatedInput: { a: 1 } }, deny: { message: expect.any(String) } }
  const response = { behavior, ...more[behavior] }
  return { type: 'control_response', response: { subtype: 'success', request_id: id, response } }
}

it.each<[tools: string[], args: string[]]>([
  [[], ['--disallowedTools', 'AskUserQuestion']],
  [
    ['Read', 'Bash'],
    ['--disallowedTools', 'AskUserQuestion', '--disallowedTools', 'mcp__*', '--tools', 'Read,Bash'],
  ],
  [
    ['Bash(git log:*)', 'mcp__files'],
    [
      ...['--disallowedTools', 'AskUserQuestion', '--tools', 'Bash,mcp__files'],
      ...['--settings', '{"permissions":{"ask":["Bash(git log:*)"]}}'],
    ],
  ],
])('claude is told to ask, with the tools %j', async (tools, args) => {
  const all = await launchArgs('claude', tools)
  const from = all.indexOf('--permission-mode')
  expect(all.slice(from)).toEqual(['--permission-mode', 'default', '--permission-prompt-tool', 'stdio', ...args])
  expect(all).not.toContain('--dangerously-skip-permissions')
})

it('claude asks about two tools at once, and each is answered by itself', async () => {
  const talk = openTalk('claude')
  const answers: Array<(isAllowed: boolean) => void> = []
  const approve: Approve = () =>
    new Promise((resolve) => {
      answers.push((isAllowed) => resolve(isAllowed ? { isAllowed } : { isAllowed, message: 'No.' }))
    })
  talk.begin('hi', { approve })
  await talk.said()
  await talk.hear(canUse('one', 'Bash'), canUse('two', 'Write', { agent_id: 'sub' }))
  expect(await talk.said()).toEqual([])
  answers[1]?.(false)
  expect(await talk.said()).toEqual([claudeSaid('two', 'deny')])
  answers[0]?.(true)
  expect(await talk.said()).toEqual([claudeSaid('one', 'allow')])
})

it('claude gets no answer to a question it has withdrawn', async () => {
  const talk = openTalk('claude')
  const signals: AbortSignal[] = []
  const approve: Approve = (_request, signal) =>
    new Promise((resolve) => {
      signals.push(signal)
      signal.addEventListener('abort', () => resolve({ isAllowed: true }))
    })
  talk.begin('hi', { approve })
  await talk.said()
  await talk.hear(canUse('one', 'Bash'), { type: 'control_cancel_request', request_id: 'one' })
  expect([signals.map(({ aborted }) => aborted), await talk.said()]).toEqual([[true], []])
})

it('claude may not use tools that are not on its list, and nobody is asked', async () => {
  const talk = openTalk('claude')
  const { asked, approve } = noting()
  talk.begin('hi', { approve, allowedTools: ['Write', 'Bash(git log:*)', 'mcp__files'] })
  await talk.said()
  await talk.hear(
    ...[canUse('1', 'Write'), canUse('2', 'Bash'), canUse('3', 'Bash', { decision_reason_type: 'rule' })],
    ...[canUse('4', 'mcp__files__read'), canUse('5', 'mcp__other__read')],
  )
  const said = new Set(await talk.said())
  expect([said, asked.map(({ toolName }) => toolName)]).toEqual([
    new Set([
      ...[claudeSaid('1', 'allow'), claudeSaid('2', 'deny'), claudeSaid('3', 'allow')],
      ...[claudeSaid('4', 'allow'), claudeSaid('5', 'deny')],
    ]),
    ['Write', 'Bash', 'mcp__files__read'],
  ])
})

it('claude uses no tool when no turn that asks is under way', async () => {
  const talk = openTalk('claude')
  await talk.said()
  await talk.hear(canUse('one', 'Bash'))
  talk.begin('hi')
  await talk.hear(canUse('two', 'Bash'))
  const errors = (await talk.said()).filter(({ type }) => type === 'control_response')
  expect(errors).toEqual(
    ['one', 'two'].map((request_id) => ({
      type: 'control_response',
      response: { subtype: 'error', request_id, error: 'Not supported' },
    })),
  )
})

const THREAD = '01a1e4e6-d806-7892-b11e-f72bf74f13a0'

/** Codex with a running turn. */
async function openCodex(approve?: Approve) {
  const talk = openTalk('codex')
  await talk.hear({ id: 1, result: {} })
  await talk.said()
  talk.begin('hi', { sessionId: THREAD, ...(approve && { approve }) })
  await talk.hear({ id: 2, result: { thread: { id: THREAD }, model: 'm' } })
  const opening = await talk.said()
  const turn = { id: 'turn-1', status: 'inProgress' }
  await talk.hear({ id: 3, result: { turn } }, { method: 'turn/started', params: { threadId: THREAD, turn } })
  return { talk, opening }
}

function codexAsks(id: number, kind: string, params: object) {
  return { id, method: kind, params: { threadId: THREAD, turnId: 'turn-1', ...params } }
}

const COMMAND = 'item/commandExecution/requestApproval'

it.each([
  [`/bin/bash -lc 'touch a'`, 'touch a'],
  ['/bin/bash -lc ls', 'ls'],
  [`/usr/bin/zsh -c "touch it's"`, `touch it's`],
  [`/bin/bash -lc "echo \\"a 'b' "'$HOME" > q; touch '"'x y'"`, `echo "a 'b' $HOME" > q; touch 'x y'`],
  [`/bin/bash -lc 'a' 'b'`, `/bin/bash -lc 'a' 'b'`],
  ['/bin/bash -lc $(id)', '/bin/bash -lc $(id)'],
  ['git log', 'git log'],
  [`/w/bin/bash -lc ls`, `/w/bin/bash -lc ls`],
])('codex asks for the command itself: %s', async (command, shown) => {
  const { asked, approve } = noting()
  const { talk } = await openCodex(approve)
  await talk.hear(codexAsks(0, COMMAND, { command, cwd: '/w' }))
  expect(asked).toEqual([{ toolName: 'command_execution', toolInput: { command: shown, cwd: '/w' } }])
})

it('codex names every file that it asks to change', async () => {
  const { asked, approve } = noting()
  const { talk } = await openCodex(approve)
  const changes = ['a', 'b'].map((path) => ({ path, kind: { type: 'add' }, diff: 'x' }))
  const item = { id: 'item-1', type: 'fileChange', changes, status: 'inProgress' }
  await talk.hear(
    { method: 'item/started', params: { threadId: THREAD, turnId: 'turn-1', item } },
    codexAsks(0, 'item/fileChange/requestApproval', { itemId: 'item-1' }),
  )
  expect(asked).toEqual([{ toolName: 'file_change', toolInput: { paths: ['a', 'b'], changes } }])
})

it('codex asks about tools of MCP servers, and their forms are not filled in', async () => {
  const { asked, approve } = noting()
  const { talk } = await openCodex(approve)
  const form = { serverName: 'files', mode: 'form', message: 'Allow it?', requestedSchema: {} }
  const ofTool = { codex_approval_kind: 'mcp_tool_call', tool_params: { a: 1 } }
  const method = 'mcpServer/elicitation/request'
  await talk.hear(codexAsks(0, method, { ...form, _meta: ofTool }), codexAsks(1, method, { ...form, _meta: null }))
  expect(new Set(await talk.said())).toEqual(
    new Set([
      { id: 0, result: { action: 'accept', content: null, _meta: null } },
      { id: 1, result: { action: 'decline', content: null, _meta: null } },
    ]),
  )
  const toolInput = { arguments: { a: 1 }, message: 'Allow it?' }
  expect(asked).toEqual([{ toolName: 'mcp__files', toolInput }])
})

it('codex is declined what an unknown thread asks, and what a turn without approvals asks', async () => {
  const { talk } = await openCodex()
  const ofOther = { ...codexAsks(1, COMMAND, {}), params: { threadId: 'of a sub-agent', command: 'ls' } }
  await talk.hear(codexAsks(0, COMMAND, { command: 'ls' }), ofOther)
  expect(new Set(await talk.said())).toEqual(new Set([0, 1].map((id) => ({ id, result: { decision: 'decline' } }))))
})

it('codex is declined what it does not specify, and nobody is asked', async () => {
  const { asked, approve } = noting()
  const { talk } = await openCodex(approve)
  await talk.hear(
    codexAsks(0, COMMAND, { command: null }),
    codexAsks(1, 'item/fileChange/requestApproval', { itemId: 'x' }),
  )
  expect(new Set(await talk.said())).toEqual(new Set([0, 1].map((id) => ({ id, result: { decision: 'decline' } }))))
  expect(asked).toEqual([])
})

it('codex is told to ask when a thread is loaded', async () => {
  const opened = await Promise.all([openCodex(ALLOW), openCodex()])
  const policies = opened.map(({ opening: [load] }) => load?.['params'])
  expect(policies).toEqual([
    expect.objectContaining({
      ...{ approvalPolicy: 'untrusted', approvalsReviewer: 'user' },
      sandbox: 'danger-full-access',
    }),
    expect.objectContaining({ approvalPolicy: 'never' }),
  ])
})

it('gemini is told to ask', async () => {
  expect(await launchArgs('gemini', [], true)).toEqual(['--acp', '--approval-mode', 'default'])
})

it.each(['claude', 'codex', 'gemini'] as const)('a process of %s that asks takes no other turns', (name) => {
  const backend = createFakeBackend(name, 'unused', createStage())
  const keyOf = (request: object) =>
    backend.cli.definition.driver?.keyOf(backend.cli.turnOf({ prompt: 'hi', ...request }))
  expect(keyOf({ approve: ALLOW })).not.toBe(keyOf({}))
})

it('gemini asks about the tools of its list that do more than read, and has no others', async () => {
  const backend = createFakeBackend('gemini', 'unused', createStage())
  const turn = backend.cli.turnOf({
    prompt: 'hi',
    approve: ALLOW,
    allowedTools: ['read_file', 'run_shell_command(git)'],
  })
  const { args = [] } = (await backend.cli.definition.driver?.launch(turn, createPlace(), NONE, {})) ?? {}
  const rules = readFileSync(args.at(-1) ?? '', 'utf8').matchAll(/toolName = "(.*)"\ndecision = "(.*)"/g)
  expect([...rules].map(([, tool, decision]) => [tool, decision])).toEqual([
    ['*', 'deny'],
    ['read_file', 'allow'],
    ['run_shell_command', 'ask_user'],
  ])
})

it.each<[what: string, toolCall: object, input: object]>([
  [
    'a command in the directory of the session',
    { kind: 'execute', title: 'ls -a', content: [text('[current working directory /w] (List it)')] },
    { command: 'ls -a' },
  ],
  [
    'a command in another one',
    { kind: 'execute', title: 'ls -a', content: [text('[in sub] (List it)')] },
    { command: 'ls -a', where: '[in sub] (List it)' },
  ],
  [
    'a change of a file',
    { kind: 'edit', title: 'a: x => y', content: [{ type: 'diff', path: '/w/a', oldText: 'x', newText: 'y' }] },
    { title: 'a: x => y', file_path: '/w/a', old_string: 'x', new_string: 'y' },
  ],
  [
    'what only a title tells of, which may be cut',
    { kind: 'fetch', title: 'Processing "http…"', content: [] },
    { title: 'Processing "http…"', call: 'tool__1' },
  ],
])('gemini asks for %s', (_, toolCall, toolInput) => {
  const request = approvalRequestOf({ sessionUpdate: 'tool_call', toolCallId: 'tool__1', ...toolCall })
  expect(request).toEqual({ toolName: 'tool', toolInput })
})

function text(words: string): object {
  return { type: 'content', content: { type: 'text', text: words } }
}
