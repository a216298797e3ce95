/** How a newer version of an agent differs from the pinned one, for whoever updates Aetheel to it. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Agent } from './agents.js'
import type { Column } from './columns.js'
import type { Installation } from './installations.js'
import type { Seen } from './wire.js'

/** Recorded from the pinned versions by a full run: options by agent, kinds of messages by column. */
export interface Surface {
  options: Record<string, string[]>
  kinds: Record<string, string[]>
}

export interface AgentDrift {
  agent: Agent
  pinned: string
  installed: string
  /** Newer versions that do not install, with the reason. */
  uninstallable: Record<string, string>
  options: Change
  columns: ColumnDrift[]
}

export interface ColumnDrift {
  title: string
  /** The file that translates its messages. */
  source: string
  kinds: Change
  notUnderstood: string[]
  failures: Array<{ case: string; before: string; now: string }>
}

export interface Change {
  added: string[]
  removed: string[]
}

const run = promisify(execFile)

/** All long options in the subcommand's `--help`. */
export async function optionsOf(agent: Agent, { cliPath, path }: Installation): Promise<string[]> {
  const home = await mkdtemp(join(tmpdir(), 'aetheel-help-'))
  try {
    const found = agent.subcommands.map(async (subcommand) => {
      const words = subcommand === '' ? [] : subcommand.split(' ')
      const { stdout, stderr } = await run(cliPath, [...words, '--help'], {
        env: { PATH: path, HOME: home },
        cwd: home,
      })
      return optionsIn(stdout + stderr).map((option) => [...words, option].join(' '))
    })
    return [...new Set((await Promise.all(found)).flat())].toSorted()
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
}

/** Only at the start of a line: descriptions mention options of other commands too. */
export function optionsIn(help: string): string[] {
  const heads = help.match(/^ *(?:-\w+,? +)?--[\w-]+(?:[, ]+--?[\w-]+)*/gm) ?? []
  return heads.flatMap((head) => head.match(/--[a-z][\w-]*/gi) ?? [])
}

export function compare(before: Iterable<string>, now: Iterable<string>): Change {
  const [old, fresh] = [new Set(before), new Set(now)]
  return {
    added: [...fresh].filter((item) => !old.has(item)).toSorted(),
    removed: [...old].filter((item) => !fresh.has(item)).toSorted(),
  }
}

export function columnDrift(
  title: string,
  { agent, mode }: Column,
  seen: Seen,
  before: Surface,
  failures: ColumnDrift['failures'],
): ColumnDrift {
  return {
    title,
    source:
      mode === 'server'
        ? 'src/backends/opencode/server/server-translation.ts'
        : `src/backends/${agent.name}/${mode === 'live' ? 'warm-driver' : 'backend'}.ts`,
    kinds: compare(before.kinds[title] ?? [], seen.kinds),
    notUnderstood: [...seen.notUnderstood].toSorted(),
    failures,
  }
}

export async function renderDrift(drifts: AgentDrift[]): Promise<string> {
  const reports = await Promise.all(drifts.map(renderAgent))
  return ['Drift from the pinned versions', ...reports].join('\n\n')
}

async function renderAgent({ agent, pinned, installed, uninstallable, options, columns }: AgentDrift): Promise<string> {
  const ownSource = `src/backends/${agent.name}`
  const used = await usedOf(options.removed, join(import.meta.dirname, '..', ownSource))
  const findings = [
    ...Object.entries(uninstallable).map(([version, reason]) => `${version} does not install: ${reason}`),
    ...list('new options', options.added),
    ...list('removed options', options.removed),
    ...list(`removed options that Aetheel passes, see ${ownSource}`, used),
    ...columns.flatMap(renderColumn),
  ]
  const head = `${agent.packageName}: ${installed === pinned ? `${pinned}, as pinned` : `${pinned} is pinned, ${installed} was tested`}`
  return [head, ...(findings.length === 0 ? ['no changes'] : findings).map((line) => `  ${line}`)].join('\n')
}

function renderColumn({ title, source, kinds, notUnderstood, failures }: ColumnDrift): string[] {
  const messages = [
    ...list('new kinds of messages', kinds.added),
    ...list('kinds of messages no longer seen', kinds.removed),
    ...list('not understood', notUnderstood),
  ]
  return [
    ...(messages.length === 0 ? [] : [`${title}, see ${source}`, ...messages.map((line) => `  ${line}`)]),
    ...failures.flatMap(({ case: name, before, now }) => [
      `${title} ${name} fails, see conformance/expectations.ts and ${source}`,
      `  before: ${oneLine(before)}`,
      `  now:    ${oneLine(now)}`,
    ]),
  ]
}

/** The options that occur in our own source. */
async function usedOf(options: string[], source: string): Promise<string[]> {
  const files = await readdir(source, { recursive: true, withFileTypes: true })
  const sources = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), 'utf8'))
  const text = (await Promise.all(sources)).join('\n')
  return options.filter((option) => text.includes(`'${option.slice(option.indexOf('--'))}'`))
}

function list(what: string, items: string[]): string[] {
  return items.length === 0 ? [] : [`${what}: ${items.join(', ')}`]
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 600)
}
