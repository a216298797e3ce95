import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../src/log.js'
import { BUILT_IN_TEMPLATES, Templates } from '../../src/projects/templates.js'
import { writeTemplateFiles } from '../../src/projects/template-files.js'
import { problemOf, setup } from './stage.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { SILENT_LOG } from '../kit/log.js'

const SUBJECT = { id: 'web', name: 'The web' }

describe('the list of templates', () => {
  it('has the built-in ones', async () => {
    const { projects } = await setup()
    const templates = await projects.templates()
    expect(templates.map(({ name, isBuiltIn, variables }) => [name, isBuiltIn, variables.map((v) => v.name)])).toEqual([
      ['empty', true, []],
      ['go', true, ['module_path']],
      ['node-typescript', true, ['package_name']],
      ['python', true, ['package_name', 'module_name']],
    ])
  })

  it("has the operator's own, which replace built-in ones of the same name", async () => {
    const templateDir = createTemplates({
      'go/template.json5': `{ description: 'Our Go' }`,
      'team/template.json5': `{ description: 'Ours', variables: [{ name: 'a', description: 'An a', default: 'x', pattern: 'x+' }] }`,
      'no-template/README.md': '',
      'a file': '',
    })
    const { projects } = await setup({ templateDir })
    const templates = await projects.templates()
    expect([templates.map(({ name }) => name), templates.filter(({ isBuiltIn }) => !isBuiltIn)]).toEqual([
      ['empty', 'go', 'node-typescript', 'python', 'team'],
      [
        { name: 'go', description: 'Our Go', variables: [], isBuiltIn: false },
        {
          name: 'team',
          description: 'Ours',
          variables: [{ name: 'a', description: 'An a', default: 'x', pattern: 'x+' }],
          isBuiltIn: false,
        },
      ],
    ])
  })

  it('skips an invalid one, and tells the operator', async () => {
    const own = createTemplates({
      'broken/template.json5': '{ description: ',
      'wrong/template.json5': `{ variables: [{ name: 'A', description: 'x', default: '{{b}}', pattern: '(' }], extra: 1 }`,
    })
    const lines: string[] = []
    const destination = new Writable({
      write(chunk: Buffer, _, done) {
        lines.push(chunk.toString())
        done()
      },
    })
    const templates = await new Templates(createLog({ level: 'warn', destination }), own, temporaryDirectory()).list()
    const told = lines.map((line) => JSON.parse(line) as { msg: string; template: string; problem: string })
    expect([templates, told.map(({ msg, template, problem }) => [msg, template, problem.split('\n')])]).toEqual([
      [],
      [
        ['template.unusable', 'broken', [expect.stringContaining('broken/template.json5 is not valid JSON5: ')]],
        [
          'template.unusable',
          'wrong',
          [
            expect.stringContaining('wrong/template.json5: description: '),
            expect.stringContaining('wrong/template.json5: variables.0.name: a variable name has lowercase letters'),
            expect.stringContaining('variables.0.default: may contain only {{project_id}} and {{project_name}}'),
            expect.stringContaining('variables.0.pattern: must be a regular expression'),
            expect.stringContaining('wrong/template.json5: template: '),
          ],
        ],
      ],
    ])
  })

  it("says so when the operator's directory is missing", async () => {
    const { projects, directory } = await setup({ templateDir: '/nowhere' })
    expect([await problemOf(projects.templates()), existsSync(join(directory, 'root/x'))]).toEqual([
      expect.stringMatching(
        /^config_invalid: The templates in \/nowhere cannot be read: .* set TEMPLATE_DIR to another/,
      ),
      false,
    ])
  })
})

describe('a project from a template', () => {
  it('has its files with the variables in names and contents, and their modes', async () => {
    const own = createTemplates({
      'team/template.json5': `{ description: 'x', variables: [
        { name: 'module', description: 'x', default: '{{project_id}}_module' }, { name: 'who', description: 'x' },
      ] }`,
      'team/_gitignore': 'dist\n',
      'team/{{module}}/{{who}}-{{who}}.txt':
        '{{who}} {{ who }} {{Who}} ${{ github.x }} {{{who}}} {{module}} {{project_name}}',
      'team/run.sh': '#!/bin/sh\n',
      'team/read-only': '',
      'team/binary': Buffer.from([0x7b, 0x7b, 0x77, 0x68, 0x6f, 0x7d, 0x7d, 0xff]),
      'team/nested/template.json5': 'kept {{who}}',
    })
    chmodSync(join(own, 'team/run.sh'), 0o755)
    chmodSync(join(own, 'team/read-only'), 0o444)
    const { projects, root } = await setup({ templateDir: own })
    await projects.create({ ...SUBJECT, template: { name: 'team', variables: { who: '{{module}}$&' } } })
    const files = filesIn(join(root, 'web'))
    expect([files, modeOf(join(root, 'web/run.sh')), modeOf(join(root, 'web/read-only'))]).toEqual([
      {
        '.gitignore': 'dist\n',
        binary: '{{who}}\uFFFD',
        'nested/template.json5': 'kept {{module}}$&',
        'read-only': '',
        'run.sh': '#!/bin/sh\n',
        'web_module/{{module}}$&-{{module}}$&.txt':
          '{{module}}$& {{ who }} {{Who}} ${{ github.x }} {{{module}}$&} web_module The web',
      },
      0o755,
      0o644,
    ])
  })

  it.each([
    [{}, 'Template team: needs the variable a: An a'],
    [{ a: 'x', b: 'y' }, 'Template team: has no variable "b"; known: a'],
    [{ a: 'y' }, 'Template team: a is "y", which does not match x+: use another value'],
    [{ a: 'xy' }, 'Template team: a is "xy", which does not match x+: use another value'],
    [{ a: 'x\n' }, 'Template team: a must be one line of at most 200 characters'],
    [{ a: 'x'.repeat(201) }, 'Template team: a must be one line of at most 200 characters'],
    [{ b: 'y' }, 'Template team: has no variable "b"; known: a\nTemplate team: needs the variable a: An a'],
  ])('refuses the variables %j', async (variables, problem) => {
    const templateDir = createTemplates({
      'team/template.json5': `{ description: 'x', variables: [{ name: 'a', description: 'An a', pattern: 'x+' }] }`,
    })
    const { projects, root } = await setup({ templateDir })
    const creation = projects.create({ ...SUBJECT, template: { name: 'team', variables } })
    expect([await problemOf(creation), readdirSync(root)]).toEqual([`request_invalid: ${problem}`, []])
  })

  it.each(['..', '.', '', '../x', 'a/b', 'a\\b', '.git', '.GIT'])(
    'refuses the value %j as part of a path',
    async (value) => {
      const templateDir = createTemplates({
        'team/template.json5': `{ description: 'x', variables: [{ name: 'a', description: 'x' }] }`,
        'team/{{a}}/file': 'x',
      })
      const { projects, root } = await setup({ templateDir })
      const creation = projects.create({ ...SUBJECT, template: { name: 'team', variables: { a: value } } })
      expect([await problemOf(creation), readdirSync(root)]).toEqual([
        `request_invalid: Template team: {{a}} would be named ${JSON.stringify(value)}, which is not a file name. Use other values.`,
        [],
      ])
    },
  )

  it('never writes outside its directory, whatever the values', async () => {
    const own = createTemplates({
      'team/template.json5': `{ description: 'x', variables: [{ name: 'a', description: 'x' }, { name: 'b', description: 'x' }] }`,
      'team/{{a}}/{{b}}{{a}}': '{{a}}',
    })
    const templates = new Templates(SILENT_LOG, own)
    const place = temporaryDirectory()
    const part = fc.constantFrom('..', '.', '/', '\\', '\0', 'a', '%2e', '{{a}}', '~', ' ', '-')
    const value = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''))
    let runs = 0
    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        runs += 1
        const directory = join(place, `run-${runs}`, 'project')
        mkdirSync(directory, { recursive: true })
        const problem = await problemOf(
          templates.render('team', { a, b }, SUBJECT).then((entries) => writeTemplateFiles(directory, entries)),
        )
        const written = Object.keys(filesIn(join(place, `run-${runs}`)))
        expect(written).toEqual(problem === 'none' ? [`project/${a}/${b}${a}`] : [])
      }),
      { numRuns: 300 },
    )
  })

  it('refuses two files of the same name', async () => {
    const templateDir = createTemplates({
      'team/template.json5': `{ description: 'x', variables: [{ name: 'a', description: 'x' }] }`,
      'team/{{a}}': '1',
      'team/x': '2',
    })
    const { projects, root } = await setup({ templateDir })
    const creation = projects.create({ ...SUBJECT, template: { name: 'team', variables: { a: 'x' } } })
    expect([await problemOf(creation), readdirSync(root)]).toEqual([
      'request_invalid: Template team: these values give two files the name x. Use other values.',
      [],
    ])
  })

  it('refuses a file with an undeclared placeholder', async () => {
    const templateDir = createTemplates({ 'team/template.json5': `{ description: 'x' }`, 'team/a': '{{typo}}' })
    const { projects } = await setup({ templateDir })
    expect(await problemOf(projects.create({ ...SUBJECT, template: { name: 'team' } }))).toBe(
      'config_invalid: Template team: a contains {{typo}}, which template.json5 does not declare.',
    )
  })

  it('copies nothing through a link', async () => {
    const templateDir = createTemplates({ 'team/template.json5': `{ description: 'x' }`, secret: 'hunter2' })
    symlinkSync(join(templateDir, 'secret'), join(templateDir, 'team/link'))
    const { projects } = await setup({ templateDir })
    expect(await problemOf(projects.create({ ...SUBJECT, template: { name: 'team' } }))).toBe(
      'config_invalid: Template team: link is neither a file nor a directory. Remove it.',
    )
  })

  it.each(['nope', '..', '../templates/empty', '', 'empty/', '/etc', 'toString'])(
    'refuses the unknown template %j',
    async (name) => {
      const { projects } = await setup()
      expect(await problemOf(projects.create({ ...SUBJECT, template: { name } }))).toBe(
        `not_found: There is no template ${JSON.stringify(name)}. Known: empty, go, node-typescript, python`,
      )
    },
  )
})

it('ships the templates with the package', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    files: string[]
  }
  expect([manifest.files.includes('templates'), existsSync(join(BUILT_IN_TEMPLATES, 'empty'))]).toEqual([true, true])
})

function createTemplates(files: Record<string, string | Buffer>): string {
  const directory = temporaryDirectory()
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return directory
}

function filesIn(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    paths.toSorted().map((path) => [path.slice(directory.length + 1), readFileSync(path, 'utf8')]),
  )
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}
