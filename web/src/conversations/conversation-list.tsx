import { useEffect, useState } from 'preact/hooks'
import { api } from '../api.js'
import { channelName } from '../conversation.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Icon } from '../parts/icon.js'
import { Skeleton } from '../parts/skeleton.js'
import { WindowList } from '../parts/window-list.js'
import { useResource } from '../use-resource.js'
import { ConversationRow, ROW_PX } from './conversation-row.js'
import { type Filter, type Listed, useConversations } from './use-conversations.js'

/** The pause after the last key, before a search. */
const TYPING_MS = 300
const STATES = [
  ['running', 'Running'],
  ['waiting', 'Waiting'],
  ['idle', 'Idle'],
] as const

export function ConversationList() {
  const [filter, setFilter] = useState<Filter>({})
  const { rows, isLoading, hasMore, error, loadMore, reload } = useConversations(filter)
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <Filters filter={filter} onChange={setFilter} rows={rows} />
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {isLoading && rows.length === 0 && <Skeleton />}
      {!isLoading && error === undefined && rows.length === 0 && (
        <EmptyState icon="chat" title={isFiltered ? 'Nothing found' : 'No conversations yet'}>
          {isFiltered ? 'Try other words or fewer filters.' : 'Start one here, on Discord, or with aetheel chat.'}
        </EmptyState>
      )}
      <WindowList
        label="Conversations"
        rows={rows}
        rowPx={ROW_PX}
        isBusy={isLoading}
        keyOf={({ id }) => id}
        onNearEnd={() => {
          if (hasMore && !isLoading && error === undefined) loadMore()
        }}
      >
        {(row) => <ConversationRow row={row} query={filter.q ?? ''} />}
      </WindowList>
    </>
  )
}

function Filters({ filter, onChange, rows }: { filter: Filter; onChange: (filter: Filter) => void; rows: Listed[] }) {
  const [typed, setTyped] = useState('')
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const [channels, setChannels] = useState<string[]>([])
  useEffect(() => {
    // A channel seen once can still be chosen, even if a filter hides it.
    const seen = new Set([...channels, ...rows.map(({ channel }) => channel)])
    if (seen.size > channels.length) setChannels([...seen].toSorted())
  }, [rows])
  const set = (name: Exclude<keyof Filter, 'archived'>, value: string): void => {
    const { [name]: _before, ...rest } = filter
    onChange(value === '' ? rest : { ...rest, [name]: value })
  }
  useEffect(() => {
    const wanted = typed.trim()
    if (wanted === (filter.q ?? '')) return undefined
    const timer = setTimeout(() => set('q', wanted), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  const selects = [
    { name: 'state', title: 'State', options: STATES },
    { name: 'channel', title: 'Channel', options: channels.map((channel) => [channel, channelName(channel)] as const) },
    { name: 'project', title: 'Project', options: projects.map(({ id, name }) => [id, name] as const) },
  ] as const
  return (
    <form class="chat-filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <span class="search-field">
        <Icon name="search" />
        <input
          type="search"
          aria-label="Search messages and answers"
          placeholder="Search messages and answers"
          maxLength={500}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </span>
      <div class="chat-filter-row">
        {selects.map(({ name, title, options }) => (
          <select
            key={name}
            aria-label={title}
            value={filter[name] ?? ''}
            onChange={(event) => set(name, event.currentTarget.value)}
          >
            <option value="">{title}</option>
            {options.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        ))}
        <label class="check">
          <input
            type="checkbox"
            checked={filter.archived === 'true'}
            onChange={({ currentTarget: { checked } }) => {
              const { archived: _before, ...rest } = filter
              onChange(checked ? { ...rest, archived: 'true' } : rest)
            }}
          />
          Archived
        </label>
      </div>
    </form>
  )
}
