import { useId, useState } from 'preact/hooks'
import type { Agent, ConversationChanges, ConversationDetails } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { Dialog } from '../parts/dialog.js'
import { ErrorNote } from '../parts/error-note.js'
import { ModelSuggestions } from '../parts/model-suggestions.js'
import { Money, Time, Tokens } from '../parts/numbers.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'
import { AgentOptions, NO_PROJECT, ProjectOptions } from './options.js'

type QueueMode = ConversationDetails['queue_mode']

/** What happens to a message sent while the agent works. */
const QUEUE_MODES: Record<QueueMode, string> = {
  followup: 'Queue, one turn each',
  collect: 'Queue, combined into one turn',
  interrupt: 'Interrupt the agent',
  steer: 'Steer the running agent',
}

interface ConversationProps {
  details: ConversationDetails
  mayChange: boolean
  onChange: () => void
}

/** A conversation's agent, directory and session, and what can be changed about them. */
export function AgentAndSession({ onClose, ...props }: ConversationProps & { onClose: () => void }) {
  const { agent_provider: provider, model, directory, usage } = props.details
  return (
    <Dialog title="Agent and session" onClose={onClose}>
      <div class="stack">
        <dl class="facts">
          <dt>Agent</dt>
          <dd>
            {agentName(provider)}
            {model !== null && ` · ${model}`}
          </dd>
          <dt>Directory</dt>
          <dd class="path">{directory}</dd>
          {usage.runs > 0 && (
            <>
              <dt>Usage</dt>
              <dd>
                {usage.runs} {usage.runs === 1 ? 'run' : 'runs'}
                {usage.input_tokens + usage.output_tokens > 0 && (
                  <>
                    {' '}
                    · <Tokens usage={usage} />
                  </>
                )}
                {usage.cost_usd !== null && (
                  <>
                    {' '}
                    · <Money usd={usage.cost_usd} />
                  </>
                )}
              </dd>
            </>
          )}
        </dl>
        <Choices {...props} />
      </div>
    </Dialog>
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
      return 'Saved for the next message.'
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
              Session <code>{session.id}</code>, last used <Time at={session.used_at} />
            </>
          ) : (
            'The next message starts a new session.'
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
  const none = own === null ? (projectId === null ? NO_PROJECT : 'Where it started') : undefined
  // Waiting messages were sent to the current project.
  const isMovable = channel !== 'http' && open === 0
  return (
    <>
      <label>
        Project
        <select
          value={projectId ?? ''}
          disabled={isBusy || !isMovable}
          title={isMovable ? undefined : 'Can only be changed when nothing is running or waiting.'}
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
        Messages sent while the agent works
        <select
          value={chosen.queue_mode ?? ''}
          disabled={isBusy}
          onChange={({ currentTarget: { value } }) =>
            onChoose({ queue_mode: value in QUEUE_MODES ? (value as QueueMode) : null })
          }
        >
          <option value="">
            {chosen.queue_mode === null ? `Default: ${QUEUE_MODES[queueMode].toLowerCase()}` : 'Default'}
          </option>
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
        <span class="together">
          <input
            list={suggestions}
            value={model}
            maxLength={200}
            placeholder="Default"
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

/** Sessions that the conversation can resume. */
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
              <Time at={used.used_at} /> · {agentName(used.provider)} · <span class="muted">{used.question}</span>
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
