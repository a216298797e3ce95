import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseTool, problemOfTool } from '../../../src/backends/engine/allowed-tool.js'

it.each([
  ['Read', { name: 'Read' }],
  ['*', { name: '*' }],
  ['mcp__server__tool', { name: 'mcp__server__tool' }],
  ['mcp__*', { name: 'mcp__*' }],
  ['21st_search', { name: '21st_search' }],
  ['Bash(git log:*)', { name: 'Bash', calls: 'git log:*' }],
  ['Bash(npm run test:*)', { name: 'Bash', calls: 'npm run test:*' }],
  ['Bash(git log,git show)', { name: 'Bash', calls: 'git log,git show' }],
  ['Read(./src/**)', { name: 'Read', calls: './src/**' }],
  ['Read(./app/(shop)/**)', { name: 'Read', calls: './app/(shop)/**' }],
  ['Bash(echo $(git log -1))', { name: 'Bash', calls: 'echo $(git log -1)' }],
])('%s is one tool', (text, tool) => {
  expect([parseTool(text), problemOfTool(text)]).toEqual([tool, undefined])
})

it.each([
  ...['', ' ', ' Read', 'Read ', '-x', '(x)', 'Read Bash', 'Read,Bash', 'Read\tBash', 'Read\nBash', 'Read\u3000Bash'],
  ...['Read(x) Bash Read(y)', 'Read(x)Bash(y)', 'Read(x),Bash', 'Read (x)', 'Read(x)y', 'Read()'],
  ...['Read(x', 'Readx)', 'Read(x))', 'Read((x)', 'Read(x)) Bash (y)', 'Read(a\0b)', 'Read(\uD800)'],
  ...['Bash(echo (a) b)', 'Bash(echo (a),b)'],
])('%j is not one tool, and its problem names it', (text) => {
  expect(() => parseTool(text)).toThrow(problemOfTool(text))
  expect(problemOfTool(text)).toContain(JSON.stringify(text))
})

it('an accepted element never becomes two tools, however a command line splits it', () => {
  const piece = fc.constantFrom('Read', 'x', '(', ')', '(x)', ' ', ',', '\\', '"', '\t', ':*')
  const pieces = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(
      fc.oneof(
        pieces,
        fc.tuple(pieces, pieces).map(([one, other]) => `Bash(${one})${other}`),
      ),
      (text) => {
        const isSplit = [splitByDepth(text), splitByLastParenthesis(text)].some((tools) => tools.length > 1)
        expect(problemOfTool(text) === undefined && isSplit).toBe(false)
      },
    ),
    { numRuns: 1000 },
  )
})

/** Counts the depth of parentheses, as one would expect. */
function splitByDepth(text: string): string[] {
  let depth = 0
  return splitWhere(text, (character) => {
    depth += Number(character === '(') - Number(character === ')')
    return depth <= 0
  })
}

/** Tracks only whether the last parenthesis was an opening one, like Claude Code. */
function splitByLastParenthesis(text: string): string[] {
  let isInside = false
  return splitWhere(text, (character) => {
    isInside = character === '(' || (isInside && character !== ')')
    return !isInside
  })
}

function splitWhere(text: string, isOutside: (character: string) => boolean): string[] {
  const pieces = ['']
  for (const character of text) {
    if (isOutside(character) && /[\s,]/.test(character)) pieces.push('')
    else pieces.push(pieces.pop() + character)
  }
  return pieces
}
