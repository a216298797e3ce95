import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messageOf } from '../../../src/errors.js'
import {
  expandArguments,
  expandText,
  parseCommand,
  problemsOfCommand,
  problemsOfTemplate,
  TEMPLATE_NAMES,
  type TemplateName,
  type TemplateValues,
} from '../../../src/turns/inbound-reply/command-template.js'

const RUNS = { numRuns: 300 }
const KNOWN = TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(', ')

/** Values that a careless template would misread. */
const TRAPS = [
  '-',
  '--',
  '-p',
  '--help',
  '{{From}}',
  '{{ Body }}',
  '$&',
  '$1',
  '$(id)',
  '`id`',
  ';rm',
  "'",
  '"',
  '',
  '\\',
]
const anyName = fc.constantFrom(...TEMPLATE_NAMES)
const anyValue = fc
  .oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.constantFrom(...TRAPS))
  .map((value) => value.replaceAll('\0', ''))
const anyValues: fc.Arbitrary<TemplateValues> = fc.dictionary(anyName, anyValue)
const anyLiteral = fc.string().map((text) => text.replaceAll(/[{}\0]/g, ''))
/** An element as parts: the operator's text, or the name of a placeholder. */
const anyParts = fc.array(fc.oneof(anyLiteral, fc.record({ name: anyName })), { maxLength: 4 })

type Part = string | { name: TemplateName }

const elementOf = (parts: Part[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : `{{${part.name}}}`)).join('')
const expected = (parts: Part[], values: TemplateValues): string =>
  parts.map((part) => (typeof part === 'string' ? part : (values[part.name] ?? ''))).join('')

function argumentsOrRefusal(elements: string[], values: TemplateValues): string[] | 'refused' {
  try {
    return expandArguments(elements, values)
  } catch (error) {
    if (messageOf(error).includes('it would begin with "-"')) return 'refused'
    throw error
  }
}

describe('an argument', () => {
  it('is the text of the operator with each value put in once, to the character', () => {
    fc.assert(
      fc.property(anyParts, anyValues, (parts, values) => {
        expect(expandText(elementOf(parts), values)).toBe(expected(parts, values))
      }),
      RUNS,
    )
  })

  it('changes only itself, whatever the body is and wherever it stands', () => {
    fc.assert(
      fc.property(fc.array(anyLiteral), fc.array(anyLiteral), anyValue, (before, after, body) => {
        const args = expandArguments([...before, 'x{{BodyStripped}}', ...after], { BodyStripped: body })
        expect(args).toEqual([...before, `x${body}`, ...after])
      }),
      RUNS,
    )
  })

  it('begins with a dash only if the operator wrote it; anything else is refused', () => {
    fc.assert(
      fc.property(fc.array(anyParts), anyValues, (elements, values) => {
        const templates = elements.map(elementOf)
        const isNewOption = elements.some(
          (parts, index) => expected(parts, values).startsWith('-') && !templates[index]?.startsWith('-'),
        )
        const wanted = isNewOption ? 'refused' : elements.map((parts) => expected(parts, values))
        expect(argumentsOrRefusal(templates, values)).toEqual(wanted)
      }),
      RUNS,
    )
  })

  it('that would become an option is explained to the person with what to do', () => {
    expect(() => expandArguments(['--name', '{{From}}: {{BodyStripped}}'], { From: '-x', BodyStripped: 'hi' })).toThrow(
      'This was not passed to the agent: in "{{From}}: {{BodyStripped}}" of the command, it would begin with "-" and be read as an option. Begin it with another character.',
    )
  })

  it.each([
    ['a NUL', 'a\0b', 'it would contain a NUL character'],
    ['more bytes than an argument may have', 'é'.repeat(65_536), 'it would be longer than 131071 bytes'],
  ])('with %s is refused', (_, BodyStripped, problem) => {
    expect(() => expandArguments(['about: {{BodyStripped}}'], { BodyStripped })).toThrow(problem)
  })

  it('may have blanks around a name, and is empty for a missing value', () => {
    expect(expandArguments(['{{ From }}|{{MediaPath}}|{{\tTo}}'], { From: 'a', To: 'b' })).toEqual(['a||b'])
  })

  it('keeps braces that are no template', () => {
    expect(expandArguments(['{"a":{"b":1}}', '{{', '{{}}', '{{a b}}', '{{Body'], { Body: 'x' })).toEqual([
      '{"a":{"b":1}}',
      '{{',
      '{{}}',
      '{{a b}}',
      '{{Body',
    ])
  })
})

describe('a command', () => {
  it.each([
    [['claude', '{{Body}}'], { executable: 'claude', args: [], prompt: 'Body' }],
    [['claude'], { executable: 'claude', args: [], prompt: 'Body' }],
    [['claude', '{{ BodyStripped }}'], { executable: 'claude', args: [], prompt: 'BodyStripped' }],
    [['claude', '{{BodyStripped}}', '{{Body}}'], { executable: 'claude', args: [], prompt: 'Body' }],
    [['gemini', '-p', '{{Body}}', '-d'], { executable: 'gemini', args: ['-p', '-d'], prompt: 'Body' }],
    [['claude', '-p', '--', '{{Body}}'], { executable: 'claude', args: ['-p'], prompt: 'Body' }],
    [['pi', 'From {{From}}', '{{Body}}!'], { executable: 'pi', args: ['From {{From}}', '{{Body}}!'], prompt: 'Body' }],
  ])('%j is an executable, further arguments, and the prompt', (command, template) => {
    expect(parseCommand(command)).toEqual(template)
  })

  it.each([
    [['claude', '--name', '{{From}}', '{{Body}}'], []],
    [['claude', '{{body}}', '{{body}}'], [`{{body}} is not a known placeholder. Known: ${KNOWN}.`]],
    [
      ['claude', '--{{Body}}', '-x{{From}}', '--name={{From}}'],
      ['--{{Body}}', '-x{{From}}'].map(
        (element) => `"${element}": a message must not choose the option. Put it after "=", or by itself.`,
      ),
    ],
    [['{{Body}}'], ['The executable must not come from a message. Write its name.']],
    [
      ['claude', '--', 'x', '{{Body}}'],
      ['Remove "--": it ends the options, and more options for the agent follow it.'],
    ],
  ])('%j has the problems %j', (command, problems) => {
    expect(problemsOfCommand(command)).toEqual(problems)
  })
})

it('unknown names are found, even those that every object has', () => {
  expect(problemsOfTemplate('{{Body}} {{constructor}} {{ toString }} {{x}}')).toEqual(
    ['constructor', 'toString', 'x'].map((name) => `{{${name}}} is not a known placeholder. Known: ${KNOWN}.`),
  )
})

it('braces that are no template are found, and those of data are not', () => {
  expect(['{{Body', '{{}} {{Body}}', '{{ Bo dy }}', '{"a":{"b":1}}'].map(problemsOfTemplate)).toEqual([
    [`"{{Body" is not a valid placeholder. Known: ${KNOWN}.`],
    [`"{{}}" is not a valid placeholder. Known: ${KNOWN}.`],
    [`"{{ Bo dy }}" is not a valid placeholder. Known: ${KNOWN}.`],
    [],
  ])
})

it('an unknown placeholder is refused', () => {
  expect(() => expandText('{{constructor}}', {})).toThrow('{{constructor}} is not a known placeholder')
})
