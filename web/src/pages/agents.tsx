import type { Agent } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { CapabilityList } from '../parts/capabilities.js'
import { Commands } from '../parts/commands.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

export function AgentsPage() {
  const { value: agents, error, isLoading, reload } = useResource(() => api.agents.list(), [])
  return (
    <Page
      title="Agents"
      actions={
        <button type="button" disabled={isLoading} onClick={reload}>
          Refresh
        </button>
      }
    >
      <p class="muted">
        The coding agents on the gateway's machine. Checked once a minute; <code>aetheel doctor</code> shows the same.
      </p>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!agents && isLoading && <Skeleton />}
      {agents?.length === 0 && <EmptyState icon="agent" title="No agents" />}
      {agents && (
        <div class="cards">
          {agents
            .toSorted((a, b) => rank(a) - rank(b))
            .map((agent) => (
              <AgentCard key={agent.provider} agent={agent} onChanged={reload} />
            ))}
        </div>
      )}
    </Page>
  )
}

/** Available agents first, and of those the default one. */
function rank({ status, is_default: isDefault }: Agent): number {
  return (status === 'available' ? 0 : 2) + (isDefault ? 0 : 1)
}

function AgentState({ agent: { status, install, login } }: { agent: Agent }) {
  if (status === 'unavailable')
    return <span class="state muted">{install === null ? 'Not working' : 'Not installed'}</span>
  if (login?.state === 'logged-out') return <span class="state bad">Not logged in</span>
  return <span class="state good">Ready</span>
}

/** How to log in, unless it is certain that the agent is logged in. */
function LoginNote({ login: { state, why, fix, next } }: { login: NonNullable<Agent['login']> }) {
  if (state === 'logged-in') return null
  return (
    <>
      <p class={`note ${state === 'logged-out' ? 'warn' : ''}`}>
        {why ?? 'Not logged in, so it cannot answer.'}{' '}
        {state === 'unknown' ? 'If it cannot answer, log in: run' : 'To log in, run'} this on the gateway's machine:
      </p>
      <Commands>{fix}</Commands>
      {next !== null && <p class="muted small">Then {next}.</p>}
    </>
  )
}

/** Under load, a CLI may answer too late. */
const NO_REASON = 'It did not answer in time. Refresh, or run "aetheel doctor" on the gateway\'s machine.'

function AgentCard({ agent, onChanged }: { agent: Agent; onChanged: () => void }) {
  const { provider, status, version, install, login, model, problems, mode, is_default: isDefault } = agent
  const { why_not_live: whyNotLive } = agent
  // If it only needs to be installed, the command is enough.
  const isMissing = status === 'unavailable' && install !== null
  const notes = isMissing ? [] : [...problems, ...(whyNotLive === null ? [] : [whyNotLive])]
  if (status === 'unavailable' && !isMissing && notes.length === 0) notes.push(NO_REASON)
  const { run, isBusy, error } = useAction()
  const mayChange = useMe().scopes.includes('admin')
  const name = agentName(provider)
  return (
    <article class="card stack" aria-label={name}>
      <header class="row spread">
        <h2>{name}</h2>
        <span class="row">
          {agent.is_demo && <span class="badge plain">Demo agent</span>}
          {isDefault && <span class="badge plain">Default</span>}
          <AgentState agent={agent} />
        </span>
      </header>
      <dl class="facts">
        <dt>Version</dt>
        <dd>{version ?? (isMissing ? 'Not installed' : 'Unknown')}</dd>
        {login?.state === 'logged-in' && (
          <>
            <dt>Logged in</dt>
            <dd>by {login.how}</dd>
          </>
        )}
        {model !== null && (
          <>
            <dt>Model</dt>
            <dd>{model}</dd>
          </>
        )}
        {mode !== null && (
          <>
            <dt>Process</dt>
            <dd>{mode === 'live' ? 'Kept warm between messages' : 'Started for each message'}</dd>
          </>
        )}
      </dl>
      {error !== undefined && <ErrorNote words={error} />}
      {login && <LoginNote login={login} />}
      {notes.map((words) => (
        <p key={words} class={`note ${status === 'available' ? '' : 'warn'}`}>
          {words}
        </p>
      ))}
      {install !== null && <Commands>{install}</Commands>}
      <CapabilityList capabilities={agent.capabilities} />
      {mayChange && !isDefault && status === 'available' && (
        <div>
          <button
            type="button"
            disabled={isBusy}
            title="New projects use the default agent"
            onClick={() => void run(async () => api.agents.setDefault(provider).then(onChanged))}
          >
            Set as default<span class="hidden">: {name}</span>
          </button>
        </div>
      )}
    </article>
  )
}
