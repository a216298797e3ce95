// OpenAI Responses, streamed: Codex. Its system text travels as `developer` messages.
import {
  openaiError,
  replyUsage,
  serverSentEvent,
  type ModelMessage,
  type ModelRequest,
  type WireProtocol,
} from './types.js'

interface InputItem {
  type?: string
  role?: 'user' | 'assistant' | 'developer' | 'system'
  call_id?: string
  content?: string | { text?: string }[]
  output?: string | { text?: string }[]
}

interface ResponsesBody {
  instructions?: string
  input: InputItem[]
}

export const openaiResponses: WireProtocol = {
  serves: (path) => path.startsWith('/v1/responses'),
  read: readRequest,
  contentType: () => 'text/event-stream',

  async *write(_path, reply, serial) {
    const event = (type: string, data: object) => serverSentEvent({ type, ...data }, type)
    const response = { id: `resp_${serial}`, object: 'response', model: 'scripted', output: [] as object[] }
    yield event('response.created', { response: { ...response, status: 'in_progress' } })
    let item: object
    if (reply.type === 'text') {
      const message = { id: `msg_${serial}`, type: 'message', role: 'assistant' }
      yield event('response.output_item.added', { output_index: 0, item: { ...message, content: [] } })
      let text = ''
      for await (const delta of reply.deltas) {
        text += delta
        yield event('response.output_text.delta', { item_id: message.id, output_index: 0, content_index: 0, delta })
      }
      item = { ...message, status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }
    } else {
      const call = { id: `fc_${serial}`, type: 'function_call', call_id: `call_${serial}`, name: reply.name }
      item = { ...call, arguments: JSON.stringify(reply.input), status: 'completed' }
      yield event('response.output_item.added', { output_index: 0, item: { ...call, arguments: '' } })
    }
    yield event('response.output_item.done', { output_index: 0, item })
    yield event('response.completed', { response: { ...response, status: 'completed', output: [item], usage } })
  },

  errorBody: openaiError,
}

const usage = {
  input_tokens: replyUsage.input + replyUsage.cacheRead,
  input_tokens_details: { cached_tokens: replyUsage.cacheRead },
  output_tokens: replyUsage.output,
  output_tokens_details: { reasoning_tokens: replyUsage.reasoning },
  total_tokens: replyUsage.input + replyUsage.cacheRead + replyUsage.output,
}

function readRequest(_path: string, text: string): ModelRequest {
  const body = JSON.parse(text) as ResponsesBody
  const callIds = (isMeant: (item: InputItem) => boolean) =>
    body.input.filter(isMeant).flatMap((item) => item.call_id ?? [])
  const isSystem = (item: InputItem) => item.role === 'developer' || item.role === 'system'
  return {
    system: [body.instructions ?? '', ...body.input.filter(isSystem).flatMap((item) => texts(item.content))].join('\n'),
    messages: body.input.filter((item) => !isSystem(item)).flatMap(readItem),
    body: text,
    toolCalls: callIds(({ type }) => type === 'function_call'),
    toolResults: callIds(({ type }) => type === 'function_call_output'),
  }
}

function readItem(item: InputItem): ModelMessage[] {
  if (item.output !== undefined) return texts(item.output).map((text) => ({ role: 'tool', text }))
  const { role } = item
  if (role !== 'user' && role !== 'assistant') return []
  return texts(item.content).map((text) => ({ role, text }))
}

function texts(content: InputItem['content']): string[] {
  return typeof content === 'string' ? [content] : (content ?? []).map((part) => part.text ?? '')
}
