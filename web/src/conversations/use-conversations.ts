import { useEffect, useRef, useState } from 'preact/hooks'
import type { Conversation, ConversationFilter, ConversationPage } from '../../../src/client/aetheel-client.js'
import { api, wordsOf } from '../api.js'
import { type LiveState, useLive } from '../live.js'

export type Listed = ConversationPage['conversations'][number]

export type Filter = Pick<ConversationFilter, 'state' | 'channel' | 'project' | 'q'> & { archived?: 'true' }

const LISTED_AT_ONCE = 40

export interface Conversations {
  rows: Listed[]
  isLoading: boolean
  hasMore: boolean
  error: string | undefined
  loadMore: () => void
  reload: () => void
}

/** Conversations as they are now: the list, with updates from the stream. */
export function useConversations(filter: Filter): Conversations {
  const live = useLive()
  const [listed, setListed] = useState<{ rows: Listed[]; next: string | null }>({ rows: [], next: null })
  const [isLoading, setIsLoading] = useState(true)
  const [error, setError] = useState<string>()
  const latest = useRef(0)
  const load = async (before: string | undefined): Promise<void> => {
    const turn = ++latest.current
    setIsLoading(true)
    setError(undefined)
    try {
      const { conversations, next } = await api.conversations.list({
        limit: LISTED_AT_ONCE,
        ...filter,
        ...(before !== undefined && { before }),
      })
      if (turn !== latest.current) return
      setListed(({ rows }) => ({ rows: before === undefined ? conversations : joined(rows, conversations), next }))
    } catch (problem) {
      if (turn === latest.current) setError(wordsOf(problem))
    }
    if (turn === latest.current) setIsLoading(false)
  }
  const { state, channel, project, q, archived } = filter
  useEffect(() => {
    void load(undefined)
    return () => {
      latest.current += 1
    }
  }, [state, channel, project, q, archived, live.snapshots])
  return {
    rows: asNow(listed.rows, live, filter),
    isLoading,
    hasMore: listed.next !== null,
    error,
    loadMore: () => {
      if (listed.next !== null) void load(listed.next)
    },
    reload: () => void load(undefined),
  }
}

function joined(rows: Listed[], more: Listed[]): Listed[] {
  const known = new Set(rows.map(({ id }) => id))
  return [...rows, ...more.filter(({ id }) => !known.has(id))]
}

/** Updates the rows from the stream. Without a search, new ones come to the top; search results stay in place. */
export function asNow(rows: Listed[], { conversations }: Pick<LiveState, 'conversations'>, filter: Filter): Listed[] {
  const known = new Map(rows.map((row) => [row.id, row]))
  if (filter.q !== undefined) return rows.map((row) => ({ ...row, ...newerOf(conversations.get(row.id), row) }))
  const oldest = rows.at(-1)?.updated_at ?? ''
  for (const conversation of conversations.values()) {
    const row = known.get(conversation.id)
    if (row) known.set(row.id, { ...row, ...newerOf(conversation, row) })
    else if (conversation.updated_at >= oldest) known.set(conversation.id, { ...conversation, match: null })
  }
  return [...known.values()]
    .filter((row) => isWanted(row, filter))
    .toSorted((a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0))
}

function newerOf(heard: Conversation | undefined, row: Listed): Conversation | undefined {
  return heard && heard.updated_at >= row.updated_at ? heard : undefined
}

function isWanted(row: Listed, { state, channel, project, archived }: Filter): boolean {
  return (
    row.is_archived === (archived === 'true') &&
    (state === undefined || row.state === state) &&
    (channel === undefined || row.channel === channel) &&
    (project === undefined || row.project_id === project)
  )
}
