import { useState } from 'preact/hooks'
import type { AuditEntry, CreatedToken, NewToken, Token } from '../../../src/client/aetheel-client.js'
import { api, wordsOf } from '../api.js'
import { formProblems } from '../form-problems.js'
import { ConfirmButton } from '../parts/confirm-button.js'
import { ErrorNote, ErrorWords } from '../parts/error-note.js'
import { Field, TextField } from '../parts/field.js'
import { Icon } from '../parts/icon.js'
import { Time } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { type Column, Table } from '../parts/table.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

/** For admins: who may use the API and the dashboard, and who changed what. */
export function SettingsPage() {
  return (
    <Page title="Settings">
      <Tokens />
      <AuditLog />
    </Page>
  )
}

const SCOPES: Record<Token['scope'], string> = {
  read: 'Read: view only',
  run: 'Run: send and approve',
  admin: 'Admin: full access',
}

function Tokens() {
  const { value, error, reload } = useResource(() => api.tokens.list(), [])
  const [created, setCreated] = useState<CreatedToken>()
  const columns: Array<Column<Token>> = [
    {
      title: 'Name',
      cell: ({ name, is_current: isCurrent }) => (
        <>
          {name} {isCurrent && <span class="badge plain">Current</span>}
        </>
      ),
    },
    { title: 'Scope', cell: ({ scope }) => scope },
    { title: 'Projects', cell: ({ projects }) => projects?.join(', ') ?? 'All' },
    { title: 'Last used', cell: ({ last_used_at: at }) => (at === null ? 'Never' : <Time at={at} />) },
    { title: 'Expires', cell: ({ expires_at: at }) => (at === null ? 'Never' : <Time at={at} />) },
    { title: 'Actions', cell: (token) => <Revoke token={token} onRevoked={reload} /> },
  ]
  return (
    <section class="card stack" aria-label="Tokens">
      <h2>Tokens</h2>
      <p class="muted small">
        Give each person and program its own token. The value is shown once, when the token is created.
      </p>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!value && error === undefined && <Skeleton lines={3} />}
      {value && value.length > 0 && (
        <Table folds caption="All tokens" columns={columns} rows={value} keyOf={({ id }) => id} />
      )}
      {created && <Created token={created} onDone={() => setCreated(undefined)} />}
      <TokenForm
        onCreated={(token) => {
          setCreated(token)
          reload()
        }}
      />
    </section>
  )
}

function Revoke({ token: { id, name, is_current: isCurrent }, onRevoked }: { token: Token; onRevoked: () => void }) {
  const { run, isBusy, error } = useAction()
  if (isCurrent) return <span class="muted">–</span>
  return (
    <span class="row">
      <ConfirmButton
        question={`Revoke ${name}?`}
        disabled={isBusy}
        onConfirm={() => void run(() => api.tokens.remove(id)).then((worked) => worked && onRevoked())}
      >
        Revoke
      </ConfirmButton>
      <ErrorWords words={error} />
    </span>
  )
}

/** Contract: the value exists only on this page, and only until it is dismissed. */
function Created({ token: { name, token }, onDone }: { token: CreatedToken; onDone: () => void }) {
  const { clipboard } = navigator as Partial<Navigator>
  const [isCopied, setIsCopied] = useState(false)
  return (
    <div class="note warn" role="status">
      <p>
        Copy the token <strong>{name}</strong> now. It will not be shown again.
      </p>
      <div class="secret">
        <pre class="code wrapped">{token}</pre>
        {clipboard && (
          <button type="button" onClick={() => void clipboard.writeText(token).then(() => setIsCopied(true))}>
            <Icon name={isCopied ? 'check' : 'copy'} />
            {isCopied ? 'Copied' : 'Copy'}
          </button>
        )}
        <button type="button" onClick={onDone}>
          Done
        </button>
      </div>
    </div>
  )
}

function TokenForm({ onCreated }: { onCreated: (token: CreatedToken) => void }) {
  const [name, setName] = useState('')
  const [scope, setScope] = useState<Token['scope']>('run')
  const [project, setProject] = useState('')
  const [days, setDays] = useState('')
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const action = useAction()
  const problems = formProblems(action, ['name', 'scope', 'projects', 'days'])
  const create = async (): Promise<void> => {
    const wanted: NewToken = {
      name: name.trim(),
      scope,
      ...(project !== '' && { projects: [project] }),
      ...(days.trim() !== '' && { days: Number(days) }),
    }
    const worked = await action.run(async () => onCreated(await api.tokens.create(wanted)))
    if (worked) setName('')
  }
  return (
    <form
      aria-label="Create a token"
      onSubmit={(event) => {
        event.preventDefault()
        void create()
      }}
    >
      {problems.words !== undefined && <ErrorNote words={problems.words} />}
      <div class="columns">
        <TextField
          label="Name"
          hint="Who or what it is for."
          problem={problems.of('name')}
          isRequired
          value={name}
          onInput={setName}
        />
        <Field label="Scope" problem={problems.of('scope')}>
          {(control) => (
            <select
              {...control}
              value={scope}
              onChange={({ currentTarget: { value } }) => setScope(value in SCOPES ? (value as Token['scope']) : 'run')}
            >
              {Object.entries(SCOPES).map(([key, words]) => (
                <option key={key} value={key}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Project" problem={problems.of('projects')}>
          {(control) => (
            <select {...control} value={project} onChange={(event) => setProject(event.currentTarget.value)}>
              <option value="">All projects</option>
              {projects.map(({ id, name: title }) => (
                <option key={id} value={id}>
                  {title}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextField
          label="Expires after (days)"
          hint="Leave empty for no expiry."
          problem={problems.of('days')}
          step="1"
          value={days}
          onInput={setDays}
        />
      </div>
      <div class="row">
        <button type="submit" class="primary" disabled={action.isBusy}>
          Create token
        </button>
      </div>
    </form>
  )
}

const AUDIT_COLUMNS: Array<Column<AuditEntry>> = [
  { title: 'When', cell: ({ at }) => <Time at={at} /> },
  { title: 'Who', cell: ({ actor }) => <span class="words">{actorName(actor)}</span> },
  { title: 'Action', cell: ({ action }) => action },
  {
    title: 'Subject',
    cell: ({ subject, detail }) => (
      <span class="words">
        {subject}
        {detail !== null && <span class="muted"> · {detail}</span>}
      </span>
    ),
  },
]

/** The name in "token:ID NAME", or the actor as it is. */
function actorName(actor: string): string {
  return actor.replace(/^token:\S+ /, '')
}

const ENTRIES_AT_ONCE = 25

function AuditLog() {
  const [older, setOlder] = useState<AuditEntry[]>([])
  const [next, setNext] = useState<string | null>()
  const [failed, setFailed] = useState<string>()
  const { value, error, reload } = useResource(() => api.audit({ limit: ENTRIES_AT_ONCE }), [])
  const before = next === undefined ? value?.next : next
  const loadMore = (from: string): void => {
    setFailed(undefined)
    api.audit({ limit: ENTRIES_AT_ONCE, before: from }).then(
      (page) => {
        setOlder([...older, ...page.entries])
        setNext(page.next)
      },
      (problem: unknown) => setFailed(wordsOf(problem)),
    )
  }
  return (
    <section class="card stack" aria-label="Audit log">
      <h2>Audit log</h2>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!value && error === undefined && <Skeleton lines={5} />}
      {value && (
        <Table
          folds
          caption="Who changed what, newest first"
          columns={AUDIT_COLUMNS}
          rows={[...value.entries, ...older].map((entry, index) => ({ ...entry, index }))}
          keyOf={({ index }) => index}
        />
      )}
      <ErrorWords words={failed} />
      {before !== null && before !== undefined && (
        <div>
          <button type="button" onClick={() => loadMore(before)}>
            Show older entries
          </button>
        </div>
      )}
    </section>
  )
}
