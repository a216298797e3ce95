/** What a case can ask about a request, whatever protocol it came in. */
export interface ModelRequest {
  system: string
  /** One entry per piece of text, in order; what the agent itself adds in the user's role is there too. */
  messages: ModelMessage[]
  /** The body as received: for checks that something is nowhere in it. */
  body: string
  /** The tools that the history says were called, and those it has results of; by id where there are ids. */
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
  | { type: 'error'; status: number; message: string; headers?: Record<string, string> }
  /** The connection stays open and nothing is ever said. */
  | { type: 'silence' }

export type SpokenReply = Extract<ModelReply, { type: 'text' | 'tool' }>

export interface WireProtocol {
  serves(path: string): boolean
  read(path: string, body: string): ModelRequest
  contentType(path: string): string
  /** The body of a successful answer; `serial` makes ids unique within one model. */
  write(path: string, reply: SpokenReply, serial: number): AsyncIterable<string>
  errorBody(status: number, message: string): unknown
}

/**
 * What every reply claims to have used, so that the usage of a turn is this times its requests. Only Anthropic's
 * protocol tells of cache writes, and it alone does not tell of reasoning, which is a part of the output.
 */
export const replyUsage = { input: 100, cacheRead: 20, cacheWrite: 5, output: 10, reasoning: 3 }

export function serverSentEvent(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
}
