import { Component, type ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
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
  /** Its live turn, while an agent works on it. */
  turn: Turn | undefined
  /** Changes with every event of the turn. */
  revision: string
  approvals: Approval[]
  mayChange: boolean
  /** Whether messages can be sent from here. */
  mayWrite: boolean
  /** Whether it is the latest message. */
  isLatest: boolean
  onChange: () => void
  /** Part of the entry was loaded only now. */
  onGrown: () => void
}

/** Re-renders only when it has changed, so that the rest of the page stays put while an agent writes. */
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
  onGrown,
}: Omit<EntryProps, 'entry'> & { message: Message }) {
  const { kind, state, replies, runs, merged_into: mergedInto } = message
  const isOpen = state === 'queued' || state === 'running'
  // A question has its own card, and its outcome is among the steps.
  const said = replies.filter(({ is_question: isQuestion }) => !isQuestion)
  const ended = runs.filter((run) => run.state !== 'running')
  const last = ended.at(-1)
  const isAnswered = state === 'answered'
  const remains = !isOpen && !isAnswered ? last : undefined
  // A turn that ended while the stream was closed is no longer known.
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
      {isOpen && mergedInto === null && (
        <Going turn={turn} state={state} isRetry={ended.length > 0} approvals={approvals} />
      )}
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} onAnswered={onChange} />
      ))}
      {isAnswered && last && <Behind runs={ended} folds={folds} isAnswered />}
      {remains && (
        <Remains
          key={remains.id}
          run={remains}
          turn={turn}
          folds={folds}
          hasErrors={state === 'dropped'}
          onGrown={onGrown}
        />
      )}
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

/** Characters of a text that started a turn without a person, such as a heartbeat. */
const SHOWN_TRIGGER = 200
const SHOWN_CHARACTERS = 30_000

/** What a person wrote, exactly as typed. */
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

/** For an agent that paused at its turn limit. */
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

/** What is happening with a message right now. */
function Going({
  turn,
  state,
  isRetry,
  approvals,
}: {
  turn: Turn | undefined
  state: 'queued' | 'running'
  /** Whether an attempt has ended already. */
  isRetry: boolean
  approvals: Approval[]
}) {
  if (turn?.isLoading) return <Skeleton lines={3} />
  const isAsked = approvals.length > 0
  const words = isAsked
    ? undefined
    : state === 'running'
      ? 'Working…'
      : isRetry
        ? 'Waiting to try again'
        : 'Waiting for its turn'
  const model = turn && withoutAsked(turn.model, approvals)
  return (
    <section class="said agent" aria-label="What the agent is doing" aria-busy={!isAsked}>
      {model && model.blocks.length > 0 && <RunView model={model} />}
      {words !== undefined && (
        <p class="status">
          <span class={`mark ${state === 'running' ? 'running' : 'waiting'}`} /> {words}
        </p>
      )}
    </section>
  )
}

/** The question already shows the tool that waits for it. */
function withoutAsked({ blocks, dropped, folds }: RunModel, approvals: Approval[]): ShownRun {
  const isAsked = (block: Block): boolean =>
    block.kind === 'tool' && !block.result && approvals.some(({ tool }) => tool === block.tool)
  return { blocks: approvals.length === 0 ? blocks : blocks.filter((block) => !isAsked(block)), dropped, folds }
}

/** What an agent said and did before it was stopped or failed. */
function Remains({
  run,
  turn,
  folds,
  hasErrors,
  onGrown,
}: {
  run: Run
  turn: Turn | undefined
  folds: Folds
  /** Whether nothing else says why it failed. */
  hasErrors: boolean
  onGrown: () => void
}) {
  const { model } = usePastRun(run.id)
  const known = turn?.model.end ? turn.model : model
  const blocks = known.blocks.filter(({ kind }) => hasErrors || kind !== 'error')
  useLayoutEffect(onGrown, [blocks.length])
  if (blocks.length === 0) return null
  return (
    <section class="said agent" aria-label="What the agent did">
      <RunView model={{ blocks, dropped: known.dropped, folds }} />
    </section>
  )
}

function SaidView({ said }: { said: Said }) {
  const { notes, is_error: isError, files, state } = said
  // Texts of the gateway contain times in UTC.
  const local = (words: string): string => withLocalTimes(words, Date.parse(said.created_at))
  const text = isError ? local(said.text) : said.text
  return (
    <article class={`said ${isError ? 'failed' : 'agent'}`} aria-label={isError ? 'Error' : 'Answer'}>
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
  pending: 'Delivering…',
  undelivered: 'Not delivered to the channel. Retry it under Queue.',
  dropped: 'Dropped before delivery.',
}

function CopyButton({ text }: { text: string }) {
  const [isCopied, setIsCopied] = useState(false)
  // Without TLS, browsers have no clipboard API.
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

/** Why a message has no answer, and what to do about it. */
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
  // A stopped message cannot be retried, so its text is sent again.
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

/** How long opened details may take to fill. */
const OPENING_MS = 800

/** Fold keys of the details themselves. Those of events are numbered from 1. */
const BEHIND_ANSWER = 0
const BEHIND_ATTEMPTS = -1

/**
 * The runs behind an answer, or the failed attempts, with everything that happened in them. Contract: what a person
 * opened while the answer was being written stays open.
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
    // At the end of the page, the opened details would be out of view.
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
  interrupted: 'interrupted when the gateway stopped',
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
