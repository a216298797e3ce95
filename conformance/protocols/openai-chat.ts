// OpenAI chat completions, streamed: OpenCode with an OpenAI-compatible provider.
import {
  openaiError,
  replyUsage,
  serverSentEvent,
  type ModelMessage,
  type ModelRequest,
  type WireProtocol,
} from './types.js'

interface ChatBody {
  messages: {
    role: 'system' | 'user' | 'assistant' | 'tool'
    content?: string | { text?: string }[] | null
    tool_calls?: { id: string }[]
    tool_call_id?: string
  }[]
}

export const openaiChat: WireProtocol = {
  serves: (path) => path.startsWith('/v1/chat/completions'),
  read: readRequest,
  contentType: () => 'text/event-stream',

  async *write(_path, reply, serial) {
    const chunk = (delta: object, finishReason: string | null = null) =>
      serverSentEvent({ ...head, choices: [{ index: 0, delta, finish_reason: finishReason }] })
    const head = { id: `chatcmpl-${serial}`, object: 'chat.completion.chunk', created: 0, model: 'scripted' }
    if (reply.type === 'text') {
      yield chunk({ role: 'assistant', content: '' })
      for await (const content of reply.deltas) yield chunk({ content })
      yield chunk({}, 'stop')
    } else {
      const call = { name: reply.name, arguments: JSON.stringify(reply.input) }
      const toolCall = { index: 0, id: `call_${serial}`, type: 'function', function: call }
      yield chunk({ role: 'assistant', tool_calls: [toolCall] })
      yield chunk({}, 'tool_calls')
    }
    yield serverSentEvent({ ...head, choices: [], usage })
    yield 'data: [DONE]\n\n'
  },

  errorBody: openaiError,
}

const usage = {
  prompt_tokens: replyUsage.input + replyUsage.cacheRead,
  prompt_tokens_details: { cached_tokens: replyUsage.cacheRead },
  completion_tokens: replyUsage.output,
  completion_tokens_details: { reasoning_tokens: replyUsage.reasoning },
  total_tokens: replyUsage.input + replyUsage.cacheRead + replyUsage.output,
}

function readRequest(_path: string, text: string): ModelRequest {
  const { messages } = JSON.parse(text) as ChatBody
  const all = messages.flatMap(({ role, content }) =>
    (typeof content === 'string' ? [content] : (content ?? []).map((part) => part.text ?? '')).map((piece) => ({
      role,
      text: piece,
    })),
  )
  return {
    system: all
      .filter(({ role }) => role === 'system')
      .map((message) => message.text)
      .join('\n'),
    messages: all.filter((message): message is ModelMessage => message.role !== 'system'),
    body: text,
    toolCalls: messages.flatMap(({ tool_calls }) => (tool_calls ?? []).map(({ id }) => id)),
    toolResults: messages.flatMap(({ tool_call_id }) => tool_call_id ?? []),
  }
}
