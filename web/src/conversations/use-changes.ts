import { useEffect, useState } from 'preact/hooks'
import type { ChangedFile } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import type { LiveState } from '../live.js'
import { useResource } from '../use-resource.js'

/** The pause after the last change, since agents make several at once. */
const SETTLED_MS = 300

/** The files that the agent changed in a conversation, reloaded when it changes more. */
export function useChanges(id: string, version: string, { conversations, turns }: LiveState): ChangedFile[] {
  const turn = turns.get(conversations.get(id)?.message_id ?? '')
  const count = turn?.model.fileChanges ?? 0
  const [heard, setHeard] = useState(count)
  useEffect(() => {
    const timer = setTimeout(() => setHeard(count), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [count])
  const { value } = useResource(() => api.conversations.changes(id), [id, version, heard])
  return value?.files ?? []
}
