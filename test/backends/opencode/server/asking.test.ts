import { expect, it } from 'vitest'
import type { AgentEvent, ApprovalRequest, Approve } from '../../../../src/backends/types.js'
import { type AskingAgent, type AskingPrompt, describeApprovals } from '../../../contract/approvals.js'
import { type Action, promptOf } from './fake-opencode.js'
import { ServerStage } from './stage.js'

const ASK: Action = { do: 'ask', permission: 'bash', patterns: ['touch a'], metadata: { command: 'touch a' } }
const TOOL: Action = { do: 'tool', id: 'call_1', command: 'touch a' }
const ANSWER: Action[] = [
  { do: 'say', texts: ['Done'] },
  { do: 'step', reason: 'stop' },
]
const REJECTED = 'The user rejected permission to use this specific tool call with the following feedback:'

function used(output: string, isError: boolean): Action[] {
  return [{ do: 'tool-end', id: 'call_1', output, isError }, { do: 'step', reason: 'tool-calls' }, ...ANSWER]
}

const PROMPTS: Record<AskingPrompt, string> = {
  allowed: promptOf({ do: 'start' }, TOOL, ASK, ...used('', false)),
  denied: promptOf({ do: 'start' }, TOOL, ASK, ...used(`${REJECTED} Not today, said Ann.`, true)),
  asked: promptOf({ do: 'start' }, TOOL, ASK, { do: 'hang' }),
  after: promptOf({ do: 'start' }, ...ANSWER),
}

async function open(): Promise<AskingAgent> {
  const stage = await ServerStage.open()
  const backend = stage.backend()
  return {
    begin(prompt, approve, sessionId) {
      const controller = new AbortController()
      const events: AgentEvent[] = []
      const request = { prompt: PROMPTS[prompt], approve, ...(sessionId !== undefined && { sessionId }) }
      const ended = (async () => {
        for await (const event of backend.run(request, controller.signal)) events.push(event)
      })()
      return { events, stop: () => controller.abort(), ended }
    },
  }
}

describeApprovals('opencode', { open, tool: { toolName: 'bash', toolInput: { command: 'touch a' } } })

const ALLOW: Approve = async () => ({ isAllowed: true })

it('the answer goes to the server: yes for once, or no with a reason for the agent', async () => {
  const stage = await ServerStage.open()
  await stage.see({ prompt: PROMPTS.allowed, approve: ALLOW })
  await stage.see({ prompt: PROMPTS.denied, approve: async () => ({ isAllowed: false, message: 'No.' }) })
  const replies = stage.asked('POST', /^\/permission/).map(({ body }) => body)
  expect(replies).toEqual([{ reply: 'once' }, { reply: 'reject', message: 'No.' }])
})

it('a session asks for everything except reading and has no sub-agents, which would not ask; without approvals it is as before', async () => {
  const stage = await ServerStage.open()
  const { result } = await stage.see({ prompt: PROMPTS.after, approve: ALLOW })
  const { sessionId = '' } = result
  const ofSession = () => stage.server.sessions.get(sessionId)?.permission
  const rule = (permission: string, action: string, pattern = '*') => ({ permission, pattern, action })
  expect(ofSession()).toEqual([
    rule('*', 'ask'),
    rule('read', 'allow'),
    ...[rule('read', 'ask', '*.env'), rule('read', 'ask', '*.env.*'), rule('read', 'allow', '*.env.example')],
    ...['list', 'glob', 'grep', 'lsp', 'skill', 'todoread', 'todowrite'].map((tool) => rule(tool, 'allow')),
    ...[rule('question', 'deny'), rule('task', 'deny')],
  ])
  await stage.see({ prompt: PROMPTS.after, sessionId })
  expect(ofSession()).toEqual([rule('question', 'deny')])
})

it('a list of tools remains the upper limit', async () => {
  const stage = await ServerStage.open()
  const allowedTools = ['read', 'bash(git log*)', 'task']
  const { result } = await stage.see({ prompt: PROMPTS.after, approve: ALLOW, allowedTools })
  const rule = (permission: string, action: string, pattern = '*') => ({ permission, pattern, action })
  expect(stage.server.sessions.get(result.sessionId ?? '')?.permission).toEqual([
    ...[rule('*', 'deny'), rule('external_directory', 'ask'), rule('read', 'allow')],
    ...[rule('bash', 'deny'), rule('bash', 'ask', 'git log*'), rule('task', 'ask'), rule('task', 'deny')],
  ])
})

it('a command is asked about once, even if it reaches outside the directory', async () => {
  const stage = await ServerStage.open()
  const metadata = { command: 'cat /etc/hosts' }
  const outside: Action = { do: 'ask', permission: 'external_directory', patterns: ['/etc/*'], metadata }
  const command: Action = { do: 'ask', permission: 'bash', patterns: ['cat /etc/hosts'], metadata }
  const asked: string[] = []
  const approve: Approve = async ({ toolName }) => {
    asked.push(toolName)
    return { isAllowed: true }
  }
  await stage.see({ prompt: promptOf({ do: 'start' }, outside, command, ...ANSWER), approve })
  expect([asked, stage.server.answers]).toEqual([['bash'], ['once', 'once']])
})

it('a server of an older version is refused', async () => {
  const stage = await ServerStage.open()
  stage.server.version = '1.18.32'
  const { result } = await stage.see({ prompt: PROMPTS.allowed, approve: ALLOW })
  expect([result.failure?.reason, result.failure?.message]).toEqual([
    'refused',
    'Approvals need OpenCode 1.18.33 or newer. Update it, or set its permissions to "allow".',
  ])
})

it('a command is asked about with its whole input, which arrives after the question', async () => {
  const stage = await ServerStage.open()
  const question = { id: 'per_1', permission: 'bash', patterns: ['touch a'], metadata: {}, tool: { callID: 'call_1' } }
  const asking: Action = { do: 'raw', type: 'permission.asked', properties: question }
  const asked: ApprovalRequest[] = []
  const controller = new AbortController()
  const approve: Approve = async (request) => {
    asked.push(request)
    controller.abort()
    return { isAllowed: true }
  }
  const prompt = promptOf({ do: 'start' }, asking, TOOL, { do: 'hang' })
  await stage.see({ prompt, approve }, { signal: controller.signal })
  expect(asked).toEqual([{ toolName: 'bash', toolInput: { command: 'touch a' } }])
})
