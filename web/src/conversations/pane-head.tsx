import { useEffect, useRef, useState } from 'preact/hooks'
import type { Conversation, ConversationDetails } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api, wordsOf } from '../api.js'
import { placeOf, titleOf } from '../conversation.js'
import { Dialog } from '../parts/dialog.js'
import { ErrorWords } from '../parts/error-note.js'
import { Icon } from '../parts/icon.js'
import { Menu, type MenuItem } from '../parts/menu.js'
import { Duration, Time } from '../parts/numbers.js'
import { hrefOf } from '../router.js'
import { toast } from '../toasts.js'
import { useAction } from '../use-action.js'

const LONGEST_TITLE = 80

export function PaneHead({
  conversation,
  details,
  mayChange,
  changedFiles,
  isShowingChanges,
  onShowChanges,
  onChoose,
  onChange,
}: {
  conversation: Conversation
  details: ConversationDetails
  mayChange: boolean
  changedFiles: number
  isShowingChanges: boolean
  onShowChanges: () => void
  onChoose: () => void
  onChange: () => void
}) {
  const { id, is_pinned: isPinned, is_archived: isArchived } = conversation
  const [doing, setDoing] = useState<'renaming' | 'deleting'>()
  const { run, error } = useAction()
  const change = (changes: { is_pinned?: boolean; is_archived?: boolean }, words: string): void =>
    void run(async () => {
      await api.conversations.update(id, changes)
      toast({ title: words })
      onChange()
    })
  const items: MenuItem[] = [
    { label: 'Rename', icon: 'edit', onChoose: () => setDoing('renaming') },
    {
      label: isPinned ? 'Unpin' : 'Pin',
      icon: 'pin',
      onChoose: () => change({ is_pinned: !isPinned }, isPinned ? 'Unpinned' : 'Pinned'),
    },
    {
      label: isArchived ? 'Unarchive' : 'Archive',
      icon: 'archive',
      onChoose: () => change({ is_archived: !isArchived }, isArchived ? 'Unarchived' : 'Archived'),
    },
    { label: 'Delete…', icon: 'trash', isDanger: true, onChoose: () => setDoing('deleting') },
  ]
  const { agent_provider: provider, model } = details
  return (
    <header class="chat-head">
      <div class="chat-title">
        {doing === 'renaming' ? (
          <TitleForm
            conversation={conversation}
            onDone={() => {
              setDoing(undefined)
              onChange()
            }}
          />
        ) : (
          <h1>
            {mayChange ? (
              <button type="button" class="title" title="Rename" onClick={() => setDoing('renaming')}>
                {titleOf(conversation)}
              </button>
            ) : (
              titleOf(conversation)
            )}
          </h1>
        )}
        <span class="chat-place">
          {isPinned && <Icon name="pin" />}
          {isArchived && 'Archived · '}
          {placeOf(conversation)}
        </span>
      </div>
      <div class="chat-tools">
        <ErrorWords words={error} />
        <StateWords conversation={conversation} />
        <button type="button" class="quiet" title="Agent and session" onClick={onChoose}>
          <Icon name="agent" />
          <span class="hidden">Agent and session: </span>
          <span class="chat-agent">
            {agentName(provider)}
            {model !== null && ` · ${model}`}
          </span>
        </button>
        {changedFiles > 0 && (
          <button type="button" class="quiet" aria-pressed={isShowingChanges} onClick={onShowChanges}>
            <Icon name="file" />
            <span class="chat-word">Changes</span> {changedFiles}
          </button>
        )}
        {mayChange && <Menu label="More actions" items={items} />}
      </div>
      {doing === 'deleting' && <Deletion conversation={conversation} onClose={() => setDoing(undefined)} />}
    </header>
  )
}

function StateWords({ conversation }: { conversation: Conversation }) {
  const { run, asked, state, open, waits_until: until } = conversation
  const more = open > 1 && <span class="muted"> · {open - 1} queued</span>
  if (asked > 0)
    return (
      <span class="chat-state warn">
        <span class="mark asked" /> <span class="chat-word">Waiting for you{more}</span>
      </span>
    )
  if (run)
    return (
      <span class="chat-state">
        <span class="mark running" /> <span class="chat-word">Working</span>{' '}
        <Duration from={Date.parse(run.started_at)} />
        <span class="chat-word">{more}</span>
      </span>
    )
  if (state !== 'waiting') return null
  return (
    <span class="chat-state">
      <span class="mark waiting" />{' '}
      {until !== null && Date.parse(until) > Date.now() + 5000 ? (
        <>
          Retrying <Time at={until} />
        </>
      ) : (
        'Waiting'
      )}
      {more}
    </span>
  )
}

/** Replaces the title. Contract: an empty title restores the first words. */
function TitleForm({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  const [title, setTitle] = useState(titleOf(conversation))
  const { run, isBusy, error } = useAction()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.select(), [])
  const save = (): void =>
    void run(() => api.conversations.update(conversation.id, { title: title.trim() || null })).then(
      (worked) => worked && onDone(),
    )
  return (
    <form
      class="together"
      onSubmit={(event) => {
        event.preventDefault()
        save()
      }}
    >
      <input
        ref={field}
        aria-label="Title"
        value={title}
        maxLength={LONGEST_TITLE}
        onInput={(event) => setTitle(event.currentTarget.value)}
        onKeyDown={(event) => event.key === 'Escape' && onDone()}
      />
      <button type="submit" disabled={isBusy}>
        Save
      </button>
      <ErrorWords words={error} />
    </form>
  )
}

function Deletion({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  return (
    <Dialog title="Delete this conversation?" onClose={onClose}>
      <div class="stack">
        <p>
          <strong>{titleOf(conversation)}</strong> and all its messages and runs will be permanently deleted. Files that
          the agent changed are kept.
        </p>
        <div class="dialog-end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="danger" onClick={() => void leaveAndDelete(conversation)}>
            Delete
          </button>
        </div>
      </div>
    </Dialog>
  )
}

/** Leaves first: the event stream may report the deletion before the response arrives, and the page would look for it. */
async function leaveAndDelete(conversation: Conversation): Promise<void> {
  const what = titleOf(conversation)
  location.hash = hrefOf('conversations')
  try {
    await api.conversations.remove(conversation.id)
    toast({ title: 'Deleted', what })
  } catch (error) {
    toast({ title: `Not deleted. ${wordsOf(error)}`, what, href: hrefOf('conversations', conversation.id) })
  }
}
