import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { Approval, TranscriptEntry } from '../../../src/client/aetheel-client.js'
import type { LiveState } from '../live.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Skeleton } from '../parts/skeleton.js'
import { EntryView } from './transcript-entry.js'
import { useTranscript } from './use-transcript.js'

/** This close to the end counts as at the end. */
const NEAR_PX = 40

/**
 * A conversation's messages, with current activity at the end. It stays at the end as that grows, unless the reader has
 * scrolled up. Loading earlier messages does not move the text being read.
 */
export function Transcript({
  id,
  version,
  live,
  sent,
  approvals,
  mayChange,
  mayWrite,
  hasSession,
  onChange,
}: {
  id: string
  version: string
  live: LiveState
  /** Incremented with each message sent from here, to scroll to it. */
  sent: number
  approvals: Approval[]
  mayChange: boolean
  mayWrite: boolean
  /** Whether the next message continues a session. */
  hasSession: boolean
  onChange: () => void
}) {
  const { window: held, isLoading, isLoadingOlder, error, loadOlder, loadLatest } = useTranscript(id, version)
  const { before, isBehind } = held
  // A question has its own card, where it was asked.
  const entries = useMemo(() => held.entries.filter((entry) => !isQuestion(entry)), [held])
  const frame = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const anchor = useRef<{ entry: string; top: number } | undefined>(undefined)
  const latest = entries.findLast(
    (entry) => entry.type === 'message' && entry.kind === 'message' && entry.merged_into === null,
  )
  const turnOf = ({ id: entryId }: TranscriptEntry) => live.turns.get(entryId)
  const grown = entries.map((entry) => `${entry.id}:${turnOf(entry)?.model.lastId ?? ''}`).join()

  const stayAtEnd = (): void => {
    if (frame.current && isAtEnd.current) frame.current.scrollTop = frame.current.scrollHeight
  }
  const goToEnd = (): void => {
    isAtEnd.current = true
    loadLatest()
  }
  useEffect(() => {
    if (sent > 0) goToEnd()
  }, [sent])

  useLayoutEffect(() => {
    const { current } = frame
    if (!current) return
    const wasFirst = anchor.current && partOf(current, anchor.current.entry)
    if (isAtEnd.current) stayAtEnd()
    else if (anchor.current && wasFirst) current.scrollTop += wasFirst.offsetTop - anchor.current.top
    const [first] = entries
    const top = first && partOf(current, first.id)
    anchor.current = first && top ? { entry: first.id, top: top.offsetTop } : undefined
  }, [entries, grown])

  return (
    <div
      ref={frame}
      class="transcript"
      role="region"
      aria-label="Transcript"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = !isBehind && scrollHeight - scrollTop - clientHeight < NEAR_PX
      }}
    >
      {before !== null && (
        <button
          type="button"
          class="quiet"
          disabled={isLoadingOlder}
          onClick={() => {
            isAtEnd.current = false
            loadOlder()
          }}
        >
          {isLoadingOlder ? 'Loading…' : 'Show earlier messages'}
        </button>
      )}
      {isLoading && <Skeleton />}
      {error !== undefined && <ErrorNote words={error} onRetry={loadLatest} />}
      {!isLoading && error === undefined && entries.length === 0 && (
        <EmptyState title={hasSession ? 'Continues an earlier session' : 'No messages yet'}>
          {hasSession && 'The agent still knows what was said there. '}
          {mayWrite && 'Write the first message below.'}
        </EmptyState>
      )}
      {entries.map((entry) => {
        const turn = turnOf(entry)
        return (
          <EntryView
            key={entry.id}
            conversationId={id}
            entry={entry}
            turn={turn}
            revision={turn ? `${turn.model.lastId}:${turn.isLoading}` : ''}
            approvals={approvals.filter(({ message_id: message }) => message === entry.id)}
            mayChange={mayChange}
            mayWrite={mayWrite}
            isLatest={!isBehind && entry.id === latest?.id}
            onChange={onChange}
            onGrown={stayAtEnd}
          />
        )
      })}
      {isBehind && (
        <button type="button" class="to-end" onClick={goToEnd}>
          Back to the latest
        </button>
      )}
    </div>
  )
}

function isQuestion(entry: TranscriptEntry): boolean {
  return entry.type === 'reply' && entry.is_question
}

function partOf(frame: HTMLElement, entry: string): HTMLElement | undefined {
  return [...frame.children].find(
    (part): part is HTMLElement => part instanceof HTMLElement && part.dataset['entry'] === entry,
  )
}
