// What the Markdown files promise: links lead somewhere, and commands exist. CONTRIBUTING.md says how to mark the others.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { createProgram } from '../src/cli/program.js'

const PROJECT = join(import.meta.dirname, '..')
const FILES = [
  ...readdirSync(PROJECT).filter((name) => name.endsWith('.md')),
  ...['docs', 'templates'].flatMap((folder) => filesBelow(folder).filter((name) => name.endsWith('.md'))),
]
const PAGES = new Map(FILES.map((file) => [file, readFileSync(join(PROJECT, file), 'utf8')]))
/** Its examples are run by another test. */
const RUN_ELSEWHERE = 'docs/http-api.md'
/** Of projects that are made from them. */
const TEMPLATE = /^templates\//

test('links lead to files and headings that are there', () => {
  const dead = [...PAGES].flatMap(([file, page]) =>
    linksOf(page)
      .filter((link) => !leadsSomewhere(file, link))
      .map((link) => `${file}: ${link}`),
  )
  expect(dead).toEqual([])
})

test('the README is short', () => {
  expect(PAGES.get('README.md')?.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
})

test('the pages that code and messages name are there', () => {
  const sources = ['src', 'web/src'].flatMap(filesBelow).filter((name) => /\.tsx?$/.test(name))
  const named = sources.flatMap((file) =>
    [...readFileSync(join(PROJECT, file), 'utf8').matchAll(/(?<![\w/.-])docs\/[\w/-]+\.md/g)].map(([page]) => page),
  )
  expect([named.length > 10, named.filter((page) => !existsSync(join(PROJECT, page)))]).toEqual([true, []])
})

test('commands in shell blocks can be given', async () => {
  const program = parsingOnly()
  const scripts = Object.keys(
    (JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { scripts: object }).scripts,
  )
  const wrong: string[] = []
  let checked = 0
  for (const [file, page] of PAGES) {
    if (TEMPLATE.test(file)) continue
    for (const { info, code } of blocksOf(page)) {
      if (info !== 'sh' && info !== 'sh no-run') continue
      for (const words of commandsOf(code)) {
        const problem = await problemOf(words, program, scripts)
        checked++
        const isExcused = info === 'sh no-run' || file === RUN_ELSEWHERE
        if (problem !== undefined && !(isExcused && problem === UNCHECKED))
          wrong.push(`${file}: ${words.join(' ')}: ${problem}`)
      }
    }
  }
  expect([checked > 80, wrong]).toEqual([true, []])
})

test('commands in the text can be given', async () => {
  const program = parsingOnly()
  const wrong: string[] = []
  let checked = 0
  for (const [file, page] of PAGES) {
    for (const [, span = ''] of withoutBlocks(page).matchAll(/(?<!`)`(aetheel [^`]+)`(?!`)/g)) {
      const [words = []] = commandsOf(span.replaceAll(/<[\w=-]+>/g, 'x'))
      const problem = await problemOf(words, program, [])
      checked++
      // Text names a command, mostly without what it needs.
      const isWrong = problem !== undefined && /unknown|too many|invalid/.test(problem)
      if (isWrong) wrong.push(`${file}: ${span}: ${problem}`)
    }
  }
  expect([checked > 80, wrong]).toEqual([true, []])
})

function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(PROJECT, folder), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(PROJECT, join(entry.parentPath, entry.name)))
}

function blocksOf(page: string): { info: string; code: string }[] {
  return [...page.matchAll(/^( *)```([^\n]*)\n([^]*?)\n\1```$/gm)].map(([, , info = '', code = '']) => ({ info, code }))
}

function withoutBlocks(page: string): string {
  return page.replaceAll(/^( *)```[^]*?^\1```$/gm, '')
}

function linksOf(page: string): string[] {
  const text = withoutBlocks(page).replaceAll(/`[^`\n]*`/g, '')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^[a-z]+:/.test(link))
}

function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? file : relative(PROJECT, join(PROJECT, dirname(file), path))
  if (anchor === undefined) return existsSync(join(PROJECT, target))
  const page = PAGES.get(target)
  return page !== undefined && anchorsOf(page).includes(anchor)
}

/** As GitHub makes them of headings. */
function anchorsOf(page: string): string[] {
  return [...withoutBlocks(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** The commands of a script, each as its words; without variables set before, redirections and comments. */
function commandsOf(script: string): string[][] {
  const commands: string[][] = [[]]
  const tokens = script
    .replaceAll('\\\n', ' ')
    .matchAll(/#[^\n]*|\n|&&|[|;]|[<>]\s*\S+|((?:"[^"]*"|'[^']*'|[^\s|;&<>"']|&(?!&))+)/g)
  for (const [token, word] of tokens) {
    if (word === undefined && !/^[#<>]/.test(token)) commands.push([])
    if (word !== undefined) commands.at(-1)?.push(word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'))
  }
  return commands
    .map((words) => words.slice(words.findIndex((word) => !/^\w+=/.test(word))))
    .filter((words) => words.length > 0)
}

const UNCHECKED = 'not checked: mark the block "sh no-run"'

/** Why it cannot be given, if that is known. */
async function problemOf(words: string[], program: Command, scripts: string[]): Promise<string | undefined> {
  const [name = '', ...rest] = words[0] === 'npx' ? words.slice(1) : words
  if (name === 'aetheel') {
    return program.parseAsync(rest, { from: 'user' }).then(
      () => undefined,
      (error: Error) => error.message,
    )
  }
  if (name === 'npm' && rest[0] === 'run') return scripts.includes(rest[1] ?? '') ? undefined : 'no such script'
  if (name === 'npm' && ['ci', 'pack', 'test'].includes(rest[0] ?? '')) return undefined
  if (name === 'npm' && rest.join(' ') === 'install -g ./aetheel-*.tgz') return undefined
  if (name === 'vitest' && rest[0] === 'run') return rest.slice(1).find((path) => !existsSync(join(PROJECT, path)))
  return UNCHECKED
}

/** The command line, whose commands do nothing. */
function parsingOnly(): Command {
  const program = createProgram({})
  const quieten = (command: Command): void => {
    command
      .exitOverride()
      .configureOutput({ writeOut: () => {}, writeErr: () => {} })
      .allowExcessArguments(false)
    command.action(() => {})
    command.commands.forEach(quieten)
  }
  quieten(program)
  return program
}
