import type { BackendName } from '../../src/backends/types.js'

// The wire formats of the five CLIs, as far as the tests need them; shapes as in the captures in test/fixtures/<backend>.

/** The usage of every fake turn: 70 new input tokens, 30 cached, 12 output tokens. */
export const USED = { fresh: 70, cached: 30, output: 12 }

/** Contract: each method returns the objects to print for it. */
export interface Speaker {
  /** Announces a new or resumed session. */
  start(resumed?: string): object[]
  say(texts: string[]): object[]
  think(thought: string): object[]
  toolCall(id: string, command: string): object[]
  toolResult(id: string, command: string, output: string, isError: boolean): object[]
  answer(texts: string[]): object[]
  fail(message: string): object[]
  /** Lines with missing fields, where they differ between agents. */
  misshape?(): object[]
}

export const speakers: Record<BackendName, () => Speaker> = { claude, codex, gemini, opencode, pi }

/** Everything an agent prints for an answer. */
export function printedAnswer(name: BackendName, answer: string): string {
  const speaker = speakers[name]()
  return [...speaker.start(), ...speaker.answer([answer])].map((line) => `${JSON.stringify(line)}\n`).join('')
}

const UUID = '11111111-1111-4111-8111-111111111111'

function claude(): Speaker {
  let session_id = UUID
  let messages = 0
  const line = (fields: object) => ({ ...fields, session_id })
  const message = (texts: string[]) => {
    const id = `msg_${(messages += 1)}`
    const event = (fields: object) => line({ type: 'stream_event', event: fields, parent_tool_use_id: null })
    return [
      event({ type: 'message_start', message: { id } }),
      ...texts.map((text) => event({ type: 'content_block_delta', delta: { type: 'text_delta', text } })),
      line({ type: 'assistant', message: { id, content: [{ type: 'text', text: texts.join('') }] } }),
    ]
  }
  const usage = {
    input_tokens: USED.fresh,
    output_tokens: USED.output,
    cache_read_input_tokens: USED.cached,
    cache_creation_input_tokens: 0,
  }
  return {
    start(resumed) {
      session_id = resumed ?? UUID
      return [line({ type: 'system', subtype: 'init', model: 'fake-model' })]
    },
    say: message,
    think: (thinking) => [line({ type: 'assistant', message: { content: [{ type: 'thinking', thinking }] } })],
    toolCall(id, command) {
      const content = [{ type: 'tool_use', id, name: 'Bash', input: { command } }]
      return [line({ type: 'assistant', message: { content } })]
    },
    toolResult(id, _command, output, isError) {
      const content = [{ type: 'tool_result', tool_use_id: id, content: output, is_error: isError }]
      return [line({ type: 'user', message: { content } })]
    },
    answer: (texts) => [
      ...message(texts),
      line({ type: 'result', subtype: 'success', is_error: false, result: texts.join(''), usage }),
    ],
    fail: (text) => [line({ type: 'result', subtype: 'success', is_error: true, result: text })],
  }
}

function codex(): Speaker {
  let items = 0
  let turns = 1
  const item = (type: string, fields: object) => [
    { type: 'item.completed', item: { id: `item_${(items += 1)}`, type, ...fields } },
  ]
  const say = (texts: string[]) => item('agent_message', { text: texts.join('') })
  const usage = () => ({
    input_tokens: turns * (USED.fresh + USED.cached),
    cached_input_tokens: turns * USED.cached,
    output_tokens: turns * USED.output,
  })
  return {
    start(resumed) {
      // Totals of the whole thread: a resumed one already had a turn.
      turns = resumed === undefined ? 1 : 2
      return [{ type: 'thread.started', thread_id: resumed ?? UUID }, { type: 'turn.started' }]
    },
    say,
    think: (text) => item('reasoning', { text }),
    toolCall(id, command) {
      const fields = { id, type: 'command_execution', command, aggregated_output: '', exit_code: null }
      return [{ type: 'item.started', item: { ...fields, status: 'in_progress' } }]
    },
    toolResult(id, command, output, isError) {
      const fields = { id, type: 'command_execution', command, aggregated_output: output, exit_code: isError ? 1 : 0 }
      return [{ type: 'item.completed', item: { ...fields, status: isError ? 'failed' : 'completed' } }]
    },
    answer: (texts) => [...say(texts), { type: 'turn.completed', usage: usage() }],
    fail: (message) => [{ type: 'turn.failed', error: { message } }],
  }
}

function gemini(): Speaker {
  const say = (texts: string[]) =>
    texts.map((content) => ({ type: 'message', role: 'assistant', content, delta: true }))
  const stats = {
    total_tokens: USED.fresh + USED.cached + USED.output,
    input_tokens: USED.fresh + USED.cached,
    output_tokens: USED.output,
    cached: USED.cached,
  }
  return {
    start: (resumed) => [
      { type: 'init', session_id: resumed ?? UUID, model: 'fake-model' },
      { type: 'message', role: 'user', content: 'what was asked' },
    ],
    say,
    // Its headless mode does not print thoughts.
    think: () => [],
    toolCall: (id, command) => [
      { type: 'tool_use', tool_name: 'run_shell_command', tool_id: id, parameters: { command } },
    ],
    toolResult: (id, _command, output, isError) => [
      isError
        ? { type: 'tool_result', tool_id: id, status: 'error', error: { message: output } }
        : { type: 'tool_result', tool_id: id, status: 'success', output },
    ],
    answer: (texts) => [...say(texts), { type: 'result', status: 'success', stats }],
    fail: (message) => [{ type: 'result', status: 'error', error: { type: 'FatalError', message } }],
  }
}

function opencode(): Speaker {
  let sessionID = 'ses_1111111111111111'
  const line = (type: string, part: object) => ({ type, sessionID, part })
  const say = (texts: string[]) => [line('text', { text: texts.join('') })]
  const tokens = { input: USED.fresh, output: USED.output, reasoning: 0, cache: { read: USED.cached, write: 0 } }
  return {
    start(resumed) {
      sessionID = resumed ?? sessionID
      return [line('step_start', {})]
    },
    say,
    think: (text) => [line('reasoning', { text })],
    // A tool is reported when it is done.
    toolCall: () => [],
    toolResult: (callID, command, output, isError) => [
      line('tool_use', {
        tool: 'bash',
        callID,
        state: { status: 'completed', input: { command }, output, metadata: { exit: isError ? 1 : 0 } },
      }),
      line('step_finish', { reason: 'tool-calls' }),
    ],
    answer: (texts) => [...say(texts), line('step_finish', { reason: 'stop', tokens })],
    fail: (message) => [{ type: 'error', sessionID, error: { name: 'UnknownError', data: { message } } }],
  }
}

function pi(): Speaker {
  const update = (type: string, fields: object = {}) => ({
    type: 'message_update',
    assistantMessageEvent: { type, ...fields },
  })
  const say = (texts: string[]) => [update('text_start'), ...texts.map((delta) => update('text_delta', { delta }))]
  const end = (type: 'message_end' | 'turn_end', fields: object) => ({
    type,
    message: { role: 'assistant', content: [], ...fields },
  })
  const usage = { input: USED.fresh, output: USED.output, cacheRead: USED.cached, cacheWrite: 0 }
  return {
    start: (resumed) => [{ type: 'session', version: 3, id: resumed ?? UUID }, { type: 'agent_start' }],
    say,
    think: (delta) => [update('thinking_delta', { delta })],
    toolCall: (toolCallId, command) => [
      end('message_end', { stopReason: 'toolUse' }),
      { type: 'tool_execution_start', toolCallId, toolName: 'bash', args: { command } },
    ],
    toolResult(toolCallId, _command, output, isError) {
      const result = { content: [{ type: 'text', text: output }] }
      return [
        { type: 'tool_execution_end', toolCallId, toolName: 'bash', result, isError },
        end('turn_end', { stopReason: 'toolUse' }),
      ]
    },
    answer(texts) {
      const message = { content: [{ type: 'text', text: texts.join('') }], stopReason: 'stop', usage }
      return [...say(texts), end('message_end', message), end('turn_end', message), { type: 'agent_end', messages: [] }]
    },
    fail: (errorMessage) => [end('message_end', { stopReason: 'error', errorMessage })],
  }
}
