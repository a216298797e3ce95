import { useState } from 'preact/hooks'
import type { Agent, ConversationDetails, Project } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { channelName, titleOf } from '../conversation.js'
import { formProblems } from '../form-problems.js'
import { useMe } from '../me.js'
import { CapabilityList } from '../parts/capabilities.js'
import { ConfirmButton } from '../parts/confirm-button.js'
import { ErrorNote } from '../parts/error-note.js'
import { Field } from '../parts/field.js'
import { Money, Time } from '../parts/numbers.js'
import { Icon } from '../parts/icon.js'
import { Page } from '../parts/page.js'
import { ProjectSettingsFields, SETTING_FIELDS } from '../parts/project-settings.js'
import { Skeleton } from '../parts/skeleton.js'
import { Table } from '../parts/table.js'
import { changesOf, settingsOf, turnLimit } from '../project-form.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

const LISTED_SESSIONS = 10

export function ProjectPage({ id }: { id: string }) {
  const { value, error, reload } = useResource(async () => {
    const [project, agents] = await Promise.all([api.projects.get(id), api.agents.list()])
    return { project, agents }
  }, [id])
  const { scopes } = useMe()
  const isAdmin = scopes.includes('admin')
  const mayRun = scopes.includes('run')
  const mayChange = isAdmin && value !== undefined && value.project.source !== 'file'
  return (
    <Page
      title={value?.project.name ?? id}
      actions={
        <span class="row">
          <a class="button quiet" href={hrefOf('projects')}>
            All projects
          </a>
          {mayRun && value && (
            <a class="button primary" href={`${hrefOf('new')}?project=${encodeURIComponent(id)}`}>
              <Icon name="plus" />
              New conversation
            </a>
          )}
        </span>
      }
    >
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!value && error === undefined && <Skeleton />}
      {value && (
        <>
          <Facts project={value.project} />
          {mayChange && <SettingsForm key={value.project.updated_at} {...value} onSaved={reload} />}
          <Sessions id={id} />
          {isAdmin && (
            <section class="card stack" aria-label="Credentials">
              <h2>Credentials</h2>
              <p>
                Keys for this project only. <a href={hrefOf('credentials', id)}>Manage credentials</a>
              </p>
            </section>
          )}
          {mayChange && <Removal project={value.project} />}
        </>
      )}
    </Page>
  )
}

const ORIGINS = {
  file: 'Configuration file (edit it there)',
  api: 'Dashboard or API',
  cluster: 'Pod labels',
} as const

function Facts({ project }: { project: Project }) {
  const { pod } = project
  const tools = project.allowed_tools
  return (
    <section class="card stack" aria-label="Project details">
      <dl class="facts">
        <dt>ID</dt>
        <dd>
          <code>{project.id}</code>
        </dd>
        <dt>Folder</dt>
        <dd>
          <span class="path">{project.directory}</span>
          {pod && ` in the pod ${pod.name ?? pod.selector ?? ''}`}
        </dd>
        <dt>Defined in</dt>
        <dd>{ORIGINS[project.source]}</dd>
        <dt>Agent</dt>
        <dd>
          {agentName(project.agent_provider)}
          {project.model !== null && `, ${project.model}`}
        </dd>
        <dt>Tools</dt>
        <dd>{tools ? tools.join(', ') : 'All'}</dd>
        <dt>Limits</dt>
        <dd>
          {[project.timeout === null ? 'default time limit' : `${project.timeout} s`, turnLimit(project)].join(', ')}
        </dd>
      </dl>
      <CapabilityList capabilities={project.agent_capabilities} />
    </section>
  )
}

function SettingsForm({ project, agents, onSaved }: { project: Project; agents: Agent[]; onSaved: () => void }) {
  const [name, setName] = useState(project.name)
  const [settings, setSettings] = useState(() => settingsOf(project))
  const action = useAction()
  const problems = formProblems(action, ['name', ...SETTING_FIELDS])
  const changes = changesOf(project, name, settings)
  const isChanged = Object.keys(changes).length > 0
  return (
    <form
      class="card"
      aria-label="Settings"
      onSubmit={(event) => {
        event.preventDefault()
        void action.run(() => api.projects.update(project.id, changes)).then((worked) => worked && onSaved())
      }}
    >
      <h2>Settings</h2>
      {problems.words !== undefined && <ErrorNote words={problems.words} />}
      <Field label="Name" hint="Leave empty to use the ID." problem={problems.of('name')}>
        {(control) => <input {...control} value={name} onInput={(event) => setName(event.currentTarget.value)} />}
      </Field>
      <ProjectSettingsFields
        settings={settings}
        agents={agents}
        problems={problems}
        onChange={(changed) => setSettings((before) => ({ ...before, ...changed }))}
      />
      {'agent_provider' in changes && (
        <p class="note warn">Changing the agent starts new sessions, without the earlier context.</p>
      )}
      <div class="row">
        <button type="submit" class="primary" disabled={action.isBusy || !isChanged}>
          Save
        </button>
        {isChanged && (
          <button
            type="button"
            onClick={() => {
              setName(project.name)
              setSettings(settingsOf(project))
            }}
          >
            Reset
          </button>
        )}
      </div>
    </form>
  )
}

function Sessions({ id }: { id: string }) {
  const { value, error, reload } = useResource(() => sessionsOf(id), [id])
  return (
    <section class="card stack" aria-label="Conversations">
      <h2>Conversations</h2>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {value?.length === 0 && <p class="muted">No conversations yet.</p>}
      {value && value.length > 0 && (
        <Table
          folds
          caption="Latest conversations and their sessions"
          rows={value}
          keyOf={(conversation) => conversation.id}
          columns={[
            {
              title: 'Conversation',
              cell: ({ id: conversationId, title, channel }) => (
                <>
                  <a class="excerpt" href={hrefOf('conversations', conversationId)}>
                    {titleOf({ title })}
                  </a>
                  <div class="muted small">{channelName(channel)}</div>
                </>
              ),
            },
            {
              title: 'Session',
              cell: ({ session }) =>
                session ? (
                  <>
                    {agentName(session.provider)}
                    <div class="muted small path">{session.id}</div>
                  </>
                ) : (
                  <span class="muted">New session</span>
                ),
            },
            { title: 'Last used', cell: ({ session }) => (session ? <Time at={session.used_at} /> : '–') },
            { title: 'Runs', isNumber: true, cell: ({ usage }) => usage.runs },
            { title: 'Cost', isNumber: true, cell: ({ usage }) => <Money usd={usage.cost_usd} /> },
          ]}
        />
      )}
    </section>
  )
}

async function sessionsOf(project: string): Promise<ConversationDetails[]> {
  const { conversations } = await api.conversations.list({ project, limit: LISTED_SESSIONS })
  return Promise.all(conversations.map(({ id }) => api.conversations.get(id)))
}

function Removal({ project: { id, name } }: { project: Project }) {
  const [deletesFiles, setDeletesFiles] = useState(false)
  const { run, isBusy, error } = useAction()
  return (
    <section class="card stack" aria-label="Remove project">
      <h2>Remove project</h2>
      <p class="muted">Also removes its credentials and revokes token access to it. Conversations are kept.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={deletesFiles}
          onChange={(event) => setDeletesFiles(event.currentTarget.checked)}
        />
        Also delete its folder, if Aetheel created it
      </label>
      {error !== undefined && <ErrorNote words={error} />}
      <div class="row">
        <ConfirmButton
          disabled={isBusy}
          question={deletesFiles ? `Remove ${name} and permanently delete its files?` : `Remove ${name}?`}
          onConfirm={() =>
            void run(() => api.projects.remove(id, { deletesFiles })).then((worked) => {
              if (worked) location.hash = hrefOf('projects')
            })
          }
        >
          Remove
        </ConfirmButton>
      </div>
    </section>
  )
}
