import type { ComponentChildren } from 'preact'
import type { QueuedMessage, QueuedReply, WaitingMessage } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { channelName } from '../conversation.js'
import { useLive } from '../live.js'
import { useMe } from '../me.js'
import { ConfirmButton } from '../parts/confirm-button.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Duration, Time } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { type Column, Table } from '../parts/table.js'
import { Tile, Tiles } from '../parts/tiles.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

/** The most that the gateway returns at once. */
const LIMIT = 200

export function QueuePage() {
  const { conversations, snapshots } = useLive()
  // Every change in the queue changes one of these.
  const state = [...conversations.values()].map(({ id, state, open, last_number: last }) =>
    [id, state, open, last].join(),
  )
  const { value, error, reload } = useResource(async () => {
    const [overview, { queue }] = await Promise.all([api.queue.list({ limit: LIMIT }), api.health()])
    return { overview, queue }
  }, [state.join(';'), snapshots])
  return (
    <Page
      title="Queue"
      actions={
        <button type="button" onClick={reload}>
          Refresh
        </button>
      }
    >
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!value && error === undefined && <Skeleton />}
      {value && (
        <>
          <Depth {...value} />
          <Open messages={value.overview.open} onChanged={reload} />
          <Failed messages={value.overview.failed} onChanged={reload} />
          <Undelivered replies={value.overview.undelivered} onChanged={reload} />
        </>
      )}
    </Page>
  )
}

function Depth({
  overview,
  queue,
}: {
  overview: Awaited<ReturnType<typeof api.queue.list>>
  queue: Awaited<ReturnType<typeof api.health>>['queue']
}) {
  const waiting = overview.open.filter(({ state }) => state !== 'active')
  const oldest = Math.min(...waiting.map(({ received_at: at }) => Date.parse(at)))
  return (
    <Tiles>
      <Tile title="Waiting">{queue?.waiting ?? waiting.length}</Tile>
      <Tile title="Running">{queue?.active ?? '–'}</Tile>
      <Tile title="Longest wait">{waiting.length === 0 ? '–' : <Duration from={oldest} />}</Tile>
      <Tile title="Failed" tone={queue && queue.failed > 0 ? 'bad' : undefined}>
        {queue?.failed ?? '–'}
      </Tile>
      <Tile title="Not delivered" tone={overview.undelivered.length > 0 ? 'bad' : undefined}>
        {overview.undelivered.length}
      </Tile>
    </Tiles>
  )
}

const STATES = { queued: 'Queued', ready: 'Next', active: 'Running' } as const

function Open({ messages, onChanged }: { messages: WaitingMessage[]; onChanged: () => void }) {
  const columns: Array<Column<WaitingMessage>> = [
    { title: 'Message', cell: ({ text, conversation_id: id }) => <Excerpt text={text} conversationId={id} /> },
    { title: 'From', cell: ({ author, channel }) => `${author} · ${channelName(channel)}` },
    {
      title: 'State',
      cell: ({ state, due_at: due, failures }) => (
        <>
          <span class={state === 'active' ? 'good' : undefined}>{STATES[state]}</span>
          {state === 'ready' && Date.parse(due) > Date.now() && (
            <>
              {' '}
              <Time at={due} />
            </>
          )}
          {failures > 0 && <span class="warn"> · Failed {failures === 1 ? 'once' : `${failures} times`}</span>}
        </>
      ),
    },
    { title: 'Waiting', isNumber: true, cell: ({ received_at: at }) => <Duration from={Date.parse(at)} /> },
    {
      title: 'Actions',
      cell: ({ id, state }) =>
        state === 'active' ? (
          <span class="muted">–</span>
        ) : (
          <EntryActions id={id} what="message" onChanged={onChanged} />
        ),
    },
  ]
  return (
    <Section title="Waiting and running" count={messages.length} empty="Nothing is waiting or running.">
      <Table folds caption="Waiting and running messages" columns={columns} rows={messages} keyOf={({ id }) => id} />
    </Section>
  )
}

function Failed({ messages, onChanged }: { messages: QueuedMessage[]; onChanged: () => void }) {
  const columns: Array<Column<QueuedMessage>> = [
    { title: 'Message', cell: ({ text, conversation_id: id }) => <Excerpt text={text} conversationId={id} /> },
    { title: 'From', cell: ({ author, channel }) => `${author} · ${channelName(channel)}` },
    { title: 'Why', cell: ({ problem }) => <span class="bad words">{problem ?? 'No reason given'}</span> },
    { title: 'Failed', cell: ({ finished_at: at, received_at: received }) => <Time at={at ?? received} /> },
    {
      title: 'Actions',
      cell: ({ id }) => <EntryActions id={id} what="message" mayRetry onChanged={onChanged} />,
    },
  ]
  return (
    <Section title="Failed" count={messages.length} empty="No failed messages.">
      <Table folds caption="Failed messages" columns={columns} rows={messages} keyOf={({ id }) => id} />
    </Section>
  )
}

function Undelivered({ replies, onChanged }: { replies: QueuedReply[]; onChanged: () => void }) {
  const columns: Array<Column<QueuedReply>> = [
    { title: 'Channel', cell: ({ channel }) => channelName(channel) },
    { title: 'Why', cell: ({ problem }) => <span class="bad words">{problem ?? 'No reason given'}</span> },
    { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
    { title: 'Since', cell: ({ created_at: at }) => <Time at={at} /> },
    {
      title: 'Actions',
      cell: ({ id }) => <EntryActions id={id} what="reply" mayRetry onChanged={onChanged} />,
    },
  ]
  return (
    <Section title="Undelivered replies" count={replies.length} empty="No undelivered replies.">
      <Table folds caption="Undelivered replies" columns={columns} rows={replies} keyOf={({ id }) => id} />
    </Section>
  )
}

function EntryActions({
  id,
  what,
  mayRetry = false,
  onChanged,
}: {
  id: string
  what: string
  mayRetry?: boolean
  onChanged: () => void
}) {
  const { run, isBusy, error } = useAction()
  if (!useMe().scopes.includes('admin')) return <span class="muted">–</span>
  // Even after a failure: someone else may have been faster.
  const act = (change: (id: string) => Promise<unknown>): void => void run(() => change(id)).then(onChanged)
  return (
    <span class="row">
      {mayRetry && (
        <button type="button" disabled={isBusy} onClick={() => act((entry) => api.queue.retry(entry))}>
          Retry
        </button>
      )}
      <ConfirmButton
        disabled={isBusy}
        question={`Drop this ${what}?`}
        onConfirm={() => act((entry) => api.queue.drop(entry))}
      >
        Drop
      </ConfirmButton>
      <ErrorWords words={error} />
    </span>
  )
}

function Section({
  title,
  count,
  empty,
  children,
}: {
  title: string
  count: number
  empty: string
  children: ComponentChildren
}) {
  return (
    <section class="card stack" aria-label={title}>
      <h2>
        {title} <span class="muted">{count}</span>
      </h2>
      {count === 0 ? <p class="muted">{empty}</p> : children}
    </section>
  )
}

function Excerpt({ text, conversationId }: { text: string; conversationId: string }) {
  return (
    <a class="excerpt" href={hrefOf('conversations', conversationId)}>
      {text}
    </a>
  )
}
