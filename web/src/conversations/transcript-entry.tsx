import { Component, type ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Approval, TranscriptEntry } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import type { Turn } from '../live.js'
import { safeUrl } from '../markdown.js'
import { ApprovalCard } from '../parts/approval-card.js'
import { Markdown } from '../parts/markdown.js'
import { Duration, Money, Time, Tokens } from '../parts/numbers.js'
import { RunView } from '../parts/run-view.js'
import { useAction } from '../use-action.js'
import { PastRun } from './past-run.js'
import { ErrorWords } from '../parts/error-note.js'

type Message = Extract<TranscriptEntry, { type: 'message' }>
type Said = Message['replies'][number]
type Run = Message['runs'][number]

interface EntryProps {
  conversationId: string
  entry: TranscriptEntry
  /** What is known of it while it is worked on. */
  turn: Turn | undefined
  /** Another one when the turn has gone on. */
  revision: string
  approvals: Approval[]
  mayChange: boolean
  /** Whether nothing was asked since. */
  isLatest: boolean
  onChange: () => void
}

/** Drawn anew only when it has changed: while an agent writes, the rest of the page stands still. */
export class EntryView extends Component<EntryProps> {
  override shouldComponentUpdate({ entry, turn, revision, approvals, mayChange, isLatest }: EntryProps): boolean {
    const { props } = this
    return (
      entry !== props.entry ||
      turn !== props.turn ||
      revision !== props.revision ||
      mayChange !== props.mayChange ||
      isLatest !== props.isLatest ||
      approvals.map(({ id }) => id).join() !== props.approvals.map(({ id }) => id).join()
    )
  }

  override render({ entry, ...rest }: EntryProps) {
    return (
      <div class="entry" data-entry={entry.id}>
        {entry.type === 'message' ? <MessageView message={entry} {...rest} /> : <SaidView said={entry} />}
      </div>
    )
  }
}

function MessageView({
  conversationId,
  message,
  turn,
  approvals,
  mayChange,
  isLatest,
  onChange,
}: Omit<EntryProps, 'entry'> & { message: Message }) {
  const { kind, author, text, state, replies, runs, merged_into: mergedInto } = message
  const isOpen = state === 'queued' || state === 'running'
  // A question that waits is shown with its buttons instead.
  const said = replies.filter(({ id }) => !approvals.some((approval) => approval.id === id))
  return (
    <>
      <article class="said person" aria-label={`${author} wrote`}>
        <header>
          <strong>{kind === 'message' ? author : `${kind} · ${author}`}</strong>{' '}
          <span class="muted">
            <Time at={message.received_at} />
          </span>
        </header>
        <Markdown text={text} />
      </article>
      {mergedInto !== null && <p class="aside muted">Taken together with the next message: the answer is there.</p>}
      {isOpen && mergedInto === null && <Going turn={turn} state={state} />}
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} onAnswered={onChange} />
      ))}
      {said.map((reply) => (
        <SaidView key={reply.id} said={reply} />
      ))}
      {mayChange && isLatest && said.some(({ can_continue: canContinue }) => canContinue) && (
        <Continue conversationId={conversationId} messageId={message.id} onChange={onChange} />
      )}
      {!isOpen && <Ended conversationId={conversationId} message={message} mayChange={mayChange} onChange={onChange} />}
      {runs.some((run) => run.state !== 'running') && <Behind runs={runs.filter((run) => run.state !== 'running')} />}
    </>
  )
}

/** For an agent that has paused at its limit of turns. */
function Continue({
  conversationId,
  messageId,
  onChange,
}: Pick<EntryProps, 'conversationId' | 'onChange'> & { messageId: string }) {
  const { run, isBusy, error } = useAction()
  return (
    <div class="aside row">
      <button
        type="button"
        disabled={isBusy}
        onClick={() =>
          void run(async () => {
            await api.conversations.continue(conversationId, { messageId })
            onChange()
          })
        }
      >
        Continue
      </button>
      <ErrorWords words={error} />
    </div>
  )
}

/** What is done about a message right now. */
function Going({ turn, state }: { turn: Turn | undefined; state: 'queued' | 'running' }) {
  if (turn?.isLoading) return <p class="aside muted">Loading what came before…</p>
  if (turn && turn.model.blocks.length > 0) {
    return (
      <section class="said agent" aria-label="What the agent does" aria-busy="true">
        <RunView model={turn.model} />
        <p class="working good">Works…</p>
      </section>
    )
  }
  return (
    <p class={`aside ${state === 'running' ? 'good working' : 'warn'}`}>{state === 'running' ? 'Works…' : 'Waits'}</p>
  )
}

function SaidView({ said }: { said: Said }) {
  const { text, notes, is_error: isError, is_question: isQuestion, files, state } = said
  return (
    <article class={`said ${isError ? 'failed' : 'agent'}`} aria-label={isQuestion ? 'A question' : 'An answer'}>
      <Markdown text={text} />
      {files.length > 0 && (
        <ul class="files" aria-label="Files">
          {files.map((file, index) => (
            <li key={index}>{'url' in file ? <FileLink url={file.url} /> : <code>{file.path}</code>}</li>
          ))}
        </ul>
      )}
      {notes.map((note, index) => (
        <p key={index} class="notice">
          {note}
        </p>
      ))}
      {state !== 'delivered' && <p class="notice">{DELIVERY[state]}</p>}
    </article>
  )
}

const DELIVERY = {
  pending: 'On its way to the channel.',
  undelivered: 'The channel did not take this. The page "Queue" can send it again.',
  dropped: 'This was not sent to the channel.',
}

function FileLink({ url }: { url: string }) {
  const href = safeUrl(url)
  return href === undefined ? (
    <code>{url}</code>
  ) : (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {url}
    </a>
  )
}

const ENDS: Partial<Record<Message['state'], string>> = {
  failed: 'This failed',
  cancelled: 'Stopped',
  dropped: 'Dropped',
  refused: 'Refused',
}

/** Why a message has no answer, and what can be done about that. */
function Ended({
  conversationId,
  message: { id, state, problem, replies },
  mayChange,
  onChange,
}: Pick<EntryProps, 'conversationId' | 'mayChange' | 'onChange'> & { message: Message }) {
  const { run, isBusy, error } = useAction()
  const word = ENDS[state]
  if (word === undefined) return null
  const isTold = replies.some(({ is_error: isError }) => isError)
  return (
    <div class="aside row">
      <span class={state === 'failed' ? 'bad' : 'muted'}>
        {word}
        {problem !== null && !isTold ? `: ${problem}` : '.'}
      </span>
      {state === 'failed' && mayChange && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() =>
            void run(async () => {
              await api.conversations.retry(conversationId, id)
              onChange()
            })
          }
        >
          Retry
        </button>
      )}
      <ErrorWords words={error} />
    </div>
  )
}

/** What stands behind an answer: the runs, with everything that happened in them. */
function Behind({ runs }: { runs: Run[] }) {
  const [isOpen, setIsOpen] = useState(false)
  const last = runs.at(-1)
  return (
    <details class="behind" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <span>{runs.length > 1 ? `What the agent did, ${runs.length} attempts` : 'What the agent did'}</span>
        {last && <RunFacts run={last} />}
      </summary>
      {isOpen &&
        runs.map((run, index) => (
          <section key={run.id} aria-label={`Attempt ${index + 1}`}>
            {runs.length > 1 && (
              <p class="muted">
                Attempt {index + 1}: {run.state} <RunFacts run={run} />
              </p>
            )}
            {run.error && <p class="bad">{run.error.message}</p>}
            <PastRun runId={run.id} />
          </section>
        ))}
    </details>
  )
}

function RunFacts({ run: { provider, model, duration_ms: duration, usage, cost_usd: cost } }: { run: Run }) {
  const facts: ComponentChildren[] = [
    model === null ? provider : `${provider} · ${model}`,
    ...(duration === null ? [] : [<Duration from={0} until={duration} />]),
    ...(usage === null ? [] : [<Tokens usage={usage} />]),
    ...(cost === null ? [] : [<Money usd={cost} />]),
  ]
  return (
    <span class="muted run-facts">
      {facts.map((fact, index) => (
        <span key={index}>{fact}</span>
      ))}
    </span>
  )
}
