import { useState } from 'preact/hooks'
import type { Credential } from '../../../src/client/aetheel-client.js'
import type { PageProps } from '../frame/pages.js'
import { api } from '../api.js'
import { formProblems } from '../form-problems.js'
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

/** Contract: a value is sent to the gateway and not kept; the gateway never sends one back. */
export function CredentialsPage({ route }: PageProps) {
  const projectId = route.parts[0]
  return (
    <Page title="Credentials" isNarrow actions={<OwnerChoice projectId={projectId} />}>
      <p class="muted">
        Environment variables and files for the agents{projectId !== undefined && ' of this project'}. Values are stored
        encrypted and never shown again.
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
      Scope
      <select
        value={projectId ?? ''}
        onChange={({ currentTarget: { value } }) => {
          location.hash = value === '' ? hrefOf('credentials') : hrefOf('credentials', value)
        }}
      >
        <option value="">All projects</option>
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
    { title: 'Changed', cell: ({ updated_at: at }) => <Time at={at} /> },
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
      {value?.length === 0 && (
        <EmptyState icon="key" title="No credentials yet">
          Add a key that your agents need, such as ANTHROPIC_API_KEY.
        </EmptyState>
      )}
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

const KINDS = { variable: 'Variable', file: 'File' } as const

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

/** Adds a credential, or replaces the value of one. */
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
      class="card"
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
                The environment variable, such as <code>ANTHROPIC_API_KEY</code>.
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
                <option value="variable">Variable: holds the value</option>
                <option value="file">File: holds the path to a file with the value</option>
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
          hint="A text file, such as a PEM key or JSON."
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
            Cancel
          </button>
        )}
      </div>
    </form>
  )
}
