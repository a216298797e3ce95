import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { ApiErrorCode, Conversation, ConversationDetails } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { channelName } from '../conversation.js'
import { type LiveState, useLive } from '../live.js'
import { useMe } from '../me.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Icon } from '../parts/icon.js'
import { Skeleton } from '../parts/skeleton.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useIsNarrow } from '../use-is-narrow.js'
import { useQuestions } from '../use-questions.js'
import { useResource } from '../use-resource.js'
import { AgentAndSession } from './agent-and-session.js'
import { upload } from './attachments.js'
import { ChangesPanel } from './changes-panel.js'
import { Composer } from './composer.js'
import { PaneHead } from './pane-head.js'
import { Transcript } from './transcript.js'
import { useChanges } from './use-changes.js'

/** Channels whose conversations are created through the API. */
const WEB = 'web'
const OWN_CHANNELS = ['http', WEB]
/** As in styles/conversation.css. There is no room for two columns. */
const ONE_COLUMN = '(max-width: 76rem)'

/** Read out when it changes. */
const STATUS: Record<Conversation['state'], string> = { running: 'Working', waiting: 'Waiting', idle: '' }

/** Contract: its `key` is the id. */
export function ConversationPane({ id }: { id: string }) {
  const live = useLive()
  const [own, setOwn] = useState(0)
  const [sent, setSent] = useState(0)
  const [shown, setShown] = useState<'changes' | 'talk'>()
  const [isChoosing, setIsChoosing] = useState(false)
  const isOneColumn = useIsNarrow(ONE_COLUMN)
  const version = `${versionOf(live.conversations.get(id))}:${live.snapshots}:${own}`
  const { value: details, error, errorCode, reload } = useResource(() => api.conversations.get(id), [id, version])
  const { approvals, reload: reloadQuestions } = useQuestions(live)
  const changes = useChanges(id, version, live)
  const me = useMe()
  const onChange = (): void => {
    setOwn((count) => count + 1)
    reloadQuestions()
  }
  if (!details) {
    return (
      <section class="chat" aria-label="Conversation">
        <div class="chat-lost">
          {error === undefined ? <Skeleton /> : <Lost words={error} code={errorCode} onRetry={reload} />}
        </div>
      </section>
    )
  }
  const conversation = latestOf(details, live)
  const mayRun = me.scopes.includes('run')
  const mayChange = mayRun && (OWN_CHANNELS.includes(conversation.channel) || me.scopes.includes('admin'))
  const isRail = changes.length > 0 && !isOneColumn && shown !== 'talk'
  const isTab = changes.length > 0 && isOneColumn && shown === 'changes'
  const stop = conversation.message_id !== null && mayChange && (
    <StopButton id={id} messageId={conversation.message_id} />
  )
  return (
    <section class={isRail ? 'chat has-rail' : 'chat'} aria-label="Conversation">
      <PaneHead
        conversation={conversation}
        details={details}
        mayChange={mayChange}
        changedFiles={changes.length}
        isShowingChanges={isRail || isTab}
        onShowChanges={() => setShown(isRail || isTab ? 'talk' : 'changes')}
        onChoose={() => setIsChoosing(true)}
        onChange={onChange}
      />
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {isTab ? (
        <ChangesPanel files={changes} />
      ) : (
        <div class="chat-main">
          <Transcript
            id={id}
            version={version}
            live={live}
            sent={sent}
            approvals={approvals}
            mayChange={mayChange}
            mayWrite={mayRun && conversation.channel === WEB}
            hasSession={details.session !== null}
            onChange={onChange}
          />
          <p class="hidden" role="status">
            {conversation.asked > 0 ? 'Waiting for you' : STATUS[conversation.state]}
          </p>
          <div class="chat-foot">
            {conversation.channel !== WEB ? (
              <Elsewhere details={details} mayRun={mayRun} stop={stop} />
            ) : mayRun ? (
              <Composer
                draftId={id}
                placeholder={
                  conversation.state === 'idle'
                    ? `Message ${agentName(details.agent_provider)}`
                    : 'Queue the next message'
                }
                beside={stop}
                sources={{ conversationId: id, projectId: conversation.project_id }}
                send={async ({ text, key }, chosen) => {
                  const files = await upload(id, chosen)
                  const taken = await api.conversations.send(id, text, { idempotencyKey: key, files })
                  setSent((count) => count + 1)
                  if (!('command' in taken)) return taken.notes.length > 0 ? taken.notes.join('\n\n') : undefined
                  if (taken.is_change) onChange()
                  return taken.answer
                }}
              />
            ) : (
              <p class="note">This token is read-only. To write, log in with a token that has the "run" scope.</p>
            )}
          </div>
        </div>
      )}
      {isRail && <ChangesPanel files={changes} onClose={() => setShown('talk')} />}
      {isChoosing && (
        <AgentAndSession
          details={details}
          mayChange={mayChange}
          onChange={onChange}
          onClose={() => setIsChoosing(false)}
        />
      )}
    </section>
  )
}

/** A key that changes whenever the transcript or the details may have changed. */
function versionOf(heard: Conversation | undefined): string {
  if (!heard) return ''
  const { last_number: number, state, open, asked, message_id: messageId, run, project_id: projectId, title } = heard
  return [number, state, open, asked, messageId, run?.id, projectId, title].join(',')
}

function latestOf(details: ConversationDetails, { conversations }: LiveState): Conversation {
  const heard = conversations.get(details.id)
  if (!heard || heard.updated_at < details.updated_at) return details
  // These are changed on this page, and the stream may be behind.
  const { project_id, title, title_is_chosen, is_pinned, is_archived } = details
  return { ...heard, project_id, title, title_is_chosen, is_pinned, is_archived }
}

/** A mistyped address, or a deleted conversation. */
function Lost({ words, code, onRetry }: { words: string; code: ApiErrorCode | undefined; onRetry: () => void }) {
  // Only the id can make this request invalid.
  const isUnknown = code === 'not_found' || code === 'request_invalid'
  return (
    <>
      <ErrorNote
        words={isUnknown ? 'Conversation not found, or your token cannot access it.' : words}
        onRetry={onRetry}
      />
      <a href={hrefOf('conversations')}>All conversations</a>
    </>
  )
}

function StopButton({ id, messageId }: { id: string; messageId: string }) {
  const { run, isBusy, error } = useAction()
  return (
    <>
      <ErrorWords words={error} />
      <button type="button" disabled={isBusy} onClick={() => void run(() => api.conversations.stop(id, { messageId }))}>
        <Icon name="stop" />
        Stop
      </button>
    </>
  )
}

/** A conversation of another channel: read here, and continued in a new one. */
function Elsewhere({
  details,
  mayRun,
  stop,
}: {
  details: ConversationDetails
  mayRun: boolean
  stop: ComponentChildren
}) {
  const { run, isBusy, error } = useAction()
  /** Created by an earlier attempt that failed afterwards. */
  const begun = useRef<string | undefined>(undefined)
  const continueHere = async (): Promise<void> => {
    const { project_id: projectId, session } = details
    begun.current ??= (await api.conversations.create(projectId === null ? {} : { project_id: projectId })).id
    if (session) await api.conversations.resume(begun.current, session.id)
    location.hash = hrefOf('conversations', begun.current)
  }
  const isCommand = details.channel === 'http'
  return (
    <div class="elsewhere">
      <span>
        This conversation {isCommand ? 'came in over the API' : `is on ${channelName(details.channel)}`}.
        {details.session && (
          <span class="muted">
            {' '}
            Continue here, and the agent keeps its context
            {isCommand ? '.' : '; the next message there starts a new session.'}
          </span>
        )}
      </span>
      <span class="row">
        <ErrorWords words={error} />
        {stop}
        {mayRun && (
          <button type="button" class="primary" disabled={isBusy} onClick={() => void run(continueHere)}>
            {details.session ? 'Continue here' : 'New conversation here'}
          </button>
        )}
      </span>
    </div>
  )
}
