import { useState } from 'preact/hooks'
import type { Credential } from '../../../src/client/aetheel-client.js'
import type { PageProps } from '../app.js'
import { api } from '../api.js'
import { formProblems } from '../form-problems.js'
import { useMe } from '../me.js'
import { ConfirmButton } from '../parts/confirm-button.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Field } from '../parts/field.js'
import { Time } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { type Column, Table } from '../parts/table.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

/** Contract: a value goes to the gateway and is forgotten; none comes back. */
export function CredentialsPage({ route }: PageProps) {
  const projectId = route.parts[0]
  if (!useMe().scopes.includes('admin')) {
    return (
      <Page title="Credentials">
        <EmptyState title="This token may not see credentials.">
          <p>
            It needs the scope <code>admin</code>: <code>aetheel tokens create --scope admin</code>
          </p>
        </EmptyState>
      </Page>
    )
  }
  return (
    <Page title="Credentials" actions={<OwnerChoice projectId={projectId} />}>
      <p class="muted">
        Keys and files that agents get in their environment
        {projectId !== undefined && ' when they work in this project'}. They are kept sealed; nobody can read them here
        again.
      </p>
      <Credentials key={projectId} projectId={projectId} />
    </Page>
  )
}

function OwnerChoice({ projectId }: { projectId: string | undefined }) {
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const isKnown = projectId === undefined || projects.some(({ id }) => id === projectId)
  return (
    <label class="inline">
      Of
      <select
        value={projectId ?? ''}
        onChange={({ currentTarget: { value } }) => {
          location.hash = value === '' ? hrefOf('credentials') : hrefOf('credentials', value)
        }}
      >
        <option value="">all projects</option>
        {!isKnown && <option value={projectId}>{projectId}</option>}
        {projects.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function Credentials({ projectId }: { projectId: string | undefined }) {
  const owner = projectId === undefined ? {} : { projectId }
  const { value, error, reload } = useResource(() => api.credentials.list(owner), [projectId])
  const [replaced, setReplaced] = useState<Credential>()
  const columns: Array<Column<Credential>> = [
    { title: 'Name', cell: ({ name }) => <code>{name}</code> },
    { title: 'Kind', cell: ({ kind }) => KINDS[kind] },
    { title: 'Set', cell: ({ updated_at: at }) => <Time at={at} /> },
    {
      title: 'Actions',
      cell: (credential) => (
        <CredentialActions
          credential={credential}
          onReplace={() => setReplaced(credential)}
          onRemoved={() => {
            setReplaced(undefined)
            reload()
          }}
        />
      ),
    },
  ]
  return (
    <>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {value?.length === 0 && <EmptyState title="There is no credential yet." />}
      {value && value.length > 0 && (
        <section class="card">
          <Table folds caption="Credentials" columns={columns} rows={value} keyOf={({ name }) => name} />
        </section>
      )}
      {value && (
        <CredentialForm
          key={replaced?.name}
          projectId={projectId}
          replaced={replaced}
          onDone={() => {
            setReplaced(undefined)
            reload()
          }}
          onBack={() => setReplaced(undefined)}
        />
      )}
    </>
  )
}

const KINDS = { variable: 'variable', file: 'file, named by the variable' } as const

function CredentialActions({
  credential: { name, project_id: projectId },
  onReplace,
  onRemoved,
}: {
  credential: Credential
  onReplace: () => void
  onRemoved: () => void
}) {
  const { run, isBusy, error } = useAction()
  return (
    <span class="row">
      <button type="button" aria-label={`Replace ${name}`} disabled={isBusy} onClick={onReplace}>
        Replace
      </button>
      <ConfirmButton
        question={`Remove ${name}?`}
        disabled={isBusy}
        onConfirm={() =>
          void run(() => api.credentials.remove(name, projectId === null ? {} : { projectId })).then(
            (worked) => worked && onRemoved(),
          )
        }
      >
        Remove
      </ConfirmButton>
      <ErrorWords words={error} />
    </span>
  )
}

/** Adds one, or replaces the value of one. */
function CredentialForm({
  projectId,
  replaced,
  onDone,
  onBack,
}: {
  projectId: string | undefined
  replaced: Credential | undefined
  onDone: () => void
  onBack: () => void
}) {
  const [name, setName] = useState(replaced?.name ?? '')
  const [kind, setKind] = useState<Credential['kind']>(replaced?.kind ?? 'variable')
  const [value, setValue] = useState('')
  const action = useAction()
  const problems = formProblems(action, ['name', 'value', 'kind'])
  const submit = async (): Promise<void> => {
    const owner = projectId === undefined ? {} : { projectId }
    if (!(await action.run(() => api.credentials.set(name.trim(), { value, kind }, owner)))) return
    setName('')
    setValue('')
    onDone()
  }
  return (
    <form
      class="card narrow"
      aria-label={replaced ? `Replace ${replaced.name}` : 'Add a credential'}
      autoComplete="off"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <h2>{replaced ? `Replace ${replaced.name}` : 'Add a credential'}</h2>
      {problems.words !== undefined && <ErrorNote words={problems.words} />}
      {!replaced && (
        <>
          <Field
            label="Name"
            hint={
              <>
                The variable that agents find it in, such as <code>ANTHROPIC_API_KEY</code>.
              </>
            }
            problem={problems.of('name')}
          >
            {(control) => (
              <input
                {...control}
                required
                maxLength={100}
                autoComplete="off"
                autoCapitalize="characters"
                spellcheck={false}
                value={name}
                onInput={(event) => setName(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Kind" problem={problems.of('kind')}>
            {(control) => (
              <select
                {...control}
                value={kind}
                onChange={(event) => {
                  setKind(event.currentTarget.value === 'file' ? 'file' : 'variable')
                  setValue('')
                }}
              >
                <option value="variable">Variable: the value itself</option>
                <option value="file">File: the variable names a file that holds it</option>
              </select>
            )}
          </Field>
        </>
      )}
      {kind === 'variable' ? (
        <Field label={replaced ? 'New value' : 'Value'} problem={problems.of('value')}>
          {(control) => (
            <input
              {...control}
              type="password"
              required
              autoComplete="off"
              value={value}
              onInput={(event) => setValue(event.currentTarget.value)}
            />
          )}
        </Field>
      ) : (
        <Field
          label={replaced ? 'New file' : 'File'}
          hint="Text, as a key or a JSON file."
          problem={problems.of('value')}
        >
          {(control) => (
            <input
              {...control}
              type="file"
              required
              onChange={({ currentTarget: { files } }) => void files?.[0]?.text().then(setValue)}
            />
          )}
        </Field>
      )}
      <div class="row">
        <button type="submit" class="primary" disabled={action.isBusy || value === ''}>
          {replaced ? 'Replace' : 'Add'}
        </button>
        {replaced && (
          <button type="button" onClick={onBack}>
            Back
          </button>
        )}
      </div>
    </form>
  )
}
