import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import type { AgentEvent, AgentRequest, ApprovalRequest } from '../../../src/backends/types.js'
import { loadConfig } from '../../../src/config.js'
import { createLog } from '../../../src/log.js'
import { ConfiguredAgents } from '../../../src/runtime/configured-agents.js'

describe.for(['oneshot', 'live'] as const)('the demo agent, %s', (mode) => {
  it('says word by word that it is not a model', async (test) => {
    const { run } = open(test, mode)
    const events = await run({ prompt: 'Why is the sky blue?' })
    const pieces = events.flatMap((event) => (event.type === 'output' ? [event.content] : []))
    expect([pieces.length > 10, pieces.join(''), resultOf(events)]).toEqual([
      true,
      expect.stringMatching(/^You wrote: "Why is the sky blue\?"\. I am the demo agent: there is no model/),
      expect.objectContaining({ isError: false, finalOutput: pieces.join(''), costUsd: 0 }),
    ])
  })

  it('runs a command, writes a file, changes it, and remembers', async (test) => {
    const { run, directory } = open(test, mode)
    const first = await run({ prompt: 'My name is Ada. Edit a file, please.' })
    const sessionId = resultOf(first)?.sessionId ?? ''
    const second = await run({ prompt: 'edit a file', sessionId })
    const third = await run({ prompt: 'which files are here?', sessionId })
    const last = await run({ prompt: 'what is my name?', sessionId })
    expect({
      tools: [first, second, third].map(toolsOf),
      file: readFileSync(join(directory, 'aetheel-demo.txt'), 'utf8'),
      last: resultOf(last)?.finalOutput,
    }).toEqual({
      tools: [['Write'], ['Edit'], ['Bash']],
      file: "Written by Aetheel's demo agent.\nChanges so far: 1.\n",
      last: 'Your name is Ada; you told me earlier in this session.',
    })
  })

  it('asks where it must, and leaves what it is refused', async (test) => {
    const { run } = open(test, mode)
    const asked: ApprovalRequest[] = []
    const approve = async (request: ApprovalRequest) => {
      asked.push(request)
      return asked.length === 1
        ? ({ isAllowed: true } as const)
        : ({ isAllowed: false, message: 'Not today, said Ann.' } as const)
    }
    const allowed = await run({ prompt: 'which files are here?', approve })
    const denied = await run({ prompt: 'edit a file', approve })
    expect([
      asked.map(({ toolName }) => toolName),
      resultOf(allowed)?.finalOutput,
      resultOf(denied)?.finalOutput,
    ]).toEqual([
      ['Bash', 'Write'],
      expect.stringContaining('I asked a real shell.'),
      'I have changed nothing: Not today, said Ann.',
    ])
  })

  it('stops in the middle, and continues from there', async (test) => {
    const { run } = open(test, mode)
    const stop = new AbortController()
    const onEvent = (event: AgentEvent): void => {
      if (event.type === 'output' && event.content.includes('three')) stop.abort()
    }
    const cut = await run({ prompt: 'count to ten' }, stop.signal, onEvent)
    const sessionId = resultOf(cut)?.sessionId ?? ''
    const rest = await run({ prompt: 'count to ten', sessionId })
    expect([resultOf(cut)?.failure?.reason, resultOf(rest)?.finalOutput]).toEqual([
      'cancelled',
      expect.stringMatching(/^I was interrupted at \w+, so I continue: .* ten\.$/),
    ])
  })
})

function open({ onTestFinished }: TestContext, mode: 'oneshot' | 'live') {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-demo-agent-'))
  const environment = { HOME: directory, PATH: process.env['PATH'] ?? '', IS_SANDBOX: '1' }
  const config = loadConfig({ ...environment, AGENT_BACKEND: 'demo', AGENT_MODE: mode, WORKING_DIR: directory })
  const agents = new ConfiguredAgents(config, { environment, log: createLog({ level: 'silent' }) })
  onTestFinished(async () => {
    await agents.stop()
    rmSync(directory, { recursive: true })
  })
  const agent = agents.open('claude')
  const run = async (
    request: AgentRequest,
    signal = new AbortController().signal,
    onEvent: (event: AgentEvent) => void = () => {},
  ): Promise<AgentEvent[]> => {
    const events: AgentEvent[] = []
    for await (const event of agent.run(request, signal)) {
      events.push(event)
      onEvent(event)
    }
    return events
  }
  return { run, directory }
}

function resultOf(events: AgentEvent[]) {
  const last = events.at(-1)
  return last?.type === 'complete' ? last.result : undefined
}

function toolsOf(events: AgentEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'tool_use' ? [event.toolName] : []))
}
