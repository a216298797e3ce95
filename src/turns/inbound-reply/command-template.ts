// Templates of the operator: `{{Name}}` stands for something of a message.
//
// What must stay true:
// - A value is put in once and never read as a template, and no shell ever sees it.
// - What people write becomes no option: an element begins with a dash only where the operator wrote that dash.

import { GatewayError } from '../../errors.js'

export const TEMPLATE_NAMES = [
  ...(['Body', 'BodyStripped', 'From', 'To', 'MessageSid', 'MediaPath', 'MediaUrl', 'MediaType'] as const),
  ...(['Transcript', 'SessionId', 'IsNewSession'] as const),
]

export type TemplateName = (typeof TEMPLATE_NAMES)[number]

/** What is left out stands for nothing. */
export type TemplateValues = { readonly [Name in TemplateName]?: string }

export interface CommandTemplate {
  executable: string
  /** Without the elements that mark the prompt, which goes by stdin. */
  args: readonly string[]
  /** What the agent is asked. */
  prompt: 'Body' | 'BodyStripped'
}

const PLACE = /\{\{\s*(\w+)\s*\}\}/g
const BROKEN_PLACE = /\{\{[^{}]*\}{0,2}/g
const OPTION_WITH_PLACE = /^-[^=]*\{\{/
const PROMPT_MARK = /^\{\{\s*(Body|BodyStripped)\s*\}\}$/
/** Linux takes no longer one. */
const LONGEST_ARGUMENT_BYTES = 131_071

/** What is wrong with a template, a sentence each. */
export function problemsOfTemplate(template: string): string[] {
  const broken = template.replaceAll(PLACE, '').match(BROKEN_PLACE) ?? []
  return [
    ...unknownNames(template).map(unknownProblem),
    ...broken.map((place) => `${JSON.stringify(place)} stands for nothing. ${known()}`),
  ]
}

/** What is wrong with templates that become arguments, a sentence each and once. */
export function problemsOfArguments(elements: readonly string[]): string[] {
  const chosen = elements.filter((element) => OPTION_WITH_PLACE.test(element))
  return [
    ...new Set([
      ...elements.flatMap(problemsOfTemplate),
      ...chosen.map(
        (element) => `${JSON.stringify(element)}: a message must not choose the option. Put it after "=", or alone.`,
      ),
    ]),
  ]
}

/** The names in a template that stand for nothing. */
function unknownNames(template: string): string[] {
  return [...template.matchAll(PLACE)].map(([, name = '']) => name).filter((name) => !isTemplateName(name))
}

/** What is wrong with a command, a sentence each. */
export function problemsOfCommand(command: readonly string[]): string[] {
  const [executable = ''] = command
  const { args } = parseCommand(command)
  return [
    ...problemsOfArguments(command),
    ...(expansionOf(executable, {}) === executable
      ? []
      : ['The executable must not come from a message: write its name.']),
    ...problemsOfEnd(args),
  ]
}

/** As `problemsOfCommand`, of arguments by which a session is begun or continued. */
export function problemsOfSessionArguments(elements: readonly string[]): string[] {
  return [...problemsOfArguments(elements), ...problemsOfEnd(elements)]
}

/** Also leaves out a `--` that stands before the prompt to protect it. */
export function parseCommand([executable = '', ...elements]: readonly string[]): CommandTemplate {
  const marks = elements.map((element) => PROMPT_MARK.exec(element)?.[1])
  const isBeforeMark = (index: number): boolean => marks[index + 1] !== undefined
  const args = elements.filter((element, index) => !marks[index] && !(element === '--' && isBeforeMark(index)))
  const isStripped = marks.includes('BodyStripped') && !marks.includes('Body')
  return { executable, args, prompt: isStripped ? 'BodyStripped' : 'Body' }
}

/** Contract: throws `request_invalid` for a name that stands for nothing. */
export function expandText(template: string, values: TemplateValues): string {
  const [unknown] = unknownNames(template)
  if (unknown !== undefined) throw new GatewayError('request_invalid', unknownProblem(unknown))
  return expansionOf(template, values)
}

/**
 * One argument for each element.
 *
 * Contract: throws `request_invalid`, with a sentence for the person, when an argument would become an option by what
 * was put in, or cannot stand on a command line.
 */
export function expandArguments(elements: readonly string[], values: TemplateValues): string[] {
  return elements.map((element) => {
    const argument = expandText(element, values)
    const problem = problemOf(element, argument)
    if (problem === undefined) return argument
    const place = `in place of ${JSON.stringify(element)} of the command`
    throw new GatewayError('request_invalid', `This was not given to the agent: ${place}, ${problem}`)
  })
}

/** Whether something is put into one of the templates; with `name`, that. */
export function names(elements: readonly string[], name?: TemplateName): boolean {
  return elements.some((element) =>
    [...element.matchAll(PLACE)].some(([, found]) => name === undefined || found === name),
  )
}

function problemsOfEnd(elements: readonly string[]): string[] {
  if (!elements.includes('--')) return []
  return ['"--" ends the options, and further ones of the agent come after it: leave it out.']
}

function problemOf(element: string, argument: string): string | undefined {
  if (argument.startsWith('-') && !element.startsWith('-')) {
    return 'it would begin with "-" and be taken for an option. Begin it with another character.'
  }
  if (argument.includes('\0')) return 'it would have a NUL in it. Leave that out.'
  if (Buffer.byteLength(argument) <= LONGEST_ARGUMENT_BYTES) return undefined
  return `it would be longer than ${LONGEST_ARGUMENT_BYTES} bytes. Send it in parts, or in a file.`
}

function expansionOf(template: string, values: TemplateValues): string {
  return template.replace(PLACE, (_, name: string) => (isTemplateName(name) ? values[name] : undefined) ?? '')
}

function isTemplateName(name: string): name is TemplateName {
  return TEMPLATE_NAMES.some((known) => known === name)
}

function unknownProblem(name: string): string {
  return `{{${name}}} stands for nothing. ${known()}`
}

function known(): string {
  return `Known: ${TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(', ')}.`
}
