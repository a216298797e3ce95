import { type ComponentType, Fragment } from 'preact'
import { agentName } from '../agent-names.js'
import { hrefOf } from '../router.js'
import { isDone, nextStep, type SetupState, type Step, STEPS } from '../setup-steps.js'
import { Commands } from './commands.js'

const TITLES: Record<Step, string> = {
  agent: 'Install an agent',
  project: 'Make a project',
  question: 'Ask something',
  channel: 'Let people reach it',
}

/** What is there, what comes next, and how. */
export function StepList({ state }: { state: SetupState }) {
  const next = nextStep(state)
  return (
    <>
      <p class="muted">
        {next === undefined
          ? 'Everything is set up.'
          : 'The gateway runs, and you are logged in. What comes next, one after the other:'}
      </p>
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
        A project is a directory with its agent. <a href={hrefOf('projects', '+')}>Make one</a> from a template, a
        directory or a repository.
      </p>
    ),
  question: ({ isDone }) =>
    isDone ? (
      <p class="muted">An agent has answered.</p>
    ) : (
      <>
        <p>
          <a href={hrefOf('conversations')}>Write to it here</a>, or in a terminal:
        </p>
        <Commands>aetheel chat</Commands>
      </>
    ),
  channel: ({ state, isDone }) =>
    isDone ? (
      <p class="muted">{state.channels.join(', ')}</p>
    ) : (
      <>
        <p>
          Discord: <code>init</code> asks for what is needed and writes the settings, <code>doctor</code> checks them.
          Then start the gateway anew.
        </p>
        <Commands>{'aetheel init\naetheel doctor\naetheel start'}</Commands>
        <p class="muted">
          WhatsApp, by Twilio: set what <code>docs/whatsapp.md</code> names, then the same <code>doctor</code> and{' '}
          <code>start</code>.
        </p>
      </>
    ),
}

function InstalledAgents({ state: { agents } }: { state: SetupState }) {
  const available = agents.filter(({ status }) => status === 'available')
  return (
    <p>
      <a href={hrefOf('agents')}>{available.map(({ provider }) => agentName(provider)).join(', ')}</a>
    </p>
  )
}

function MissingAgents({ state: { agents } }: { state: SetupState }) {
  return (
    <>
      <p>
        One is enough, on the machine of the gateway. Log in to it there, or give it its key under{' '}
        <a href={hrefOf('credentials')}>Credentials</a>. Then look again: a look is good for a minute.
      </p>
      <dl class="facts">
        {agents.map(({ provider, install, login, problems }) => (
          <Fragment key={provider}>
            <dt>{agentName(provider)}</dt>
            <dd>
              {login?.state === 'logged-out' && <Commands>{login.fix}</Commands>}
              {login?.state === 'logged-out' && login.next !== null && `There, ${login.next}.`}
              {install === null ? problems.join(' ') : <Commands>{install}</Commands>}
            </dd>
          </Fragment>
        ))}
      </dl>
      <p>This says the same, and more:</p>
      <Commands>aetheel doctor</Commands>
    </>
  )
}
