import { Component, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Approval, TranscriptEntry } from '../../../src/client/aetheel-client.js'
import { withLocalTimes } from '../../../src/core/local-time.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import type { Turn } from '../live.js'
import { safeUrl } from '../markdown.js'
import { useMe } from '../me.js'
import { ApprovalCard } from '../parts/approval-card.js'
import { Cut } from '../parts/cut.js'
import { ErrorWords } from '../parts/error-note.js'
import { Icon } from '../parts/icon.js'
import { Markdown } from '../parts/markdown.js'
import { Duration, Money, Time, Tokens } from '../parts/numbers.js'
import { RunView, type ShownRun } from '../parts/run-view.js'
import { Skeleton } from '../parts/skeleton.js'
import type { Block, RunModel } from '../run-model.js'
import { useAction } from '../use-action.js'
import { type Folds, lastOpened, useFold } from '../use-fold.js'
import { SentFiles } from './attachments.js'
import { PastRun, usePastRun } from './past-run.js'

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
  /** Whether messages can be sent to it from here. */
  mayWrite: boolean
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
  mayWrite,
  isLatest,
  onChange,
}: Omit<EntryProps, 'entry'> & { message: Message }) {
  const { kind, state, replies, runs, merged_into: mergedInto } = message
  const isOpen = state === 'queued' || state === 'running'
  // A question is shown with its buttons, and its outcome among the steps.
  const said = replies.filter(({ is_question: isQuestion }) => !isQuestion)
  const ended = runs.filter((run) => run.state !== 'running')
  const last = ended.at(-1)
  const isAnswered = state === 'answered'
  const remains = !isOpen && !isAnswered ? last : undefined
  // A turn that ended while nobody listened is not known any more.
  const known = useRef<Folds>(new Map())
  if (turn) known.current = turn.model.folds
  const folds = known.current
  return (
    <>
      {kind === 'message' ? (
        <Typed conversationId={conversationId} message={message} />
      ) : (
        <p class="aside muted">
          {kind} · {message.author} · <Time at={message.received_at} />: {message.text.slice(0, SHOWN_TRIGGER)}
        </p>
      )}
      {mergedInto !== null && <p class="aside muted">Answered together with the next message.</p>}
      {isOpen && mergedInto === null && <Going turn={turn} state={state} approvals={approvals} />}
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} onAnswered={onChange} />
      ))}
      {isAnswered && last && <Behind runs={ended} folds={folds} isAnswered />}
      {remains && <Remains key={remains.id} run={remains} turn={turn} folds={folds} hasErrors={state === 'dropped'} />}
      {said.map((reply) => (
        <SaidView key={reply.id} said={reply} />
      ))}
      {mayChange && isLatest && said.some(({ can_continue: canContinue }) => canContinue) && (
        <Continue conversationId={conversationId} messageId={message.id} onChange={onChange} />
      )}
      {!isOpen && (
        <Ended
          conversationId={conversationId}
          message={message}
          mayChange={mayChange}
          mayWrite={mayWrite && isLatest}
          onChange={onChange}
        />
      )}
      {!isAnswered && ended.length > (remains ? 1 : 0) && <Behind runs={ended} folds={folds} isAnswered={false} />}
    </>
  )
}

/** Of what began a turn in place of a person. */
const SHOWN_TRIGGER = 200
const SHOWN_CHARACTERS = 30_000

/** What a person wrote, to the character. */
function Typed({
  conversationId,
  message: { author, text, files, received_at: at },
}: Pick<EntryProps, 'conversationId'> & { message: Message }) {
  const isOwn = useMe().name === author
  return (
    <article class="said person" aria-label={`${author} wrote`}>
      <SentFiles conversationId={conversationId} files={files} />
      {text !== '' && (
        <div class="bubble">
          <Cut text={text} characters={SHOWN_CHARACTERS}>
            {(shown) => <p class="typed">{shown}</p>}
          </Cut>
        </div>
      )}
      <footer>
        {!isOwn && `${author} · `}
        <Time at={at} />
      </footer>
    </article>
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
function Going({
  turn,
  state,
  approvals,
}: {
  turn: Turn | undefined
  state: 'queued' | 'running'
  approvals: Approval[]
}) {
  if (turn?.isLoading) return <Skeleton lines={3} />
  const isAsked = approvals.length > 0
  const words = isAsked ? undefined : state === 'running' ? 'Working…' : 'Waiting for its turn'
  const model = turn && withoutAsked(turn.model, approvals)
  return (
    <section class="said agent" aria-label="What the agent does" aria-busy={!isAsked}>
      {model && model.blocks.length > 0 && <RunView model={model} />}
      {words !== undefined && (
        <p class="status">
          <span class={`mark ${state === 'running' ? 'running' : 'waiting'}`} /> {words}
        </p>
      )}
    </section>
  )
}

/** The tool that waits for a person is told by its question. */
function withoutAsked({ blocks, dropped, folds }: RunModel, approvals: Approval[]): ShownRun {
  const isAsked = (block: Block): boolean =>
    block.kind === 'tool' && !block.result && approvals.some(({ tool }) => tool === block.tool)
  return { blocks: approvals.length === 0 ? blocks : blocks.filter((block) => !isAsked(block)), dropped, folds }
}

/** What an agent had said and done before it was stopped, or failed. */
function Remains({
  run,
  turn,
  folds,
  hasErrors,
}: {
  run: Run
  turn: Turn | undefined
  folds: Folds
  /** Whether nothing else tells why it failed. */
  hasErrors: boolean
}) {
  const { model } = usePastRun(run.id)
  const known = turn?.model.end ? turn.model : model
  const blocks = known.blocks.filter(({ kind }) => hasErrors || kind !== 'error')
  if (blocks.length === 0) return null
  return (
    <section class="said agent" aria-label="What the agent did">
      <RunView model={{ blocks, dropped: known.dropped, folds }} />
    </section>
  )
}

function SaidView({ said }: { said: Said }) {
  const { notes, is_error: isError, files, state } = said
  // What the gateway says has its own times.
  const local = (words: string): string => withLocalTimes(words, Date.parse(said.created_at))
  const text = isError ? local(said.text) : said.text
  return (
    <article class={`said ${isError ? 'failed' : 'agent'}`} aria-label={isError ? 'An error' : 'An answer'}>
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
          {local(note)}
        </p>
      ))}
      {state !== 'delivered' && <p class="notice">{DELIVERY[state]}</p>}
      {!isError && <CopyButton text={text} />}
    </article>
  )
}

const DELIVERY = {
  pending: 'Being delivered…',
  undelivered: 'Not delivered to the channel. Retry it under Queue.',
  dropped: 'Dropped before it was delivered.',
}

function CopyButton({ text }: { text: string }) {
  const [isCopied, setIsCopied] = useState(false)
  // Without TLS a browser has no clipboard.
  const { clipboard } = navigator as Partial<Navigator>
  if (!clipboard) return null
  return (
    <span class="said-actions">
      <button
        type="button"
        class="quiet icon-only"
        aria-label={isCopied ? 'Copied' : 'Copy'}
        title={isCopied ? 'Copied' : 'Copy'}
        onClick={() => void clipboard.writeText(text).then(() => setIsCopied(true))}
      >
        <Icon name={isCopied ? 'check' : 'copy'} />
      </button>
    </span>
  )
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
  failed: 'Failed',
  cancelled: 'Stopped',
  dropped: 'Stopped',
  refused: 'Refused',
}

/** Why a message has no answer, and what can be done about that. */
function Ended({
  conversationId,
  message: { id, text, state, problem, replies },
  mayChange,
  mayWrite,
  onChange,
}: Pick<EntryProps, 'conversationId' | 'mayChange' | 'mayWrite' | 'onChange'> & { message: Message }) {
  const { run, isBusy, error } = useAction()
  const word = ENDS[state]
  if (word === undefined) return null
  const isTold = replies.some(({ is_error: isError }) => isError)
  // What was stopped has ended for good: its words are sent again.
  const retry =
    state === 'failed' && mayChange
      ? () => api.conversations.retry(conversationId, id)
      : state !== 'failed' && mayWrite
        ? () => api.conversations.send(conversationId, text)
        : undefined
  return (
    <div class="aside row">
      <span class={state === 'failed' || state === 'refused' ? 'bad' : 'muted'}>
        {word}
        {problem !== null && !isTold && state !== 'cancelled' ? `: ${problem}` : ''}
      </span>
      {retry && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() =>
            void run(async () => {
              await retry()
              onChange()
            })
          }
        >
          <Icon name="retry" />
          Retry
        </button>
      )}
      <ErrorWords words={error} />
    </div>
  )
}

/** While it is filled. */
const OPENING_MS = 800

/** Of the whole, among the folds of its events, which are numbered from 1. */
const BEHIND_ANSWER = 0
const BEHIND_ATTEMPTS = -1

/**
 * What stands behind an answer, or the attempts before it: the runs, with everything that happened in them. Contract: an
 * answer does not hide what one has opened while it was written.
 */
function Behind({ runs, folds, isAnswered }: { runs: Run[]; folds: Folds; isAnswered: boolean }) {
  const fold = useFold(
    folds,
    isAnswered ? BEHIND_ANSWER : BEHIND_ATTEMPTS,
    isAnswered && lastOpened(folds) !== undefined,
  )
  const isOpen = fold.open
  const last = runs.at(-1)
  const frame = useRef<HTMLDetailsElement>(null)
  const isDrawn = useRef(false)
  useEffect(() => {
    const { current } = frame
    const isByHand = isDrawn.current
    isDrawn.current = true
    if (!isOpen || !isByHand || !current) return undefined
    // At the end of the page, what opens would be below it.
    const growth = new ResizeObserver(() => current.scrollIntoView({ block: 'nearest' }))
    growth.observe(current)
    const timer = setTimeout(() => growth.disconnect(), OPENING_MS)
    return () => {
      clearTimeout(timer)
      growth.disconnect()
    }
  }, [isOpen])
  return (
    <details ref={frame} class="behind" {...fold}>
      <summary>
        <Icon name="chevron" />
        <span>
          {last?.duration_ms == null ? (
            'Details'
          ) : (
            <>
              Worked for <Duration from={0} until={last.duration_ms} />
            </>
          )}
          {runs.length > 1 && `, ${runs.length} attempts`}
        </span>
        {last && <RunFacts run={last} />}
      </summary>
      {isOpen &&
        runs.map((run, index) => (
          <section key={run.id} aria-label={`Attempt ${index + 1}`}>
            {runs.length > 1 && (
              <p class="muted">
                Attempt {index + 1}: {RUN_STATES[run.state]}
              </p>
            )}
            {run.error && run.state !== 'cancelled' && <p class="bad">{run.error.message}</p>}
            <PastRun runId={run.id} folds={folds} />
          </section>
        ))}
    </details>
  )
}

const RUN_STATES: Record<Run['state'], string> = {
  running: 'running',
  answered: 'answered',
  failed: 'failed',
  cancelled: 'stopped',
  interrupted: 'cut off when the gateway ended',
}

function RunFacts({ run: { provider, model, usage, cost_usd: cost } }: { run: Run }) {
  const facts: ComponentChildren[] = [
    model === null ? agentName(provider) : `${agentName(provider)} · ${model}`,
    ...(usage === null ? [] : [<Tokens usage={usage} />]),
    ...(cost === null ? [] : [<Money usd={cost} />]),
  ]
  return (
    <span class="run-facts">
      {facts.map((fact, index) => (
        <span key={index}>{fact}</span>
      ))}
    </span>
  )
}
