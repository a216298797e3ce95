// The operator's templates: `{{Name}}` is a placeholder for a value from the message.
//
// Invariants:
// - A value is inserted once and never read as a template, and no shell ever sees it.
// - A message cannot inject an option: an argument begins with a dash only if the operator wrote that dash.

import { GatewayError } from '../../errors.js'

export const TEMPLATE_NAMES = [
  ...(['Body', 'BodyStripped', 'From', 'To', 'MessageSid', 'MediaPath', 'MediaUrl', 'MediaType'] as const),
  ...(['Transcript', 'SessionId', 'IsNewSession'] as const),
]

export type TemplateName = (typeof TEMPLATE_NAMES)[number]

/** Omitted values expand to nothing. */
export type TemplateValues = { readonly [Name in TemplateName]?: string }

export interface CommandTemplate {
  executable: string
  /** Without the elements that mark the prompt, which is passed on stdin. */
  args: readonly string[]
  prompt: 'Body' | 'BodyStripped'
}

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g
const BROKEN_PLACEHOLDER = /\{\{[^{}]*\}{0,2}/g
const OPTION_WITH_PLACEHOLDER = /^-[^=]*\{\{/
const PROMPT_MARK = /^\{\{\s*(Body|BodyStripped)\s*\}\}$/
/** Linux limit for one argument. */
const MAX_ARGUMENT_BYTES = 131_071

/** Problems of a template, one sentence each. */
export function problemsOfTemplate(template: string): string[] {
  const broken = template.replaceAll(PLACEHOLDER, '').match(BROKEN_PLACEHOLDER) ?? []
  return [
    ...unknownNames(template).map(unknownProblem),
    ...broken.map((place) => `${JSON.stringify(place)} is not a valid placeholder. ${known()}`),
  ]
}

/** Problems of argument templates, one sentence each, without duplicates. */
export function problemsOfArguments(elements: readonly string[]): string[] {
  const chosen = elements.filter((element) => OPTION_WITH_PLACEHOLDER.test(element))
  return [
    ...new Set([
      ...elements.flatMap(problemsOfTemplate),
      ...chosen.map(
        (element) =>
          `${JSON.stringify(element)}: a message must not choose the option. Put it after "=", or by itself.`,
      ),
    ]),
  ]
}

function unknownNames(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map(([, name = '']) => name).filter((name) => !isTemplateName(name))
}

/** Problems of a command, one sentence each. */
export function problemsOfCommand(command: readonly string[]): string[] {
  const [executable = ''] = command
  const { args } = parseCommand(command)
  return [
    ...problemsOfArguments(command),
    ...(expansionOf(executable, {}) === executable
      ? []
      : ['The executable must not come from a message. Write its name.']),
    ...problemsOfEnd(args),
  ]
}

/** Like `problemsOfCommand`, for the arguments that begin or resume a session. */
export function problemsOfSessionArguments(elements: readonly string[]): string[] {
  return [...problemsOfArguments(elements), ...problemsOfEnd(elements)]
}

/** Also drops a `--` that only protects the prompt. */
export function parseCommand([executable = '', ...elements]: readonly string[]): CommandTemplate {
  const marks = elements.map((element) => PROMPT_MARK.exec(element)?.[1])
  const isBeforeMark = (index: number): boolean => marks[index + 1] !== undefined
  const args = elements.filter((element, index) => !marks[index] && !(element === '--' && isBeforeMark(index)))
  const isStripped = marks.includes('BodyStripped') && !marks.includes('Body')
  return { executable, args, prompt: isStripped ? 'BodyStripped' : 'Body' }
}

/** Contract: throws `request_invalid` for an unknown name. */
export function expandText(template: string, values: TemplateValues): string {
  const [unknown] = unknownNames(template)
  if (unknown !== undefined) throw new GatewayError('request_invalid', unknownProblem(unknown))
  return expansionOf(template, values)
}

/**
 * One argument per element.
 *
 * Contract: throws `request_invalid`, with a message for the person, if an inserted value would turn an argument into
 * an option or cannot be passed on a command line.
 */
export function expandArguments(elements: readonly string[], values: TemplateValues): string[] {
  return elements.map((element) => {
    const argument = expandText(element, values)
    const problem = problemOf(element, argument)
    if (problem === undefined) return argument
    const place = `in ${JSON.stringify(element)} of the command`
    throw new GatewayError('request_invalid', `This was not passed to the agent: ${place}, ${problem}`)
  })
}

/** Whether any element has a placeholder, or that of `name`. */
export function hasPlaceholder(elements: readonly string[], name?: TemplateName): boolean {
  return elements.some((element) =>
    [...element.matchAll(PLACEHOLDER)].some(([, found]) => name === undefined || found === name),
  )
}

function problemsOfEnd(elements: readonly string[]): string[] {
  if (!elements.includes('--')) return []
  return ['Remove "--": it ends the options, and more options for the agent follow it.']
}

function problemOf(element: string, argument: string): string | undefined {
  if (argument.startsWith('-') && !element.startsWith('-')) {
    return 'it would begin with "-" and be read as an option. Begin it with another character.'
  }
  if (argument.includes('\0')) return 'it would contain a NUL character. Remove it.'
  if (Buffer.byteLength(argument) <= MAX_ARGUMENT_BYTES) return undefined
  return `it would be longer than ${MAX_ARGUMENT_BYTES} bytes. Send it in parts, or in a file.`
}

function expansionOf(template: string, values: TemplateValues): string {
  return template.replace(PLACEHOLDER, (_, name: string) => (isTemplateName(name) ? values[name] : undefined) ?? '')
}

function isTemplateName(name: string): name is TemplateName {
  return TEMPLATE_NAMES.some((known) => known === name)
}

function unknownProblem(name: string): string {
  return `{{${name}}} is not a known placeholder. ${known()}`
}

function known(): string {
  return `Known: ${TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(', ')}.`
}
