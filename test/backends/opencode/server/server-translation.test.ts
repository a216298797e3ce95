import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { ServerEvent } from '../../../../src/backends/opencode/server/event-stream.js'
import { ServerTranslation } from '../../../../src/backends/opencode/server/server-translation.js'
import type { AgentEventBody } from '../../../../src/backends/types.js'

const TURN = {
  prompt: 'Hello',
  systemPrompt: '',
  allowedTools: [],
  workingDir: '/workspace',
  maxTurns: 0,
  isUntrusted: false,
  isAsking: false,
}

function translate(events: Array<Pick<ServerEvent, 'type' | 'properties'>>, promptId = 'prt_prompt') {
  const told: AgentEventBody[] = []
  const translation = new ServerTranslation((event) => told.push(event), TURN, promptId)
  translation.enter('ses_1')
  for (const event of events) translation.event({ ...event, size: 0 })
  return { told, translation }
}

describe('events captured from a server', () => {
  const capture = readFileSync(new URL('../../../fixtures/opencode-server/event-tool.sse.txt', import.meta.url), 'utf8')
  const all = capture.match(/^data: .*$/gm)?.map((line) => JSON.parse(line.slice(6)) as ServerEvent) ?? []
  // Events of other sessions never reach a run.
  const events = all.filter(({ properties }) => 'sessionID' in properties)
  const promptPart = events.find(({ type }) => type === 'message.part.updated')?.properties['part'] as { id: string }

  it('are a turn with a tool', () => {
    const { told, translation } = translate(events, promptPart.id)
    const { verdict, usage, isIdle, openTools, hasBegun } = translation
    expect({ types: told.map(({ type }) => type), verdict, usage, isIdle, open: openTools.size, hasBegun }).toEqual({
      types: ['started', 'output', 'tool_use', 'tool_result', 'output', 'output', 'output'],
      verdict: { isError: false, text: expect.any(String) },
      usage: expect.objectContaining({ inputTokens: 200 }),
      isIdle: true,
      open: 0,
      hasBegun: true,
    })
  })

  it('do not reach a turn they do not belong to', () => {
    const { told, translation } = translate(events, 'prt_another')
    expect([told, translation.verdict, translation.hasBegun]).toEqual([[], undefined, false])
  })

  it('report nothing twice', () => {
    const once = translate(events, promptPart.id)
    const twice = translate([...events, ...events], promptPart.id)
    expect([twice.told, twice.translation.usage]).toEqual([once.told, once.translation.usage])
  })
})

describe('events with alternative names', () => {
  const event = (type: string, properties: Record<string, unknown>) => ({ type, properties })

  it('are a turn as well', () => {
    const { told, translation } = translate([
      event('message.created', { id: 'm0', role: 'user', text: 'Hello' }),
      event('message.created', { id: 'm1', role: 'assistant', content: 'Let me' }),
      event('message.updated', { id: 'm1', content: 'Let me look.' }),
      event('tool.started', { id: 't1', tool: 'bash', input: { command: 'ls' } }),
      event('tool.completed', { id: 't1', tool: 'bash', output: 'a.txt' }),
      event('tool.started', { callID: 't2', name: 'bash' }),
      event('tool.completed', { callID: 't2', name: 'bash', error: 'It broke' }),
      event('message.created', { id: 'm2', text: 'One file.' }),
      event('session.completed', {}),
    ])
    const tool = { toolName: 'bash' }
    expect([told, translation.verdict, translation.isIdle]).toMatchObject([
      [
        { type: 'started', sessionId: 'ses_1' },
        { type: 'output', content: 'Let me' },
        { type: 'output', content: ' look.' },
        { type: 'tool_use', toolId: 't1', ...tool, toolInput: { command: 'ls' } },
        { type: 'tool_result', toolId: 't1', content: 'a.txt', isError: false },
        { type: 'tool_use', toolId: 't2', ...tool },
        { type: 'tool_result', toolId: 't2', content: 'It broke', isError: true },
        { type: 'output', content: '\n\nOne file.' },
      ],
      { isError: false },
      true,
    ])
  })

  it.each([{ message: 'No' }, { error: 'No' }, { error: { message: 'No' } }, { error: { data: { message: 'No' } } }])(
    'are a failure: %j',
    (properties) => {
      const { translation } = translate([event('error', properties)])
      expect(translation.verdict).toEqual({ isError: true, message: 'No' })
    },
  )
})

describe('a text', () => {
  const message = (id: string, role: string, created: number, more = {}) => ({
    type: 'message.updated',
    properties: { info: { id, role, time: { created }, ...more } },
  })
  const part = (fields: object) => ({
    type: 'message.part.updated',
    properties: { part: { messageID: 'a', type: 'text', ...fields } },
  })
  const delta = (partID: string, text: string) => ({
    type: 'message.part.delta',
    properties: { partID, field: 'text', delta: text },
  })
  const begin = [message('u', 'user', 5), part({ id: 'prt_prompt', messageID: 'u', text: 'Hello' })]
  const output = (told: AgentEventBody[]) => told.map((one) => (one.type === 'output' ? one.content : '')).join('')

  it('is shown as it is written, and its end as the agent wants it', () => {
    const { told, translation } = translate([
      ...begin,
      message('a', 'assistant', 6),
      part({ id: 't', text: '' }),
      delta('t', 'Hi '),
      delta('t', 'there \n'),
      part({ id: 't', text: 'Hi there', time: { end: 7 } }),
      delta('t', 'more'),
      part({ id: 's', type: 'step-finish', reason: 'stop' }),
    ])
    expect([output(told), translation.verdict]).toEqual(['Hi there \n', { isError: false, text: 'Hi there' }])
  })

  it('of an older turn, or only for the model, is not shown', () => {
    const { told } = translate([
      ...begin,
      message('old', 'assistant', 4),
      part({ id: 'x', messageID: 'old', text: 'Old' }),
      message('sum', 'assistant', 6, { summary: true }),
      part({ id: 'y', messageID: 'sum', text: 'Summary' }),
      part({ id: 'z', messageID: 'sum', type: 'step-finish', reason: 'stop' }),
      message('a', 'assistant', 7),
      part({ id: 't', text: 'New', time: { end: 8 } }),
    ])
    expect(output(told)).toEqual('New')
  })

  it('that comes in a shape nobody knows is a notice', () => {
    const { told } = translate([...begin, { type: 'message.part.updated', properties: {} }])
    expect(told.at(-1)).toMatchObject({
      type: 'notice',
      content: expect.stringContaining('The agent sent an invalid event'),
    })
  })
})
