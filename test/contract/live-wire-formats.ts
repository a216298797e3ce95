// The wire formats of warm agents, where they differ from one-shot; shapes as in test/fixtures/<backend>/live-*.jsonl.
// The process itself (test/fixtures/bin/warm-agent.mjs) reports the opening of a session and the start of a turn, and
// fills in the placeholders in angle brackets.

import { type Speaker, speakers, USED } from './wire-formats.js'

/** Gemini CLI's id for the only tool call in a model response. */
export function geminiToolId(id: string): string {
  return `run_shell_command__${id}_1794831977930_0`
}

export const liveSpeakers = { codex, gemini, pi } satisfies Record<string, () => Speaker>

function codex(): Speaker {
  let items = 0
  let turns = 1
  const tell = (method: string, params: object) => ({ method, params: { threadId: '<thread>', ...params } })
  const item = (what: 'started' | 'completed', fields: object) =>
    tell(`item/${what}`, { turnId: '<turn>', item: fields })
  const say = (texts: string[]) => {
    const id = `msg_${(items += 1)}`
    const deltas = texts.map((delta) => tell('item/agentMessage/delta', { turnId: '<turn>', itemId: id, delta }))
    const message = { id, type: 'agentMessage' }
    return [
      item('started', { ...message, text: '' }),
      ...deltas,
      item('completed', { ...message, text: texts.join('') }),
    ]
  }
  const usage = () => {
    const total = {
      inputTokens: turns * (USED.fresh + USED.cached),
      cachedInputTokens: turns * USED.cached,
      outputTokens: turns * USED.output,
    }
    return tell('thread/tokenUsage/updated', { turnId: '<turn>', tokenUsage: { total } })
  }
  const end = (fields: object) => tell('turn/completed', { turn: { id: '<turn>', ...fields } })
  return {
    start(resumed) {
      // Totals of the whole thread: a resumed one already had a turn.
      turns = resumed === undefined ? 1 : 2
      return []
    },
    say,
    think: (thought) => [item('completed', { id: `rs_${(items += 1)}`, type: 'reasoning', summary: [thought] })],
    toolCall: (id, command) => [item('started', { id, type: 'commandExecution', command, status: 'inProgress' })],
    toolResult(id, command, aggregatedOutput, isError) {
      const fields = { id, type: 'commandExecution', command, aggregatedOutput, exitCode: isError ? 1 : 0 }
      return [item('completed', { ...fields, status: isError ? 'failed' : 'completed' })]
    },
    answer: (texts) => [...say(texts), usage(), end({ status: 'completed' })],
    fail: (message) => [end({ status: 'failed', error: { message } })],
    misshape: () => [
      ...['turn/started', 'item/started', 'item/completed', 'item/agentMessage/delta', 'thread/tokenUsage/updated'].map(
        (method) => tell(method, { turnId: '<turn>' }),
      ),
      ...[null, 1, 'text', [], {}].map((item) => tell('item/completed', { turnId: '<turn>', item })),
      tell('error', { turnId: '<turn>', willRetry: true, error: {} }),
      { method: 'warning' },
      { id: 'never asked', result: null },
    ],
  }
}

function gemini(): Speaker {
  const update = (sessionUpdate: string, fields: object) => ({
    jsonrpc: '2.0',
    method: 'session/update',
    params: { sessionId: '<session>', update: { sessionUpdate, ...fields } },
  })
  const chunk = (kind: 'message' | 'thought') => (text: string) =>
    update(`agent_${kind}_chunk`, { content: { type: 'text', text } })
  const say = (texts: string[]) => texts.map(chunk('message'))
  const tool = (id: string, command: string) => ({
    toolCallId: geminiToolId(id),
    title: command,
    kind: 'execute',
    locations: [],
  })
  const end = (fields: object) => ({ jsonrpc: '2.0', id: '<request>', ...fields })
  const used = { token_count: { input_tokens: USED.fresh + USED.cached, output_tokens: USED.output } }
  return {
    start: () => [],
    say,
    think: (thought) => [chunk('thought')(thought)],
    toolCall: (id, command) => [update('tool_call', { ...tool(id, command), status: 'in_progress', content: [] })],
    toolResult(id, command, output, isError) {
      const content = [{ type: 'content', content: { type: 'text', text: output } }]
      const status = isError ? 'failed' : 'completed'
      return [update('tool_call_update', { ...tool(id, command), status, content })]
    },
    answer: (texts) => [...say(texts), end({ result: { stopReason: 'end_turn', _meta: { quota: used } } })],
    fail: (details) => [end({ error: { code: -32_603, message: 'Internal error', data: { details } } })],
    misshape: () => [
      ...['agent_message_chunk', 'agent_thought_chunk', 'tool_call', 'tool_call_update', 'plan'].map((kind) =>
        update(kind, {}),
      ),
      update('agent_message_chunk', { content: null }),
      update('tool_call_update', { toolCallId: geminiToolId('x'), status: 'completed', content: [null] }),
      { jsonrpc: '2.0', method: 'session/update' },
      { jsonrpc: '2.0', id: 'never asked', result: null },
    ],
  }
}

function pi(): Speaker {
  const speaker = speakers.pi()
  return {
    ...speaker,
    start: () => [],
    fail: (message) => [...speaker.fail(message), { type: 'agent_end', messages: [] }],
    misshape: () => [
      ...['response', 'extension_ui_request', 'message_start', 'compaction_end', 'auto_retry_end'].map((type) => ({
        type,
      })),
      { type: 'response', id: 'state-1', success: true, data: 'none' },
      { type: 'message_start', message: null },
    ],
  }
}
