import { useId, useState } from 'preact/hooks'
import type { Agent, ConversationChanges, ConversationDetails } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { ErrorNote } from '../parts/error-note.js'
import { ModelSuggestions } from '../parts/model-suggestions.js'
import { Time } from '../parts/numbers.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'
import { AgentOptions, NO_PROJECT, ProjectOptions } from './options.js'

type QueueMode = ConversationDetails['queue_mode']

/** What becomes of a message that comes while the agent works. */
const QUEUE_MODES: Record<QueueMode, string> = {
  followup: 'waits for its own turn',
  collect: 'shares a turn with all that wait',
  interrupt: 'ends what runs',
  steer: 'is told to the agent at once',
}

interface ConversationProps {
  details: ConversationDetails
  mayChange: boolean
  onChange: () => void
}

/** Who answers in a conversation, where, and in which session; and what of that can be chosen. */
export function AgentAndSession(props: ConversationProps) {
  const [isOpen, setIsOpen] = useState(false)
  const { agent_provider: provider, model, directory, session } = props.details
  return (
    <details class="chat-agent" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <span>Agent and session</span>
        <span class="muted">
          {provider}
          {model === null ? '' : ` · ${model}`} · {directory}
          {session === null && ' · the next message begins a session'}
        </span>
      </summary>
      {isOpen && <Choices {...props} />}
    </details>
  )
}

function Choices({ details, mayChange, onChange }: ConversationProps) {
  const { id, chosen, session } = details
  const { run, isBusy, error } = useAction()
  const { value: agents = [] } = useResource(() => api.agents.list(), [])
  const agent = agents.find(({ provider }) => provider === details.agent_provider)
  const [done, setDone] = useState('')
  const act = (work: () => Promise<string>): void => {
    setDone('')
    void run(async () => {
      setDone(await work())
      onChange()
    })
  }
  const change = (changes: ConversationChanges): void =>
    act(async () => {
      await api.conversations.update(id, changes)
      return 'Chosen for the next message.'
    })
  return (
    <div class="chat-choices">
      {mayChange && <Selects details={details} agents={agents} isBusy={isBusy} onChoose={change} />}
      {mayChange && (
        <ModelForm key={chosen.model} chosen={chosen.model} agent={agent} isBusy={isBusy} onChoose={change} />
      )}
      <div class="chat-session">
        <span>
          {session ? (
            <>
              Session <code>{session.id}</code>, used <Time at={session.used_at} />
            </>
          ) : (
            'The next message begins a session.'
          )}
        </span>
        {mayChange && (
          <button
            type="button"
            disabled={isBusy || session === null}
            onClick={() => act(async () => (await api.conversations.newSession(id)).text)}
          >
            New session
          </button>
        )}
      </div>
      <p class="muted" role="status">
        {done}
      </p>
      {error !== undefined && <ErrorNote words={error} />}
      <Sessions
        details={details}
        mayChange={mayChange && !isBusy}
        onResume={(sessionId) => act(async () => (await api.conversations.resume(id, sessionId)).text)}
      />
    </div>
  )
}

interface ChoiceProps {
  isBusy: boolean
  onChoose: (changes: ConversationChanges) => void
}

function Selects({
  details,
  agents,
  isBusy,
  onChoose,
}: ChoiceProps & { details: ConversationDetails; agents: Agent[] }) {
  const { projects: own } = useMe()
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const { chosen, project_id: projectId, channel, open, queue_mode: queueMode } = details
  const none = own === null ? (projectId === null ? NO_PROJECT : 'Where it was begun') : undefined
  // What waits was sent to the project as it is.
  const isMovable = channel !== 'http' && open === 0
  return (
    <>
      <label>
        Project
        <select
          value={projectId ?? ''}
          disabled={isBusy || !isMovable}
          title={isMovable ? undefined : 'It can be changed when nothing runs or waits.'}
          onChange={({ currentTarget: { value } }) => onChoose({ project_id: value === '' ? null : value })}
        >
          <ProjectOptions projects={projects} chosen={projectId} none={none} />
        </select>
      </label>
      <label>
        Agent
        <select
          value={chosen.agent_provider ?? ''}
          disabled={isBusy}
          onChange={({ currentTarget: { value } }) =>
            onChoose({ agent_provider: agents.find(({ provider }) => provider === value)?.provider ?? null })
          }
        >
          <AgentOptions agents={agents} />
        </select>
      </label>
      <label>
        A message while the agent works
        <select
          value={chosen.queue_mode ?? ''}
          disabled={isBusy}
          onChange={({ currentTarget: { value } }) =>
            onChoose({ queue_mode: value in QUEUE_MODES ? (value as QueueMode) : null })
          }
        >
          <option value="">{chosen.queue_mode === null ? QUEUE_MODES[queueMode] : 'as the gateway has it'}</option>
          {Object.entries(QUEUE_MODES).map(([mode, words]) => (
            <option key={mode} value={mode}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </>
  )
}

function ModelForm({
  chosen,
  agent,
  isBusy,
  onChoose,
}: ChoiceProps & { chosen: string | null; agent: Agent | undefined }) {
  const suggestions = useId()
  const [model, setModel] = useState(chosen ?? '')
  const wanted = model.trim()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onChoose({ model: wanted === '' ? null : wanted })
      }}
    >
      <label>
        Model
        <span class="row">
          <input
            list={suggestions}
            value={model}
            maxLength={200}
            placeholder="The agent's own"
            onInput={(event) => setModel(event.currentTarget.value)}
          />
          <ModelSuggestions id={suggestions} agent={agent} />
          <button type="submit" disabled={isBusy || wanted === (chosen ?? '')}>
            Set
          </button>
        </span>
      </label>
    </form>
  )
}

/** Those that the conversation could go on in. */
function Sessions({
  details: { id, session, project_id: projectId, agent_provider: provider },
  mayChange,
  onResume,
}: {
  details: ConversationDetails
  mayChange: boolean
  onResume: (sessionId: string) => void
}) {
  const { value, error, reload } = useResource(
    () => api.conversations.sessions(id),
    [id, session?.id, session?.used_at, projectId, provider],
  )
  if (error !== undefined) return <ErrorNote words={error} onRetry={reload} />
  const earlier = (value ?? []).filter(({ is_current: isCurrent }) => !isCurrent)
  if (earlier.length === 0) return null
  return (
    <section class="chat-session" aria-label="Earlier sessions">
      <h3>Earlier sessions</h3>
      <ul class="chat-sessions">
        {earlier.map((used) => (
          <li key={`${used.provider}:${used.id}`}>
            <span>
              <Time at={used.used_at} /> · {used.provider} · <span class="muted">{used.question}</span>
            </span>
            {mayChange && (
              <button type="button" title={used.id} onClick={() => onResume(used.id)}>
                Resume
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
