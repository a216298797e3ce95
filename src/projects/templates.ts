// Templates: a directory each, with a `template.json5` that says which variables its files have.

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
  /** Left out, a value must be given. May have `{{project_id}}` and `{{project_name}}` in it. */
  default?: string
  /** A regular expression that the whole value must match. */
  pattern?: string
}

export interface Template {
  name: string
  description: string
  variables: TemplateVariable[]
  /** Whether it came with Aetheel. */
  isBuiltIn: boolean
}

/** What every template knows of its project. */
export interface TemplateSubject {
  id: string
  name: string
}

const DESCRIPTION_FILE = 'template.json5'
const LONGEST_VALUE = 200

const OF_PROJECT = ['project_id', 'project_name']

const templateName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/)

const descriptionSchema = z.strictObject({
  description: z.string().min(1),
  variables: z
    .array(
      z.strictObject({
        name: z.string().regex(/^(?!project_)[a-z][a-z0-9_]*$/, {
          error: 'a variable has small letters, digits and "_", and does not begin with "project_"',
        }),
        description: z.string().min(1),
        default: z
          .string()
          .refine((text) => placeholdersIn(text).every((name) => OF_PROJECT.includes(name)), {
            error: `may have only ${OF_PROJECT.map((name) => `{{${name}}}`).join(' and ')} in it`,
          })
          .exactOptional(),
        pattern: z.string().refine(isPattern, { error: 'must be a regular expression' }).exactOptional(),
      }),
    )
    .default([]),
})

/** Those that came with Aetheel; beside `src` as beside `dist`. */
export const BUILT_IN_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url))

export class Templates {
  /** Of two with the same name, that of `ownDirectory` counts. */
  constructor(
    private readonly log: Log,
    private readonly ownDirectory?: string,
    private readonly builtInDirectory: string = BUILT_IN_TEMPLATES,
  ) {}

  /** By name. One whose description is wrong is told in the log and left out. */
  async list(): Promise<Template[]> {
    const names = new Set<string>()
    for (const place of this.#places()) {
      for (const name of await templateNames(place)) names.add(name)
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
   * when the template itself is wrong.
   */
  async render(name: string, given: Record<string, string>, subject: TemplateSubject): Promise<TemplateEntry[]> {
    const { template, directory } = await this.#find(name)
    const values = valuesOf(template, given, subject)
    const entries = await readTemplateFiles({ name, directory }, values)
    return entries.filter(({ from }) => from !== DESCRIPTION_FILE)
  }

  async #find(name: string): Promise<{ template: Template; directory: string }> {
    if (templateName.safeParse(name).success) {
      for (const place of this.#places()) {
        const directory = join(place, name)
        const text = await textIfThere(join(directory, DESCRIPTION_FILE))
        if (text === undefined) continue
        const isBuiltIn = place === this.builtInDirectory
        return { template: { name, ...parseDescription(text, directory), isBuiltIn }, directory }
      }
    }
    const known = (await this.list()).map((template) => template.name)
    const message = `There is no template ${JSON.stringify(name.slice(0, 100))}. Known: ${known.join(', ')}`
    throw new GatewayError('not_found', message)
  }

  #places(): string[] {
    return [...(this.ownDirectory === undefined ? [] : [this.ownDirectory]), this.builtInDirectory]
  }
}

async function templateNames(place: string): Promise<string[]> {
  let entries
  try {
    entries = await readdir(place)
  } catch (error) {
    const advice = 'Make it, or set TEMPLATE_DIR to another.'
    const message = `The templates in ${place} cannot be read: ${messageOf(error)}. ${advice}`
    throw new GatewayError('config_invalid', message, { cause: error })
  }
  const isTemplate = await Promise.all(
    entries.map(
      async (name) =>
        templateName.safeParse(name).success &&
        (await stat(join(place, name, DESCRIPTION_FILE)).catch(() => undefined)) !== undefined,
    ),
  )
  return entries.filter((_, index) => isTemplate[index])
}

async function textIfThere(path: string): Promise<string | undefined> {
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
    throw new GatewayError('config_invalid', `${file} is no JSON5: ${messageOf(error)}`, { cause: error })
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
  subject: TemplateSubject,
): ReadonlyMap<string, string> {
  const ofProject = new Map([
    ['project_id', subject.id],
    ['project_name', subject.name],
  ])
  const values = new Map(ofProject)
  const known = template.variables.map(({ name }) => name)
  const problems = Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => `has no variable ${JSON.stringify(name.slice(0, 100))}; known: ${known.join(', ') || 'none'}`)
  for (const { name, description, default: usual, pattern } of template.variables) {
    const value = Object.hasOwn(given, name) ? given[name] : usual && fillPlaceholders(usual, ofProject)
    if (value === undefined) problems.push(`needs the variable ${name}: ${description}`)
    else if (!isOneLine(value)) problems.push(`${name} must be one line of at most ${LONGEST_VALUE} characters`)
    else if (pattern !== undefined && !wholePattern(pattern).test(value)) {
      problems.push(`${name} is ${JSON.stringify(value)}, which does not match ${pattern}: give another value`)
    } else values.set(name, value)
  }
  if (problems.length === 0) return values
  throw new GatewayError(
    'request_invalid',
    problems.map((problem) => `Template ${template.name}: ${problem}`).join('\n'),
  )
}

function isOneLine(value: string): boolean {
  return value.length <= LONGEST_VALUE && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)
}

function isPattern(pattern: string): boolean {
  try {
    wholePattern(pattern)
    return true
  } catch {
    return false // What cannot be compiled is none.
  }
}

function wholePattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}
