// Anthropic Messages, streamed: Claude Code and Pi.
import { replyUsage, serverSentEvent, type ModelMessage, type ModelRequest, type WireProtocol } from './types.js'

interface Block {
  type: string
  id?: string
  tool_use_id?: string
  text?: string
  content?: string | Block[]
}

interface MessagesBody {
  system?: string | Block[]
  messages: { role: 'user' | 'assistant'; content: string | Block[] }[]
}

export const anthropicMessages: WireProtocol = {
  serves: (path) => path.startsWith('/v1/messages') && !path.includes('count_tokens'),
  read: readRequest,
  contentType: () => 'text/event-stream',

  async *write(_path, reply, serial) {
    const event = (type: string, data: object) => serverSentEvent({ type, ...data }, type)
    const usage = {
      input_tokens: replyUsage.input,
      cache_read_input_tokens: replyUsage.cacheRead,
      cache_creation_input_tokens: replyUsage.cacheWrite,
      output_tokens: 1,
    }
    const message = { id: `msg_${serial}`, type: 'message', role: 'assistant', model: 'scripted', content: [], usage }
    yield event('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } })
    if (reply.type === 'text') {
      yield event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
      for await (const text of reply.deltas) {
        yield event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
      }
    } else {
      const block = { type: 'tool_use', id: `toolu_${serial}`, name: reply.name, input: {} }
      yield event('content_block_start', { index: 0, content_block: block })
      const delta = { type: 'input_json_delta', partial_json: JSON.stringify(reply.input) }
      yield event('content_block_delta', { index: 0, delta })
    }
    yield event('content_block_stop', { index: 0 })
    const stopReason = reply.type === 'text' ? 'end_turn' : 'tool_use'
    yield event('message_delta', {
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { ...usage, output_tokens: replyUsage.output },
    })
    yield event('message_stop', {})
  },

  errorBody: ({ status, message }) => ({ type: 'error', error: { type: errorTypes[status] ?? 'api_error', message } }),
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

function readRequest(_path: string, text: string): ModelRequest {
  const body = JSON.parse(text) as MessagesBody
  const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  return {
    system: texts(body.system ?? '').join('\n'),
    messages: body.messages.flatMap(({ role, content }) => readMessage(role, content)),
    body: text,
    toolCalls: blocks.flatMap(({ type, id }) => (type === 'tool_use' && id ? [id] : [])),
    toolResults: blocks.flatMap(({ tool_use_id }) => tool_use_id ?? []),
  }
}

function readMessage(role: 'user' | 'assistant', content: string | Block[]): ModelMessage[] {
  if (typeof content === 'string') return [{ role, text: content }]
  return content.flatMap((block): ModelMessage[] => {
    if (block.type === 'text') return [{ role, text: block.text ?? '' }]
    if (block.type === 'tool_result') return [{ role: 'tool', text: texts(block.content ?? '').join('\n') }]
    return []
  })
}

function texts(content: string | Block[]): string[] {
  return typeof content === 'string' ? [content] : content.map((block) => block.text ?? '')
}
