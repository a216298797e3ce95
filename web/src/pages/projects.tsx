import type { PageProps } from '../frame/pages.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Time } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { Table } from '../parts/table.js'
import { turnLimit } from '../project-form.js'
import { hrefOf } from '../router.js'
import { useResource } from '../use-resource.js'
import { NewProjectPage } from './new-project.js'
import { ProjectPage } from './project.js'

/** Not a valid project id: those begin with a letter or a digit. */
const NEW = '+'

export function ProjectsPage({ route: { parts } }: PageProps) {
  const [id] = parts
  if (id === NEW) return <NewProjectPage />
  return id === undefined ? <ProjectList /> : <ProjectPage key={id} id={id} />
}

function ProjectList() {
  const { value: projects, error, reload } = useResource(() => api.projects.list(), [])
  const mayChange = useMe().scopes.includes('admin')
  const create = (
    <a class="button primary" href={hrefOf('projects', NEW)}>
      New project
    </a>
  )
  return (
    <Page title="Projects" actions={mayChange && projects?.length !== 0 && create}>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {projects?.length === 0 && (
        <EmptyState icon="folder" title="No projects yet">
          <p>A project is a folder with an agent and its settings.</p>
          {mayChange && create}
        </EmptyState>
      )}
      {!projects && error === undefined && <Skeleton />}
      {projects && projects.length > 0 && (
        <section class="card">
          <Table
            folds
            caption="Projects"
            rows={projects}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Name',
                cell: ({ id, name }) => (
                  <>
                    <a class="where" href={hrefOf('projects', id)}>
                      {name}
                    </a>
                    {name !== id && <div class="muted small">{id}</div>}
                  </>
                ),
              },
              {
                title: 'Agent',
                cell: ({ agent_provider: provider, model }) => (
                  <>
                    {agentName(provider)}
                    {model !== null && <div class="muted small">{model}</div>}
                  </>
                ),
              },
              {
                title: 'Folder',
                cell: ({ directory, pod }) => (
                  <span class="path">
                    {directory}
                    {pod && <span class="muted"> in the pod {pod.name ?? pod.selector}</span>}
                  </span>
                ),
              },
              { title: 'Limits', cell: (project) => limitsOf(project).join(', ') },
              { title: 'Changed', cell: ({ updated_at: at }) => <Time at={at} /> },
            ]}
          />
        </section>
      )}
    </Page>
  )
}

type Limits = Pick<
  Awaited<ReturnType<typeof api.projects.get>>,
  'allowed_tools' | 'timeout' | 'max_turns' | 'agent_capabilities' | 'is_untrusted' | 'agent_permissions'
>

function limitsOf({ allowed_tools: tools, timeout, ...rest }: Limits): string[] {
  return [
    ...(tools ? [`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`] : []),
    ...(timeout === null ? [] : [`${timeout} s`]),
    turnLimit(rest),
    ...(rest.agent_permissions === 'ask' ? ['asks first'] : []),
    ...(rest.is_untrusted ? ['untrusted'] : []),
  ]
}
