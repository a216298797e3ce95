// What is probably wrong where JSON5 stopped reading, with the line and a mark.

const MAX_LINE_CHARACTERS = 100

/** The place, and below it the line and a guess. `number` and `column` are as JSON5 reports them. */
export function explainSyntax(text: string, number: number, column: number): { place: string; details: string[] } {
  const lines = text.split(/\r\n|[\n\r\u2028\u2029]/)
  // The end of a line counts as the beginning of the next.
  const lineNumber = column === 0 ? number - 1 : number
  const line = lines[lineNumber - 1] ?? ''
  const columnNumber = column === 0 ? line.length + 1 : column
  const before = [...lines.slice(0, lineNumber - 1), line.slice(0, columnNumber - 1)].join('\n')
  const guess = guessOf(before, line.slice(columnNumber - 1), lineNumber > lines.length)
  const shown = line.length <= MAX_LINE_CHARACTERS && line.trim() !== ''
  const mark = [`    ${withoutValues(line)}`, `    ${line.slice(0, columnNumber - 1).replaceAll(/[^\t]/g, ' ')}^`]
  const details = [...(shown ? mark : []), ...(guess === undefined ? [] : [`Probably ${guess}.`])]
  return { place: `${lineNumber}:${columnNumber}`, details }
}

function guessOf(before: string, rest: string, isPastEnd: boolean): string | undefined {
  const last = withoutComments(before).trimEnd()
  if (isInText(before.slice(before.lastIndexOf('\n') + 1))) return 'a closing quote is missing'
  if (isPastEnd || rest.trim() === '') return 'a closing bracket } or ] is missing'
  if (/['"\w}\]]$/.test(last) && /^['"\w$[{]/.test(rest)) return 'a comma is missing before it'
  if (last.endsWith(':') && /^[A-Za-z_~/.]/.test(rest)) return 'the text needs quotes'
  return undefined
}

/** Whether a quote is open at the end of the line. */
function isInText(line: string): boolean {
  let open = ''
  for (let index = 0; index < line.length; index += 1) {
    const character = line.charAt(index)
    if (open !== '' && character === '\\') index += 1
    else if (open === character) open = ''
    else if (open === '' && (character === '"' || character === "'")) open = character
    else if (open === '' && line.startsWith('//', index)) return false
  }
  return open !== ''
}

function withoutComments(text: string): string {
  return text.replaceAll(/^\s*\/\/.*$|\s\/\/ .*$|\/\*[^]*?\*\//gm, '')
}

/** Only the first key and the punctuation: any value may be a secret, and the error may end up in a log. */
function withoutValues(line: string): string {
  const [key = ''] = /^[\s{,]*(?:'[\w$.-]*'|"[\w$.-]*"|[\w$]+)\s*:(?!\/)/.exec(line) ?? []
  return key + line.slice(key.length).replaceAll(/[^\s'"`,:[\]{}]/g, '*')
}
