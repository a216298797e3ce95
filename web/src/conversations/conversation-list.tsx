import { useEffect, useState } from 'preact/hooks'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Time } from '../parts/numbers.js'
import { placeOf } from '../place-of.js'
import { hrefOf } from '../router.js'
import { useResource } from '../use-resource.js'
import { api } from '../api.js'
import { MarkedWords } from './marked-words.js'
import { type Filter, type Listed, useConversations } from './use-conversations.js'

/** After the last key, before one is looked for. */
const TYPING_MS = 300
const STATES = [
  ['running', 'Running'],
  ['waiting', 'Waiting'],
  ['idle', 'At rest'],
] as const

export function ConversationList({ openId }: { openId: string | undefined }) {
  const [filter, setFilter] = useState<Filter>({})
  const { rows, isLoading, hasMore, error, loadMore, reload } = useConversations(filter)
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <Filters filter={filter} onChange={setFilter} rows={rows} />
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!isLoading && error === undefined && rows.length === 0 && (
        <EmptyState title={isFiltered ? 'Nothing was found.' : 'Nobody has said anything yet.'} />
      )}
      <ul class="chat-rows" aria-label="Conversations" aria-busy={isLoading}>
        {rows.map((row) => (
          <Row key={row.id} row={row} query={filter.q ?? ''} isOpen={row.id === openId} />
        ))}
      </ul>
      {hasMore && (
        <button type="button" class="quiet" disabled={isLoading} onClick={loadMore}>
          Show older ones
        </button>
      )}
    </>
  )
}

function Row({ row, query, isOpen }: { row: Listed; query: string; isOpen: boolean }) {
  const { id, question, match, updated_at: updatedAt } = row
  return (
    <li>
      <a class="chat-row" href={hrefOf('conversations', id)} aria-current={isOpen ? 'true' : undefined}>
        <span class="chat-row-head">
          <span class="chat-row-place">{placeOf(row)}</span>
          <StateDot row={row} />
          <span class="muted">
            <Time at={match?.at ?? updatedAt} />
          </span>
        </span>
        <span class="chat-row-text">
          {match ? (
            <>
              <span class="muted">{match.author ?? 'Aetheel'}: </span>
              <MarkedWords text={match.text} query={query} />
            </>
          ) : (
            (question ?? <span class="muted">Nothing said yet</span>)
          )}
        </span>
      </a>
    </li>
  )
}

function StateDot({ row: { state, asked, open } }: { row: Listed }) {
  if (asked > 0) return <span class="warn">asks</span>
  if (state === 'running') return <span class="good working">works</span>
  if (state === 'waiting') return <span class="warn">{open} wait</span>
  return null
}

function Filters({ filter, onChange, rows }: { filter: Filter; onChange: (filter: Filter) => void; rows: Listed[] }) {
  const [typed, setTyped] = useState('')
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const [channels, setChannels] = useState<string[]>([])
  useEffect(() => {
    // Those that were seen stay to be chosen, also when a filter hides them.
    const seen = new Set([...channels, ...rows.map(({ channel }) => channel)])
    if (seen.size > channels.length) setChannels([...seen].toSorted())
  }, [rows])
  const set = (name: keyof Filter, value: string): void => {
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
    { name: 'channel', title: 'Channel', options: channels.map((channel) => [channel, channel] as const) },
    { name: 'project', title: 'Project', options: projects.map(({ id, name }) => [id, name] as const) },
  ] as const
  return (
    <form class="chat-filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Search in everything that was said"
        placeholder="Search in everything that was said"
        maxLength={500}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
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
      </div>
    </form>
  )
}
