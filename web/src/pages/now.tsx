import type { ComponentChildren } from 'preact'
import type { Approval, Conversation } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { type LiveState, type Turn, useLive } from '../live.js'
import { useMe } from '../me.js'
import { ApprovalCard } from '../parts/approval-card.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Markdown } from '../parts/markdown.js'
import { Duration, Money, Time, Tokens } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { RunView } from '../parts/run-view.js'
import { StepList } from '../parts/step-list.js'
import { StickToEnd } from '../parts/stick-to-end.js'
import { placeOf } from '../place-of.js'
import { hrefOf } from '../router.js'
import { isFirstStart } from '../setup-steps.js'
import { useAction } from '../use-action.js'
import { useQuestions } from '../use-questions.js'
import { useSetup } from '../use-setup.js'
import { useResource } from '../use-resource.js'

/** Of those that have ended since the page was opened. */
const SHOWN_ENDED = 5

export function NowPage() {
  const live = useLive()
  const conversations = [...live.conversations.values()]
  const running = conversations.filter(({ state }) => state === 'running')
  const waiting = conversations.filter(({ state }) => state === 'waiting')
  const ended = endedOf(live)
  const questions = useQuestions(live)
  const isIdle = live.connection === 'live' && running.length + waiting.length + ended.length === 0
  const cardOf = (conversation: Conversation, turn: Turn | undefined) => (
    <ConversationCard
      key={conversation.id}
      conversation={conversation}
      turn={turn}
      approvals={questions.approvals.filter(({ message_id: id }) => id === conversation.message_id)}
      onAnswered={questions.reload}
    />
  )
  const workedOn = ({ message_id: id }: Conversation): Turn | undefined => live.turns.get(id ?? '')
  return (
    <Page title="Now">
      {live.connection === 'lost' && (
        <div class="note warn" role="alert">
          <p>
            The gateway does not answer
            {live.lostAt !== undefined && (
              <>
                {' '}
                since <Time at={new Date(live.lostAt).toISOString()} />
              </>
            )}
            . What is shown here may be old; this page tries again by itself.
          </p>
        </div>
      )}
      {questions.error !== undefined && <ErrorNote words={questions.error} onRetry={questions.reload} />}
      {isIdle && <Idle />}
      <Group title="Running" cards={running.map((conversation) => cardOf(conversation, workedOn(conversation)))} />
      <Group title="Waiting" cards={waiting.map((conversation) => cardOf(conversation, workedOn(conversation)))} />
      <Group title="Just ended" cards={ended.map(([conversation, turn]) => cardOf(conversation, turn))} />
    </Page>
  )
}

function Idle() {
  const { value: state } = useSetup()
  return (
    <>
      <EmptyState title="No agent is at work.">
        <p>
          <a href={hrefOf('conversations')}>Write to one</a>, or see the <a href={hrefOf('first-steps')}>first steps</a>
          .
        </p>
      </EmptyState>
      {state && isFirstStart(state) && <StepList state={state} />}
    </>
  )
}

function Group({ title, cards }: { title: string; cards: ComponentChildren[] }) {
  if (cards.length === 0) return null
  return (
    <section class="group" aria-label={title}>
      <h2>
        {title} <span class="muted">{cards.length}</span>
      </h2>
      {cards}
    </section>
  )
}

function endedOf({ conversations, turns }: LiveState): Array<[Conversation, Turn]> {
  const latest = new Map<string, Turn>()
  for (const turn of turns.values()) if (turn.model.end) latest.set(turn.conversationId, turn)
  return [...latest]
    .flatMap(([id, turn]): Array<[Conversation, Turn]> => {
      const conversation = conversations.get(id)
      return conversation?.state === 'idle' ? [[conversation, turn]] : []
    })
    .slice(-SHOWN_ENDED)
    .toReversed()
}

function ConversationCard({
  conversation,
  turn,
  approvals,
  onAnswered,
}: {
  conversation: Conversation
  turn: Turn | undefined
  approvals: Approval[]
  onAnswered: () => void
}) {
  const { id, run, question, state } = conversation
  const end = state === 'idle' ? turn?.model.end : undefined
  return (
    <article class={`card conversation ${state}`} aria-label={question ?? 'A conversation'}>
      <header>
        <a class="where" href={hrefOf('conversations', id)}>
          {placeOf(conversation)}
        </a>
        <span class="muted">
          {run
            ? `${run.provider}${(run.model ?? turn?.model.model) ? ` · ${run.model ?? turn?.model.model}` : ''}`
            : ''}
        </span>
        <span class="card-state">{end ? <Ended turn={turn} /> : <Going conversation={conversation} />}</span>
      </header>
      {question !== null && <p class="asked">{question}</p>}
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} onAnswered={onAnswered} />
      ))}
      {turn && (turn.model.blocks.length > 0 || turn.model.result || turn.isLoading) && (
        <StickToEnd label="What the agent does">
          {turn.isLoading ? (
            <p class="muted">Loading what came before…</p>
          ) : (
            <RunView key={turn.messageId} model={turn.model} />
          )}
          <UnstreamedAnswer model={turn.model} />
        </StickToEnd>
      )}
      <footer>
        <Spent conversation={conversation} />
        <Actions conversation={conversation} turn={turn} />
      </footer>
    </article>
  )
}

/** Agents that do not stream say it all at the end. */
function UnstreamedAnswer({ model: { blocks, result } }: Pick<Turn, 'model'>) {
  const answer = blocks.some(({ kind }) => kind === 'text') ? '' : (result?.final_output ?? '')
  return answer === '' ? null : <Markdown text={answer} />
}

function Going({ conversation: { run, open, asked, waits_until: until } }: { conversation: Conversation }) {
  const more = open > 1 ? `, ${open - 1} more wait` : ''
  if (asked > 0) return <span class="warn">Waits for an answer{more}</span>
  if (run) {
    return (
      <span class="good">
        <span class="working">Works</span> <Duration from={Date.parse(run.started_at)} />
        {more}
      </span>
    )
  }
  return (
    <span class="warn">
      Waits
      {until !== null && (
        <>
          , next try <Time at={until} />
        </>
      )}
      {more}
    </span>
  )
}

const ENDS = {
  answered: ['good', 'Answered'],
  failed: ['bad', 'Failed'],
  cancelled: ['muted', 'Stopped'],
  dropped: ['muted', 'Dropped'],
  refused: ['bad', 'Refused'],
} as const

function Ended({ turn }: { turn: Turn | undefined }) {
  const end = turn?.model.end
  if (!end) return null
  const [tone, word] = ENDS[end.status]
  return (
    <span class={tone}>
      {word} <Duration from={0} until={end.duration_ms} />
    </span>
  )
}

/** What the conversation has cost so far; a run tells it when it ends. */
function Spent({ conversation: { id, last_number: number, state } }: { conversation: Conversation }) {
  const { value } = useResource(() => api.conversations.get(id), [id, number, state])
  if (!value || value.usage.runs === 0) return <span />
  const { usage } = value
  return (
    <span class="muted">
      {usage.runs} {usage.runs === 1 ? 'run' : 'runs'} so far · <Tokens usage={usage} /> ·{' '}
      <Money usd={usage.cost_usd} />
    </span>
  )
}

function Actions({
  conversation: { id, state, message_id: messageId },
  turn,
}: {
  conversation: Conversation
  turn: Turn | undefined
}) {
  const { run, isBusy, error } = useAction()
  const mayRun = useMe().scopes.includes('run')
  if (!mayRun) return null
  const failed = state === 'idle' && turn?.model.end?.status === 'failed' ? turn : undefined
  return (
    <span class="row">
      <ErrorWords words={error} />
      {messageId !== null && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void run(() => api.conversations.stop(id, { messageId }))}
        >
          Stop
        </button>
      )}
      {failed && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void run(() => api.conversations.retry(id, failed.messageId))}
        >
          Retry
        </button>
      )}
      <a class="button" href={hrefOf('conversations', id)}>
        Open
      </a>
    </span>
  )
}
