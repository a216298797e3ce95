// A gateway that listens, with clients of its socket.

import { onTestFinished } from 'vitest'
import { AetheelApiError, AetheelClient } from '../../../src/client/aetheel-client.js'
import { startHttpServer } from '../../../src/service/server.js'
import type { Scope } from '../../../src/store/tokens.js'
import { until } from '../../waiting.js'
import { makePlace, type Place, startService, tokenFor } from './stage.js'

export async function serve(place: Place = makePlace()) {
  const dependencies = await startService(place)
  const { gateway } = dependencies
  const clientWith = async (scope: Scope, projects?: string[]): Promise<AetheelClient> =>
    new AetheelClient({ baseUrl: server.url, token: await tokenFor(dependencies, scope, projects) })
  const server = await startHttpServer(dependencies)
  const stop = async (): Promise<void> => {
    await server.close()
    await gateway.stop()
  }
  onTestFinished(stop)
  const client = await clientWith('admin')
  /** The latest message of a conversation, once it is in one of the states. */
  const latest = (id: string, ...states: string[]) =>
    until(async () => {
      const [entry] = (await client.conversations.messages(id)).entries
      return entry?.type === 'message' && states.includes(entry.state) && entry
    }, states.join(' or '))
  const { url, loginLink } = server
  return { ...place, ...dependencies, url, loginLink, client, clientWith, latest, stop }
}

export async function codeOf(asked: Promise<unknown>): Promise<string> {
  try {
    await asked
  } catch (error) {
    if (error instanceof AetheelApiError) return error.code
    throw error
  }
  return 'done'
}
