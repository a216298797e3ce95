// A gateway that listens on a socket, and clients of it.

import { onTestFinished } from 'vitest'
import { AetheelApiError, AetheelClient } from '../../../src/client/aetheel-client.js'
import { startHttpServer } from '../../../src/service/server.js'
import type { Scope } from '../../../src/store/tokens.js'
import { until } from '../../kit/waiting.js'
import { Place, startService, tokenFor } from './stage.js'

export async function serve(place = new Place()) {
  const dependencies = await startService(place)
  const { gateway } = dependencies
  const server = await startHttpServer(dependencies)
  const { url, loginLink } = server
  const stop = async (): Promise<void> => {
    await server.close()
    await place.stop(gateway)
  }
  onTestFinished(stop)
  const token = await tokenFor(dependencies, 'admin')
  const client = new AetheelClient({ baseUrl: url, token })
  const clientWith = async (scope: Scope, projects?: string[]): Promise<AetheelClient> =>
    new AetheelClient({ baseUrl: url, token: await tokenFor(dependencies, scope, projects) })
  /** The latest message of a conversation, once it is in one of the states. */
  const latest = (id: string, ...states: string[]) =>
    until(async () => {
      const [entry] = (await client.conversations.messages(id)).entries
      return entry?.type === 'message' && states.includes(entry.state) && entry
    }, states.join(' or '))
  return { ...dependencies, site: place.site, url, loginLink, token, client, clientWith, latest, stop }
}

/** The error code of a request, or `done`. */
export async function codeOf(asked: Promise<unknown>): Promise<string> {
  try {
    await asked
  } catch (error) {
    if (error instanceof AetheelApiError) return error.code
    throw error
  }
  return 'done'
}

/** Sends a message, and returns its id. */
export async function say(client: AetheelClient, conversationId: string, text: string): Promise<string> {
  const { message_id: messageId } = await client.conversations.send(conversationId, text)
  if (messageId === null) throw new Error(`The text is a command: ${text}`)
  return messageId
}
