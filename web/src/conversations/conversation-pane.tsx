import { useState } from 'preact/hooks'
import type { Conversation, ConversationDetails } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { type LiveState, useLive } from '../live.js'
import { useMe } from '../me.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Duration, Money, Time, Tokens } from '../parts/numbers.js'
import { placeOf } from '../place-of.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useQuestions } from '../use-questions.js'
import { useResource } from '../use-resource.js'
import { AgentAndSession } from './agent-and-session.js'
import { Composer } from './composer.js'
import { Transcript } from './transcript.js'

/** Those that are made by this API. */
const WEB = 'web'
const OWN_CHANNELS = ['http', WEB]

/** Contract: gets the id as its `key`. */
export function ConversationPane({ id }: { id: string }) {
  const live = useLive()
  const [changes, setChanges] = useState(0)
  const [sent, setSent] = useState(0)
  const version = `${versionOf(live.conversations.get(id))}:${live.snapshots}:${changes}`
  const { value: details, error, reload } = useResource(() => api.conversations.get(id), [id, version])
  const { approvals, reload: reloadQuestions } = useQuestions(live)
  const me = useMe()
  const onChange = (): void => {
    setChanges((count) => count + 1)
    reloadQuestions()
  }
  if (!details) {
    return (
      <section class="chat-pane" aria-label="Conversation">
        <Back />
        {error === undefined ? <p class="muted">Loading…</p> : <ErrorNote words={error} onRetry={reload} />}
      </section>
    )
  }
  const conversation = latestOf(details, live)
  const mayRun = me.scopes.includes('run')
  const mayChange = mayRun && (OWN_CHANNELS.includes(conversation.channel) || me.scopes.includes('admin'))
  const stateWords = conversation.state === 'idle' ? '' : 'The agent works.'
  return (
    <section class="chat-pane" aria-label="Conversation">
      <PaneHead conversation={conversation} details={details} mayChange={mayChange} />
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      <AgentAndSession details={details} mayChange={mayChange} onChange={onChange} />
      <Transcript
        id={id}
        version={version}
        live={live}
        sent={sent}
        approvals={approvals}
        mayChange={mayChange}
        onChange={onChange}
      />
      <p class="hidden" role="status">
        {stateWords}
      </p>
      {conversation.channel !== WEB ? (
        <p class="note">
          {conversation.channel === 'http'
            ? 'This is a command that was given over HTTP. To talk, begin a conversation.'
            : `This conversation is one of ${conversation.channel}: write to it there.`}
        </p>
      ) : mayRun ? (
        <Composer
          draftId={id}
          placeholder={conversation.state === 'idle' ? 'Write to the agent' : 'Write the next message'}
          send={async ({ text, key }) => {
            await api.conversations.send(id, text, { idempotencyKey: key })
            setSent((count) => count + 1)
          }}
        />
      ) : (
        <p class="note">This token may read alone. To write, log in with one that may run.</p>
      )}
    </section>
  )
}

/** Changes with everything that changes the transcript or the details. */
function versionOf(heard: Conversation | undefined): string {
  if (!heard) return ''
  const { last_number: number, state, open, asked, message_id: messageId, run, project_id: projectId } = heard
  return [number, state, open, asked, messageId, run?.id, projectId].join(',')
}

function latestOf(details: ConversationDetails, { conversations }: LiveState): Conversation {
  const heard = conversations.get(details.id)
  if (!heard || heard.updated_at < details.updated_at) return details
  // Chosen on this page, it is heard of later.
  return { ...heard, project_id: details.project_id }
}

function Back() {
  return (
    <a class="chat-back" href={hrefOf('conversations')}>
      ← All conversations
    </a>
  )
}

function PaneHead({
  conversation,
  details: { usage },
  mayChange,
}: {
  conversation: Conversation
  details: ConversationDetails
  mayChange: boolean
}) {
  const { id, state, run, open, asked, message_id: messageId, waits_until: until } = conversation
  const stop = useAction()
  return (
    <header class="chat-head">
      <Back />
      <h2>{placeOf(conversation)}</h2>
      <span class="muted">
        {usage.runs} {usage.runs === 1 ? 'run' : 'runs'} · <Tokens usage={usage} /> · <Money usd={usage.cost_usd} />
      </span>
      <span class="row chat-head-end">
        <ErrorWords words={stop.error} />
        {asked > 0 && <span class="warn">Waits for an answer</span>}
        {run && asked === 0 && (
          <span class="good">
            Works <Duration from={Date.parse(run.started_at)} />
          </span>
        )}
        {!run && state === 'waiting' && (
          <span class="warn">
            Waits
            {until !== null && Date.parse(until) > Date.now() && (
              <>
                {' '}
                until <Time at={until} />
              </>
            )}
          </span>
        )}
        {open > 1 && <span class="muted">{open - 1} more wait</span>}
        {messageId !== null && mayChange && (
          <button
            type="button"
            disabled={stop.isBusy}
            onClick={() => void stop.run(() => api.conversations.stop(id, { messageId }))}
          >
            Stop
          </button>
        )}
      </span>
    </header>
  )
}
