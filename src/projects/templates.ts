// Each template is a directory with a `template.json5` that declares its variables.

import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import JSON5 from 'json5'
import { z } from 'zod'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { fillPlaceholders, placeholdersIn, readTemplateFiles, type TemplateEntry } from './template-files.js'

export interface TemplateVariable {
  name: string
  description: string
  /** Without one, a value is required. May contain `{{project_id}}` and `{{project_name}}`. */
  default?: string
  /** A regular expression; the whole value must match. */
  pattern?: string
}

export interface Template {
  name: string
  description: string
  variables: TemplateVariable[]
  /** Whether it comes with Aetheel. */
  isBuiltIn: boolean
}

/** The project that a template is rendered for. */
export interface TemplateProject {
  id: string
  name: string
}

const DESCRIPTION_FILE = 'template.json5'
const MAX_VALUE_CHARACTERS = 200

const PROJECT_VARIABLES = ['project_id', 'project_name']

const templateName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/)

const descriptionSchema = z.strictObject({
  description: z.string().min(1),
  variables: z
    .array(
      z.strictObject({
        name: z.string().regex(/^(?!project_)[a-z][a-z0-9_]*$/, {
          error: 'a variable name has lowercase letters, digits and "_", and does not start with "project_"',
        }),
        description: z.string().min(1),
        default: z
          .string()
          .refine((text) => placeholdersIn(text).every((name) => PROJECT_VARIABLES.includes(name)), {
            error: `may contain only ${PROJECT_VARIABLES.map((name) => `{{${name}}}`).join(' and ')}`,
          })
          .exactOptional(),
        pattern: z.string().refine(isPattern, { error: 'must be a regular expression' }).exactOptional(),
      }),
    )
    .default([]),
})

/** Next to both `src` and `dist`. */
export const BUILT_IN_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url))

export class Templates {
  /** `ownDirectory` takes precedence over built-in templates of the same name. */
  constructor(
    private readonly log: Log,
    private readonly ownDirectory?: string,
    private readonly builtInDirectory: string = BUILT_IN_TEMPLATES,
  ) {}

  /** Ordered by name. One with an invalid description is logged and skipped. */
  async list(): Promise<Template[]> {
    const names = new Set<string>()
    for (const parent of this.#directories()) {
      for (const name of await templateNames(parent)) names.add(name)
    }
    const templates: Template[] = []
    for (const name of [...names].toSorted()) {
      try {
        templates.push((await this.#find(name)).template)
      } catch (error) {
        this.log.warn('template.unusable', { template: name, problem: messageOf(error) })
      }
    }
    return templates
  }

  /**
   * The files of a new project.
   *
   * Contract: throws `not_found` for an unknown template, `request_invalid` for wrong variables, and `config_invalid`
   * if the template itself is wrong.
   */
  async render(name: string, given: Record<string, string>, project: TemplateProject): Promise<TemplateEntry[]> {
    const { template, directory } = await this.#find(name)
    const values = valuesOf(template, given, project)
    const entries = await readTemplateFiles({ name, directory }, values)
    return entries.filter(({ from }) => from !== DESCRIPTION_FILE)
  }

  async #find(name: string): Promise<{ template: Template; directory: string }> {
    if (templateName.safeParse(name).success) {
      for (const parent of this.#directories()) {
        const directory = join(parent, name)
        const text = await readIfExists(join(directory, DESCRIPTION_FILE))
        if (text === undefined) continue
        const isBuiltIn = parent === this.builtInDirectory
        return { template: { name, ...parseDescription(text, directory), isBuiltIn }, directory }
      }
    }
    const known = (await this.list()).map((template) => template.name)
    const message = `There is no template ${JSON.stringify(name.slice(0, 100))}. Known: ${known.join(', ')}`
    throw new GatewayError('not_found', message)
  }

  #directories(): string[] {
    return [...(this.ownDirectory === undefined ? [] : [this.ownDirectory]), this.builtInDirectory]
  }
}

async function templateNames(parent: string): Promise<string[]> {
  let entries
  try {
    entries = await readdir(parent)
  } catch (error) {
    const advice = 'Create it, or set TEMPLATE_DIR to another directory.'
    const message = `The templates in ${parent} cannot be read: ${messageOf(error)}. ${advice}`
    throw new GatewayError('config_invalid', message, { cause: error })
  }
  const isTemplate = await Promise.all(
    entries.map(
      async (name) =>
        templateName.safeParse(name).success &&
        (await stat(join(parent, name, DESCRIPTION_FILE)).catch(() => undefined)) !== undefined,
    ),
  )
  return entries.filter((_, index) => isTemplate[index])
}

async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new GatewayError('config_invalid', `${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

function parseDescription(text: string, directory: string): z.output<typeof descriptionSchema> {
  const file = join(directory, DESCRIPTION_FILE)
  let value: unknown
  try {
    value = JSON5.parse(text)
  } catch (error) {
    throw new GatewayError('config_invalid', `${file} is not valid JSON5: ${messageOf(error)}`, { cause: error })
  }
  const parsed = descriptionSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${file}: ${path.join('.') || 'template'}: ${message}`,
  )
  throw new GatewayError('config_invalid', problems.join('\n'))
}

function valuesOf(
  template: Template,
  given: Record<string, string>,
  project: TemplateProject,
): ReadonlyMap<string, string> {
  const ofProject = new Map([
    ['project_id', project.id],
    ['project_name', project.name],
  ])
  const values = new Map(ofProject)
  const known = template.variables.map(({ name }) => name)
  const problems = Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => `has no variable ${JSON.stringify(name.slice(0, 100))}; known: ${known.join(', ') || 'none'}`)
  for (const { name, description, default: fallback, pattern } of template.variables) {
    const value = Object.hasOwn(given, name) ? given[name] : fallback && fillPlaceholders(fallback, ofProject)
    if (value === undefined) problems.push(`needs the variable ${name}: ${description}`)
    else if (!isOneLine(value)) problems.push(`${name} must be one line of at most ${MAX_VALUE_CHARACTERS} characters`)
    else if (pattern !== undefined && !anchoredPattern(pattern).test(value)) {
      problems.push(`${name} is ${JSON.stringify(value)}, which does not match ${pattern}: use another value`)
    } else values.set(name, value)
  }
  if (problems.length === 0) return values
  throw new GatewayError(
    'request_invalid',
    problems.map((problem) => `Template ${template.name}: ${problem}`).join('\n'),
  )
}

function isOneLine(value: string): boolean {
  return value.length <= MAX_VALUE_CHARACTERS && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)
}

function isPattern(pattern: string): boolean {
  try {
    anchoredPattern(pattern)
    return true
  } catch {
    return false // It does not compile.
  }
}

function anchoredPattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}
