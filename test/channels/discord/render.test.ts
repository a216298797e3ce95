import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderForDiscord } from '../../../src/channels/discord/render.js'

const RUNS = { numRuns: 1000 }
const FENCE = '```'

describe('renderForDiscord', () => {
  it('shows a table as columns, as wide as they look, and aligned as it says', () => {
    const table = [
      'Before',
      '| Name | Größe | **Note** |',
      '|:-----|------:|:--------:|',
      '| `a|b` | 1 | x |',
      '| c | d | e | f |',
      String.raw`| a \| b | 1,000 | [docs](https://x.y) |`,
      '| 日本語 | 🎉 |',
      '',
      'After',
    ]
    expect(render(...table)).toEqual([
      'Before',
      FENCE,
      'Name   | Größe |        Note',
      '-------+-------+-------------------',
      'a|b    |     1 |         x',
      'c      |     d |       e | f',
      'a | b  | 1,000 | docs (https://x.y)',
      '日本語 |    🎉 |',
      FENCE,
      '',
      'After',
    ])
  })

  it.each([
    [
      [`${FENCE}js`, 'code', `${FENCE} and **this**`, 'More'],
      [`${FENCE}js`, 'code', FENCE, 'and **this**', 'More'],
    ],
    [
      [`${FENCE} one two three`, 'code', FENCE],
      [FENCE, 'one two three', 'code', FENCE],
    ],
    [
      [`${FENCE}ts title="a b.ts" {1,3}`, 'code', FENCE],
      [`${FENCE}ts`, 'code', FENCE],
    ],
    [
      [`${FENCE}ts src/a.ts`, 'code', FENCE],
      [`${FENCE}ts`, 'code', FENCE],
    ],
  ])('loses no word on the line of a fence: %j', (given, shown) => {
    expect(render(...given)).toEqual(shown)
  })

  it('shows a table that is too wide as lists', () => {
    const long = 'word '.repeat(25).trim()
    expect(
      render('| Name | What it does |', '| --- | --- |', `| a | ${long} |`, '| **b** | |', `|| ${long} |`),
    ).toEqual([
      '- **Name**: a',
      `- **What it does**: ${long}`,
      '',
      '- **Name**: **b**',
      '',
      `- **What it does**: ${long}`,
    ])
  })

  it('treats only tables as tables', () => {
    const lines = [
      'a | b',
      'c | d',
      '',
      '| a | b |',
      '| --- |',
      '',
      'Title',
      '-----',
      '',
      FENCE,
      '| a |',
      '| - |',
      FENCE,
    ]
    expect(render(...lines)).toEqual(lines.with(7, '─'.repeat(20)))
  })

  it('keeps a table in a list in place', () => {
    expect(render('- Item:', '', '  | a | b |', '  | - | - |', '  | 1 | 2 |', '- Next')).toEqual([
      '- Item:',
      '',
      `  ${FENCE}`,
      '  a | b',
      '  --+--',
      '  1 | 2',
      `  ${FENCE}`,
      '- Next',
    ])
  })

  it('makes deep headings bold, and leaves the others', () => {
    expect(render('### A', '#### B', '###### **C** `**` #', '> #### D ##', '####no', '    #### code')).toEqual([
      '### A',
      '**B**',
      '**C `**`**',
      '> **D**',
      '####no',
      '    #### code',
    ])
  })

  it('shows tasks, rules and images', () => {
    const lines = [
      '- [ ] open',
      '  1. [X] done',
      '- [x](link)',
      '***',
      '![a plan](https://x.y/a.png "Title") and ![](https://x.y/(b).png)',
      '![local](docs/a.png), ![](b.png), `![code](c.png)`',
      '[![build](https://x.y/badge.svg)](https://x.y/ci)',
      '![chart](data:image/png;base64,AAAA)',
    ]
    expect(render(...lines)).toEqual([
      '- ☐ open',
      '  1. ☑ done',
      '- [x](link)',
      '─'.repeat(20),
      '[a plan](https://x.y/a.png) and https://x.y/(b).png',
      'local (docs/a.png), b.png, `![code](c.png)`',
      '[build](https://x.y/ci)',
      'chart',
    ])
  })

  it('makes a file of long code', () => {
    const code = Array.from({ length: 151 }, (_, index) => `  line ${index}`)
    const wide = 'x'.repeat(4001)
    const text = [
      'One:',
      `${FENCE}ts`,
      ...code,
      FENCE,
      'Two:',
      `- ${FENCE}`,
      `  ${wide}`,
      `  ${FENCE}`,
      'Three:',
      '~~~py',
      wide,
    ]
    expect(renderForDiscord(text.join('\n'))).toEqual({
      text: 'One:\n📎 code-1.ts (151 lines)\nTwo:\n- 📎 code-2.txt (1 line)\nThree:\n📎 code-3.py (1 line)',
      files: [
        { name: 'code-1.ts', content: `${code.join('\n')}\n` },
        { name: 'code-2.txt', content: `${wide}\n` },
        { name: 'code-3.py', content: `${wide}\n` },
      ],
    })
  })

  it('leaves code that is just short enough', () => {
    const texts = ['x\n'.repeat(150), `${'x'.repeat(4000)}\n`].map((code) => `${FENCE}\n${code}${FENCE}`)
    expect(texts.map((text) => renderForDiscord(text))).toEqual(texts.map((text) => ({ text, files: [] })))
  })

  it('names a file as the fence says, if that is a plain name', () => {
    const infos = [
      'ts title=foo.ts',
      'js title="foo bar.js"',
      'title=../../etc/passwd',
      'src/main.rs',
      'python:tool.py',
      'Foo.TS',
      'ts title=FOO.ts',
      'title=.env',
      'ini name=con.ini',
      'dockerfile title=Dockerfile',
      '{.bash #id}',
      'constructor',
      'yaml file=a..b.yaml',
    ]
    const text = infos.map((info) => `${FENCE}${info}\n${'x\n'.repeat(151)}${FENCE}`).join('\n')
    expect(renderForDiscord(text).files.map(({ name }) => name)).toEqual([
      'foo.ts',
      'code-2.js',
      'code-3.txt',
      'code-4.rs',
      'tool.py',
      'code-6.ts',
      'code-7.ts',
      'code-8.txt',
      'code-9.ini',
      'Dockerfile',
      'code-11.sh',
      'code-12.txt',
      'code-13.yaml',
    ])
  })

  it('writes fences as Discord knows them', () => {
    const lines = [
      '~~~ts title=a.ts',
      'a',
      '~~~~',
      `${FENCE} r`,
      'b',
      FENCE,
      `${FENCE}\`js {1,3}`,
      'c',
      `${FENCE}\``,
      `${FENCE}ts`,
    ]
    expect(render(...lines, 'd')).toEqual([
      `${FENCE}ts`,
      'a',
      FENCE,
      `${FENCE}r`,
      'b',
      FENCE,
      `${FENCE}js`,
      'c',
      FENCE,
      `${FENCE}ts`,
      'd',
      FENCE,
    ])
  })

  it('makes a file of code that holds a fence, which Discord would take for the end', () => {
    const inner = `${FENCE}sh\nnpm test\n${FENCE}`
    expect(renderForDiscord(`Readme:\n\`\`\`\`md\n# Title\n${inner}\n\`\`\`\`\nEnd`)).toEqual({
      text: 'Readme:\n📎 code-1.md (4 lines)\nEnd',
      files: [{ name: 'code-1.md', content: `# Title\n${inner}\n` }],
    })
  })

  it('leaves everything that Discord shows as it is', () => {
    const word = fc.constantFrom(
      'word',
      '**bold**',
      '`![a](b)`',
      '[a](https://x.y)',
      '~~no~~',
      '||spoiler||',
      '<@1>',
      '日本',
      '🎉',
    )
    const line = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))
    const lead = fc.constantFrom('', '# ', '## ', '### ', '-# ', '- ', '  * ', '1. ', '> ', '>>> ')
    const code = fc.array(fc.constantFrom('| a |', '| - |', '#### x', '- [ ] a', '---', '', '\t![a](b)', '`'), {
      maxLength: 9,
    })
    const fence = fc
      .tuple(fc.constantFrom('', 'ts', 'c++'), code)
      .map(([info, lines]) => [FENCE + info, ...lines, FENCE].join('\n'))
    const block = fc.oneof(
      fc.tuple(lead, line).map((parts) => parts.join('')),
      fence,
    )
    const gap = fc.constantFrom('\n', '\n\n', '\r\n', ' \n')
    fc.assert(
      fc.property(fc.array(fc.tuple(gap, block)), (blocks) => {
        const text = blocks.flat().join('')
        expect(renderForDiscord(text)).toEqual({ text, files: [] })
      }),
      RUNS,
    )
  })

  it('throws at nothing', () => {
    const pieces = [
      '|',
      '-',
      ':',
      '\n',
      '\n',
      ' ',
      '    ',
      '#### ',
      '![',
      '](',
      ')',
      '[',
      ']',
      '```',
      '~~~',
      '`',
      '*',
      '- [ ] ',
      '> ',
      'a',
      '\\',
      '"',
    ]
    const anyText = fc.oneof(
      fc.array(fc.constantFrom(...pieces), { maxLength: 60, size: 'max' }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(anyText, (text) => {
        expect(() => renderForDiscord(text)).not.toThrow()
      }),
      RUNS,
    )
  })

  it('does not slow down with the length of the text', () => {
    const texts = [
      '| a | b |\n',
      '|',
      '![](',
      '![a](b "',
      '[![',
      '#### a',
      '\\',
      '- [ ] a\n',
      '~~~\n',
      '* ',
      '`',
      ' |',
      '`a` ',
    ]
    const started = process.cpuUsage()
    for (const text of texts) renderForDiscord(`| a | b |\n| - | - |\n${text.repeat(500_000 / text.length)}x`)
    expect(process.cpuUsage(started).user / 1_000_000).toBeLessThan(20)
  })
})

function render(...lines: string[]): string[] {
  return renderForDiscord(lines.join('\n')).text.split('\n')
}
