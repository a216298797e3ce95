import type { Control } from '../control/protocol.js'
import type { Store } from '../../store/store.js'
import { age, type ListOptions, section } from '../listing.js'

/** What `aetheel sessions` prints. */
export async function sessionsList(
  store: Pick<Store, 'sessions'>,
  { limit, isJson, width, now }: ListOptions,
): Promise<string> {
  const sessions = await store.sessions.list(limit)
  if (isJson) return JSON.stringify(sessions, null, 2)
  const rows = sessions.map(({ channel, address, backend, sessionId, usedAt, directory }) => [
    `${channel}/${address}`,
    backend,
    sessionId,
    age(usedAt, now),
    directory,
  ])
  return section('', ['CONVERSATION', 'AGENT', 'SESSION', 'USED', 'DIRECTORY'], rows, width) || 'There are no sessions.'
}

export async function sessionsReset(control: Control, conversation: string): Promise<string> {
  const { channel, address } = await control.call('sessions.reset', { conversation })
  return `The next message of ${channel}/${address} begins a fresh session.`
}
