import type { Agent } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { CapabilityList } from '../parts/capabilities.js'
import { Commands } from '../parts/commands.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Page } from '../parts/page.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

export function AgentsPage() {
  const { value: agents, error, isLoading, reload } = useResource(() => api.agents.list(), [])
  return (
    <Page
      title="Agents"
      actions={
        <button type="button" disabled={isLoading} onClick={reload}>
          Look again
        </button>
      }
    >
      <p class="muted">
        What is installed on the machine of the gateway, as <code>aetheel doctor</code> sees it. A look is good for a
        minute.
      </p>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!agents && isLoading && <p class="muted">Asking the agents for their versions…</p>}
      {agents?.length === 0 && <EmptyState title="No agent is registered." />}
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

/** Those that can be used first, of these the one of new projects. */
function rank({ status, is_default: isDefault }: Agent): number {
  return (status === 'available' ? 0 : 2) + (isDefault ? 0 : 1)
}

function AgentState({ agent: { status, install, login } }: { agent: Agent }) {
  if (status === 'unavailable')
    return <span class="state muted">{install === null ? 'Not available' : 'Not installed'}</span>
  if (login?.state === 'logged-out') return <span class="state bad">Not logged in</span>
  return <span class="state good">Available</span>
}

/** How to log in, unless it surely is. */
function LoginNote({ login: { state, why, fix, next } }: { login: NonNullable<Agent['login']> }) {
  if (state === 'logged-in') return null
  return (
    <>
      <p class={`note ${state === 'logged-out' ? 'warn' : ''}`}>
        {why ?? 'It is not logged in, and cannot answer.'} To log in, on the machine of the gateway:
      </p>
      <Commands>{fix}</Commands>
      {next !== null && <p class="note">There, {next}.</p>}
    </>
  )
}

function AgentCard({ agent, onChanged }: { agent: Agent; onChanged: () => void }) {
  const { provider, status, version, install, login, model, problems, mode, is_default: isDefault } = agent
  const { why_not_live: whyNotLive } = agent
  // Where it is only to be installed, the command says it all.
  const isMissing = status === 'unavailable' && install !== null
  const notes = isMissing ? [] : [...problems, ...(whyNotLive === null ? [] : [whyNotLive])]
  const { run, isBusy, error } = useAction()
  const mayChange = useMe().scopes.includes('admin')
  const name = agentName(provider)
  return (
    <article class="card stack" aria-label={name}>
      <header class="row spread">
        <h2>{name}</h2>
        <AgentState agent={agent} />
      </header>
      <dl class="facts">
        <dt>Version</dt>
        <dd>{version ?? '–'}</dd>
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
            <dd>{mode === 'live' ? 'stays for the next message' : 'started for each message'}</dd>
          </>
        )}
        <dt>New projects</dt>
        <dd class="row">
          {isDefault ? 'get this agent' : 'get another one'}
          {mayChange && !isDefault && status === 'available' && (
            <button
              type="button"
              disabled={isBusy}
              onClick={() => void run(async () => api.agents.setDefault(provider).then(onChanged))}
            >
              Give them this one<span class="hidden">: {name}</span>
            </button>
          )}
        </dd>
      </dl>
      {error !== undefined && <ErrorNote words={error} />}
      {login && <LoginNote login={login} />}
      {install !== null && <Commands>{install}</Commands>}
      {notes.map((words) => (
        <p key={words} class={`note ${status === 'available' ? '' : 'warn'}`}>
          {words}
        </p>
      ))}
      <CapabilityList capabilities={agent.capabilities} />
    </article>
  )
}
