/**
 * A model on loopback that says what a test case tells it to, in the wire protocols of the five CLIs.
 *
 * Not `@copilotkit/aimock` 1.43.0: it keeps requests only as translated to chat completions, so what the model really
 * received cannot be checked to the character, and it cannot report cached tokens.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { anthropicMessages } from './protocols/anthropic-messages.js'
import { geminiContent } from './protocols/gemini-content.js'
import { openaiChat } from './protocols/openai-chat.js'
import { openaiResponses } from './protocols/openai-responses.js'
import type { ModelReply, ModelRequest, WireProtocol } from './protocols/types.js'

const protocols: WireProtocol[] = [anthropicMessages, openaiResponses, openaiChat, geminiContent]

/** Chooses the reply to a request by its number, from 0. */
export type Script = (request: ModelRequest, index: number) => ModelReply

export interface ScriptedModel {
  url: string
  /** Every request to the model so far, in order of arrival. */
  requests: ModelRequest[]
  close(): Promise<void>
}

export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/'
    const body = await readBody(request)
    const protocol = request.method === 'POST' ? protocols.find((candidate) => candidate.serves(path)) : undefined
    if (!protocol) {
      // Start-up probes such as `HEAD /`, model lists and package registries: no agent needs an answer.
      response.writeHead(404).end()
      return
    }
    const modelRequest = protocol.read(path, body)
    requests.push(modelRequest)
    const reply = refusalOf(modelRequest) ?? script(modelRequest, requests.length - 1)
    if (reply.type === 'silence') return
    if (reply.type === 'error') {
      response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
      response.end(JSON.stringify(protocol.errorBody(reply)))
      return
    }
    response.writeHead(200, { 'content-type': protocol.contentType(path) })
    for await (const chunk of protocol.write(path, reply, requests.length)) response.write(chunk)
    response.end()
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Real servers reject a history in which a call has no result, or a result no call. The words are Google's. */
function refusalOf({ toolCalls, toolResults }: ModelRequest): ModelReply | undefined {
  const unpaired = [...without(toolCalls, toolResults), ...without(toolResults, toolCalls)]
  if (unpaired.length === 0) return undefined
  const rule = 'the number of function response parts is equal to the number of function call parts'
  return {
    type: 'error',
    status: 400,
    message: `Please ensure that ${rule} of the function call turn: ${unpaired[0]}.`,
  }
}

/** Multiset difference: `some` without one occurrence for each of `others`. */
function without(some: string[], others: string[]): string[] {
  const rest = [...some]
  for (const other of others) {
    const index = rest.indexOf(other)
    if (index !== -1) rest.splice(index, 1)
  }
  return rest
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
