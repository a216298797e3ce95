// Gemini generateContent, streamed and unary: the Gemini CLI uses the unary form for calls outside the conversation.
import { replyUsage, serverSentEvent, type ModelMessage, type ModelRequest, type WireProtocol } from './types.js'

interface Part {
  text?: string
  functionCall?: { name: string }
  functionResponse?: { name: string; response?: { output?: string; error?: string } }
}

interface Content {
  role?: 'user' | 'model'
  parts?: Part[]
}

interface GenerateBody {
  systemInstruction?: Content
  contents: Content[]
}

const isStreamed = (path: string) => path.includes(':streamGenerateContent')

export const geminiContent: WireProtocol = {
  serves: (path) => isStreamed(path) || path.includes(':generateContent'),
  read: readRequest,
  contentType: (path) => (isStreamed(path) ? 'text/event-stream' : 'application/json'),

  async *write(path, reply) {
    const parts: object[] = []
    const chunk = (part: object) => {
      parts.push(part)
      return isStreamed(path)
        ? serverSentEvent({ candidates: [{ index: 0, content: { role: 'model', parts: [part] } }] })
        : ''
    }
    if (reply.type === 'tool') yield chunk({ functionCall: { name: reply.name, args: reply.input } })
    else for await (const text of reply.deltas) yield chunk({ text })
    const candidate = {
      index: 0,
      finishReason: 'STOP',
      content: { role: 'model', parts: isStreamed(path) ? [] : parts },
    }
    const end = { candidates: [candidate], usageMetadata }
    yield isStreamed(path) ? serverSentEvent(end) : JSON.stringify(end)
  },

  errorBody: ({ status, message }) => ({
    error: { code: status, message, status: errorStatuses[status] ?? 'INTERNAL' },
  }),
}

const errorStatuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
}

const usageMetadata = {
  promptTokenCount: replyUsage.input + replyUsage.cacheRead,
  cachedContentTokenCount: replyUsage.cacheRead,
  candidatesTokenCount: replyUsage.output - replyUsage.reasoning,
  thoughtsTokenCount: replyUsage.reasoning,
  totalTokenCount: replyUsage.input + replyUsage.cacheRead + replyUsage.output,
}

function readRequest(_path: string, text: string): ModelRequest {
  const body = JSON.parse(text) as GenerateBody
  const parts = body.contents.flatMap((content) => content.parts ?? [])
  return {
    system: (body.systemInstruction?.parts ?? []).map((part) => part.text ?? '').join('\n'),
    messages: body.contents.flatMap(readContent),
    body: text,
    toolCalls: parts.flatMap(({ functionCall }) => functionCall?.name ?? []),
    toolResults: parts.flatMap(({ functionResponse }) => functionResponse?.name ?? []),
  }
}

function readContent({ role, parts = [] }: Content): ModelMessage[] {
  return parts.flatMap((part): ModelMessage[] => {
    const result = part.functionResponse?.response
    if (result) return [{ role: 'tool', text: result.output ?? result.error ?? '' }]
    return part.text === undefined ? [] : [{ role: role === 'model' ? 'assistant' : 'user', text: part.text }]
  })
}
