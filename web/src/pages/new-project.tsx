import { useState } from 'preact/hooks'
import type { Template } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { type FormProblems, formProblems } from '../form-problems.js'
import { Commands } from '../parts/commands.js'
import { ErrorNote } from '../parts/error-note.js'
import { Field, TextField } from '../parts/field.js'
import { Page } from '../parts/page.js'
import { ProjectSettingsFields, SETTING_FIELDS } from '../parts/project-settings.js'
import { NEW_PROJECT, type NewProjectForm, newProjectOf, type Source } from '../project-form.js'
import { hrefOf } from '../router.js'
import { useAction } from '../use-action.js'
import { useResource } from '../use-resource.js'

const FIELDS = ['name', 'id', 'directory', 'git.url', 'git.ref', 'template', ...SETTING_FIELDS]

export function NewProjectPage() {
  const { value, error, reload } = useResource(async () => {
    const [templates, agents] = await Promise.all([api.templates(), api.agents.list()])
    return { templates, agents }
  }, [])
  const [form, setForm] = useState<NewProjectForm>(NEW_PROJECT)
  const action = useAction()
  const problems = formProblems(action, FIELDS)
  const change = (changes: Partial<NewProjectForm>): void => setForm((before) => ({ ...before, ...changes }))
  const submit = (templates: Template[]): void =>
    void action.run(async () => {
      const { id } = await api.projects.create(newProjectOf(form, templates))
      location.hash = hrefOf('projects', id)
    })
  return (
    <Page title="New project" isNarrow>
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {value && (
        <form
          class="card"
          aria-label="New project"
          onSubmit={(event) => {
            event.preventDefault()
            submit(value.templates)
          }}
        >
          {problems.words !== undefined && <ErrorNote words={problems.words} />}
          <div class="columns">
            <TextField
              label="Name"
              problem={problems.of('name')}
              isProse
              value={form.name}
              onInput={(name) => change({ name })}
            />
            <TextField
              label="ID"
              hint="Leave empty to derive it from the name."
              problem={problems.of('id')}
              value={form.id}
              onInput={(id) => change({ id })}
            />
          </div>
          <SourceFields
            form={form}
            templates={value.templates}
            problems={problems}
            words={action.error}
            onChange={change}
          />
          <details class="advanced" open={SETTING_FIELDS.some((field) => problems.of(field) !== undefined)}>
            <summary>Agent and limits</summary>
            <div class="stack">
              <ProjectSettingsFields settings={form} agents={value.agents} problems={problems} onChange={change} />
            </div>
          </details>
          <div class="row">
            <button type="submit" class="primary" disabled={action.isBusy}>
              {action.isBusy ? 'Creating…' : 'Create project'}
            </button>
            <a class="button quiet" href={hrefOf('projects')}>
              Cancel
            </a>
          </div>
        </form>
      )}
    </Page>
  )
}

const SOURCE_WORDS: Array<[Source, string]> = [
  ['template', 'Template'],
  ['directory', 'Existing folder'],
  ['git', 'Git repository'],
]

interface FormProps {
  form: NewProjectForm
  templates: Template[]
  problems: FormProblems
  /** The error above the form. */
  words: string | undefined
  onChange: (changes: Partial<NewProjectForm>) => void
}

function SourceFields(props: FormProps) {
  const { form, problems, onChange } = props
  return (
    <>
      <fieldset>
        <legend>Start from</legend>
        <div class="row">
          {SOURCE_WORDS.map(([source, words]) => (
            <label key={source} class="check">
              <input
                type="radio"
                name="source"
                checked={form.source === source}
                onChange={() => onChange({ source })}
              />
              {words}
            </label>
          ))}
        </div>
      </fieldset>
      {form.source === 'directory' && <FolderField {...props} />}
      {form.source === 'git' && (
        <div class="columns">
          <TextField
            label="Repository URL"
            hint="A URL that git can clone."
            problem={problems.of('git.url')}
            isRequired
            value={form.gitUrl}
            onInput={(gitUrl) => onChange({ gitUrl })}
          />
          <TextField
            label="Branch or tag"
            hint="Leave empty for the default branch."
            problem={problems.of('git.ref')}
            value={form.gitRef}
            onInput={(gitRef) => onChange({ gitRef })}
          />
        </div>
      )}
      {form.source === 'template' && <TemplateFields {...props} />}
    </>
  )
}

/** Finds the roots in the gateway's error about a folder outside them, to suggest a setting that would allow it. */
const OUTSIDE = /the project roots \(([^)]*)\)/

function FolderField({ form, problems, words, onChange }: FormProps) {
  const roots = OUTSIDE.exec([problems.of('directory'), words].join(' '))?.[1]
  return (
    <>
      <TextField
        label="Folder"
        hint="The absolute path on the gateway's machine, such as /home/ada/shop."
        problem={problems.of('directory')}
        isRequired
        value={form.directory}
        onInput={(directory) => onChange({ directory })}
      />
      {roots !== undefined && (
        <div class="note warn" role="note">
          <p>
            Agents can only work in folders under <code>{roots}</code>. Move or clone the folder there, or to allow this
            one, set <code>PROJECT_ROOTS</code> and restart the gateway.
          </p>
          <Commands>{`PROJECT_ROOTS="${roots.replaceAll(', ', ',')},${parentOf(form.directory)}"`}</Commands>
        </div>
      )}
    </>
  )
}

function parentOf(directory: string): string {
  return directory.replace(/\/+$/, '').replace(/\/[^/]*$/, '') || '/'
}

function TemplateFields({ form, templates, problems, onChange }: FormProps) {
  const chosen = templates.find(({ name }) => name === form.template)
  return (
    <>
      <Field label="Template" hint={chosen?.description} problem={problems.of('template')}>
        {(control) => (
          <select
            {...control}
            required
            value={form.template}
            onChange={(event) => onChange({ template: event.currentTarget.value })}
          >
            <option value="">Choose a template</option>
            {templates.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {chosen && chosen.variables.length > 0 && (
        <div class="columns">
          {chosen.variables.map((variable) => (
            <Field key={variable.name} label={variable.name} hint={variable.description}>
              {(control) => (
                <input
                  {...control}
                  required={variable.default === null}
                  placeholder={variable.default ?? ''}
                  spellcheck={false}
                  value={form.variables[variable.name] ?? ''}
                  onInput={({ currentTarget: { value } }) =>
                    onChange({ variables: { ...form.variables, [variable.name]: value } })
                  }
                />
              )}
            </Field>
          ))}
        </div>
      )}
    </>
  )
}
