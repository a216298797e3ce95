/** What a case can ask about a request, whatever protocol it came in. */
export interface ModelRequest {
  system: string
  /** One entry per piece of text, in order, including what the agent itself adds in the user's role. */
  messages: ModelMessage[]
  /** The raw body, to check that something does not occur in it. */
  body: string
  /** Tool calls and tool results in the history; by id where there are ids. */
  toolCalls: string[]
  toolResults: string[]
}

export interface ModelMessage {
  role: 'user' | 'assistant' | 'tool'
  text: string
}

export type ModelReply =
  | { type: 'text'; deltas: Iterable<string> | AsyncIterable<string> }
  | { type: 'tool'; name: string; input: Record<string, unknown> }
  | ErrorReply
  /** The connection stays open and nothing is ever sent. */
  | { type: 'silence' }

/** `code` is what OpenAI names the error by. */
export interface ErrorReply {
  type: 'error'
  status: number
  message: string
  code?: string
  headers?: Record<string, string>
}

export type SpokenReply = Extract<ModelReply, { type: 'text' | 'tool' }>

export interface WireProtocol {
  serves(path: string): boolean
  read(path: string, body: string): ModelRequest
  contentType(path: string): string
  /** The body of a successful answer; `serial` makes ids unique within one model. */
  write(path: string, reply: SpokenReply, serial: number): AsyncIterable<string>
  errorBody(reply: ErrorReply): unknown
}

/**
 * The usage that every reply reports, so that a turn's usage is this times its requests. Only Anthropic's protocol
 * reports cache writes, and only it does not report reasoning, which is part of the output.
 */
export const replyUsage = { input: 100, cacheRead: 20, cacheWrite: 5, output: 10, reasoning: 3 }

export function serverSentEvent(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
}

export function openaiError({ status, message, code = String(status) }: ErrorReply): object {
  const type = status === 400 || status === 404 ? 'invalid_request_error' : 'scripted_error'
  return { error: { message, type, code } }
}
