import type { ComponentChildren } from 'preact'
import type { Approval, Conversation } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { placeOf, stateOf, titleOf } from '../conversation.js'
import { ConversationRow } from '../conversations/conversation-row.js'
import { NewConversation } from '../conversations/new-conversation.js'
import { type Listed, useConversations } from '../conversations/use-conversations.js'
import { type LiveState, useLive } from '../live.js'
import { useMe } from '../me.js'
import { ApprovalCard } from '../parts/approval-card.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Icon } from '../parts/icon.js'
import { Duration, Time } from '../parts/numbers.js'
import { Skeleton } from '../parts/skeleton.js'
import { StepList } from '../parts/step-list.js'
import { hrefOf } from '../router.js'
import type { RunModel } from '../run-model.js'
import { isDone, isFirstStart } from '../setup-steps.js'
import { toolLabel } from '../tool-label.js'
import { useAction } from '../use-action.js'
import { useQuestions } from '../use-questions.js'
import { useSetup } from '../use-setup.js'

const SHOWN_RECENT = 8
const SHOWN_FAILED = 4
/** Older failures are listed with the rest. */
const FAILED_MS = 3 * 86_400_000

export function HomePage() {
  const live = useLive()
  const { rows, isLoading, error, reload } = useConversations({})
  // Its note already says why nothing loads.
  const isLost = live.connection === 'lost'
  const questions = useQuestions(live)
  const { value: setup } = useSetup()
  const mayRun = useMe().scopes.includes('run')
  const isFirst = setup !== undefined && isFirstStart(setup)
  // Without an agent, nobody can answer: the steps come first.
  const hasAgent = setup !== undefined && isDone('agent', setup)
  const open = [...live.conversations.values()].filter(({ state }) => state !== 'idle').toReversed()
  const asking = questions.approvals.map((approval) => ({
    approval,
    conversation: open.find(({ message_id: id }) => id === approval.message_id),
  }))
  const working = open.filter(({ asked }) => asked === 0)
  const failed = rows.filter((row) => stateOf(row) === 'failed' && isRecent(row)).slice(0, SHOWN_FAILED)
  const shown = new Set([...failed, ...open].map(({ id }) => id))
  const recent = rows.filter(({ id }) => !shown.has(id)).slice(0, SHOWN_RECENT)
  return (
    <div class="home">
      <h1>What are we working on?</h1>
      {isLost && <LostNote live={live} />}
      {isFirst && !hasAgent && <StepList state={setup} />}
      {mayRun && <NewConversation />}
      {isFirst && hasAgent && <StepList state={setup} />}
      {questions.error !== undefined && !isLost && <ErrorNote words={questions.error} onRetry={questions.reload} />}
      <Group title="Needs you" count={asking.length + failed.length}>
        {asking.map(({ approval, conversation }) => (
          <Asking key={approval.id} approval={approval} conversation={conversation} onAnswered={questions.reload} />
        ))}
        <Rows rows={failed} label="Failed" />
      </Group>
      <Group title="Running" count={working.length}>
        {working.map((conversation) => (
          <RunningCard
            key={conversation.id}
            conversation={conversation}
            model={live.turns.get(conversation.message_id ?? '')?.model}
          />
        ))}
      </Group>
      {error !== undefined && !isLost && <ErrorNote words={error} onRetry={reload} />}
      {isLoading && rows.length === 0 && <Skeleton lines={6} />}
      {!isLoading && rows.length === 0 && error === undefined && (
        <EmptyState icon="chat" title="No conversations yet">
          <p>
            {mayRun ? 'Write the first message above, or ' : 'To chat with an agent, '}
            <a href={hrefOf('first-steps')}>connect Discord or WhatsApp</a>.
          </p>
        </EmptyState>
      )}
      <Group title="Recent" count={recent.length} end={<a href={hrefOf('conversations')}>All conversations</a>}>
        <Rows rows={recent} label="Recent" />
      </Group>
    </div>
  )
}

function isRecent({ updated_at: at }: Listed): boolean {
  return Date.now() - Date.parse(at) < FAILED_MS
}

function LostNote({ live: { lostAt } }: { live: LiveState }) {
  return (
    <div class="note warn" role="alert">
      <p>
        The gateway is not responding. This page keeps trying to reconnect.
        {lostAt !== undefined && (
          <>
            {' '}
            Connection lost <Time at={new Date(lostAt).toISOString()} />.
          </>
        )}
      </p>
    </div>
  )
}

function Group({
  title,
  count,
  end,
  children,
}: {
  title: string
  count: number
  end?: ComponentChildren
  children: ComponentChildren
}) {
  if (count === 0) return null
  return (
    <section class="group" aria-label={title}>
      <header class="group-head">
        <h2>{title}</h2>
        {end}
      </header>
      {children}
    </section>
  )
}

function Rows({ rows, label }: { rows: Listed[]; label: string }) {
  if (rows.length === 0) return null
  return (
    <ul class="rows" aria-label={`${label} conversations`}>
      {rows.map((row) => (
        <li key={row.id}>
          <ConversationRow row={row} />
        </li>
      ))}
    </ul>
  )
}

function Asking({
  approval,
  conversation,
  onAnswered,
}: {
  approval: Approval
  conversation: Conversation | undefined
  onAnswered: () => void
}) {
  return (
    <article class="stack" aria-label={conversation ? titleOf(conversation) : 'Question'}>
      {conversation && (
        <a class="where" href={hrefOf('conversations', conversation.id)}>
          {titleOf(conversation)} <span class="muted">{placeOf(conversation)}</span>
        </a>
      )}
      <ApprovalCard approval={approval} onAnswered={onAnswered} />
    </article>
  )
}

function RunningCard({ conversation, model }: { conversation: Conversation; model: RunModel | undefined }) {
  const { id, run, state, open, message_id: messageId, waits_until: until } = conversation
  const { run: act, isBusy, error } = useAction()
  const mayRun = useMe().scopes.includes('run')
  return (
    <article class="at-work" aria-label={titleOf(conversation)}>
      <span class={`mark ${state}`} />
      <a href={hrefOf('conversations', id)}>
        <span class="chat-row-title">{titleOf(conversation)}</span>
        <span class="chat-row-text">{(model && lastStepOf(model)) || placeOf(conversation)}</span>
      </a>
      <span class="chat-row-end">
        <span>
          {run ? (
            <>
              {agentName(run.provider)} · <Duration from={Date.parse(run.started_at)} />
            </>
          ) : until !== null && Date.parse(until) > Date.now() + 5000 ? (
            <>
              Retrying <Time at={until} />
            </>
          ) : (
            'Waiting'
          )}
        </span>
        {open > 1 && <span class="muted">{open - 1} queued</span>}
      </span>
      {mayRun && messageId !== null && (
        <button
          type="button"
          class="quiet icon-only"
          aria-label="Stop"
          title="Stop"
          disabled={isBusy}
          onClick={() => void act(() => api.conversations.stop(id, { messageId }))}
        >
          <Icon name="stop" />
        </button>
      )}
      <ErrorWords words={error} />
    </article>
  )
}

const STEP_CHARACTERS = 160

/** What the agent is doing right now, in one line. */
function lastStepOf({ blocks }: RunModel): string {
  const last = blocks.findLast(({ kind }) => kind === 'text' || kind === 'tool' || kind === 'thinking')
  if (!last) return ''
  if (last.kind === 'tool') {
    const { action, subject } = toolLabel(last.tool, last.input)
    return subject === '' ? action : `${action}: ${subject}`
  }
  const words = 'text' in last ? last.text.trimEnd() : ''
  return words.slice(words.lastIndexOf('\n') + 1).slice(-STEP_CHARACTERS)
}
