import type { Approval, Conversation } from '../../src/client/aetheel-client.js'
import { api } from './api.js'
import type { LiveState } from './live.js'
import { useResource } from './use-resource.js'

/** Open questions of agents, reloaded whenever they change. */
export function useQuestions({ conversations, snapshots }: LiveState): {
  approvals: Approval[]
  error: string | undefined
  reload: () => void
} {
  const { value, error, reload } = useResource(
    async () => (await api.approvals.list({ state: 'asked', limit: 200 })).approvals,
    [askedIn(conversations.values()), snapshots],
  )
  return { approvals: value ?? [], error, reload }
}

/** A key that changes with the open questions. One may replace another, but each has a new message number. */
export function askedIn(conversations: Iterable<Pick<Conversation, 'id' | 'asked' | 'last_number'>>): string {
  return [...conversations]
    .filter(({ asked }) => asked > 0)
    .map(({ id, asked, last_number: number }) => `${id}:${asked}:${number}`)
    .toSorted()
    .join()
}
