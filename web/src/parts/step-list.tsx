import { type ComponentType, Fragment } from 'preact'
import { agentName, nameOfAgent } from '../agent-names.js'
import { channelName } from '../conversation.js'
import { hrefOf } from '../router.js'
import { isDone, nextStep, type SetupState, type Step, STEPS } from '../setup-steps.js'
import { Commands } from './commands.js'

const TITLES: Record<Step, string> = {
  agent: 'Install an agent',
  project: 'Create a project',
  question: 'Ask something',
  channel: 'Connect a chat app',
}

/** The setup steps: which are done, which is next, and how to do it. */
export function StepList({ state }: { state: SetupState }) {
  const next = nextStep(state)
  return (
    <>
      <p class="muted">{next === undefined ? 'Everything is set up.' : 'The gateway is running. Next:'}</p>
      <ol class="steps">
        {STEPS.map((step) => {
          const Body = BODIES[step]
          const done = isDone(step, state)
          return (
            <li key={step} class={`card stack ${done ? 'done' : step === next ? 'next' : ''}`}>
              <h2>
                {TITLES[step]} <span class="step-state">{done ? 'Done' : step === next ? 'Next' : ''}</span>
              </h2>
              <Body state={state} isDone={done} />
            </li>
          )
        })}
      </ol>
    </>
  )
}

const BODIES: Record<Step, ComponentType<{ state: SetupState; isDone: boolean }>> = {
  agent: ({ state, isDone }) => (isDone ? <InstalledAgents state={state} /> : <MissingAgents state={state} />),
  project: ({ state, isDone }) =>
    isDone ? (
      <p>
        <a href={hrefOf('projects')}>{state.projects.map(({ name }) => name).join(', ')}</a>
      </p>
    ) : (
      <p>
        A project is a folder with an agent. <a href={hrefOf('projects', '+')}>Create one</a> from a template, an
        existing folder or a repository.
      </p>
    ),
  question: ({ isDone }) =>
    isDone ? (
      <p class="muted">An agent has answered.</p>
    ) : (
      <>
        <p>
          <a href={hrefOf('new')}>Start a conversation</a>, or use a terminal:
        </p>
        <Commands>aetheel chat</Commands>
      </>
    ),
  channel: ({ state, isDone }) =>
    isDone ? (
      <p class="muted">{state.channels.map(channelName).join(', ')}</p>
    ) : (
      <>
        <p>
          Discord: <code>init</code> sets it up, <code>doctor</code> checks it. Then restart the gateway.
        </p>
        <Commands>{'aetheel init\naetheel doctor\naetheel start'}</Commands>
        <p class="muted">
          WhatsApp through Twilio: see <code>docs/whatsapp.md</code>.
        </p>
      </>
    ),
}

function InstalledAgents({ state: { agents } }: { state: SetupState }) {
  const available = agents.filter(({ status }) => status === 'available')
  return (
    <p>
      <a href={hrefOf('agents')}>{available.map(nameOfAgent).join(', ')}</a>
    </p>
  )
}

function MissingAgents({ state: { agents } }: { state: SetupState }) {
  return (
    <>
      <p>
        One is enough. Install it on the gateway's machine and log in there, or add its key under{' '}
        <a href={hrefOf('credentials')}>Credentials</a>. Then refresh; agents are checked once a minute.
      </p>
      <dl class="facts">
        {agents.map(({ provider, install, login, problems }) => (
          <Fragment key={provider}>
            <dt>{agentName(provider)}</dt>
            <dd>
              {login?.state === 'logged-out' && <Commands>{login.fix}</Commands>}
              {login?.state === 'logged-out' && login.next !== null && `Then ${login.next}.`}
              {install === null ? problems.join(' ') : <Commands>{install}</Commands>}
            </dd>
          </Fragment>
        ))}
      </dl>
      <p>To check everything:</p>
      <Commands>aetheel doctor</Commands>
    </>
  )
}
