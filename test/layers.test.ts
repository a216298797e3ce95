// Who may import whom. A room is a folder of `src`, or a file directly in it; so is each folder of
// `backends` and of `channels`. Everything may import `core`, `errors` and the types of `log`.

import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SRC = join(import.meta.dirname, '../src')

/** What each room imports; in brackets what it takes only types from. */
const MAY_IMPORT: Record<string, string> = {
  log: 'credentials',
  processes: '',
  kubernetes: 'processes',
  credentials: '(backends) (store)',
  store: '(backends) (channels) (kubernetes) (processes)',
  prompt: '',
  media: '(channels)',

  engine: '(backends) credentials kubernetes log processes',
  claude: '(backends) engine kubernetes',
  codex: '(backends) engine',
  gemini: '(backends) engine',
  opencode: '(backends) (credentials) engine processes',
  pi: '(backends) engine (processes)',
  backends: 'claude codex gemini opencode pi (engine) (kubernetes)',

  config: 'backends channels engine kubernetes log schedule turns',
  runtime: 'backends config credentials engine kubernetes log opencode processes projects prompt (store)',
  discord: '(backends) channels',
  whatsapp: 'channels media',
  channels: '(backends) config discord media processes turns whatsapp',
  approvals: '(backends) (channels) (config) (credentials) runtime (store)',
  archive: 'store',
  conversation: 'approvals backends channels (config) runtime (store) turns',
  projects: 'backends config engine kubernetes processes (store)',
  schedule: '(channels) config prompt (runtime) (store)',
  streams: '(backends) (store)',
  turns:
    '(approvals) (archive) (backends) (channels) (config) conversation credentials engine kubernetes media (metrics) processes projects prompt runtime (store) (streams)',

  metrics: 'backends (turns)',
  'gateway-parts':
    '(approvals) (backends) (channels) (config) (conversation) (credentials) (kubernetes) (media) (metrics) (schedule) (store) (streams) (turns)',
  gateway:
    'approvals archive config conversation credentials (gateway-parts) media metrics processes projects runtime schedule store streams turns',
  service:
    'approvals archive backends channels config conversation credentials engine (gateway) kubernetes media (metrics) (projects) runtime store streams turns',
  client: '(service)',
  cli: 'approvals archive backends channels config conversation credentials discord engine gateway kubernetes log media (opencode) processes projects runtime schedule service store turns whatsapp',
  main: 'cli',
  index: 'backends claude codex gemini opencode pi turns',
}

const EVERYWHERE = ['core', 'errors', '(log)']

const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const imports = FILES.flatMap((file) => importsOf(file))

test('each room imports only from those it may', () => {
  const refused = imports.filter(({ from, to, isType }) => {
    const allowed = [...EVERYWHERE, ...(MAY_IMPORT[from] ?? '').split(' ')]
    return !allowed.includes(to) && !(isType && allowed.includes(`(${to})`))
  })
  expect(refused.map(({ file, to, isType }) => `${file} imports ${isType ? 'types ' : ''}from ${to}`)).toEqual([])
})

test('no rule is there for nothing', () => {
  const needed = new Map<string, string>()
  for (const { from, to, isType } of imports) {
    const pair = `${from} ${to}`
    if (!isType || !needed.has(pair)) needed.set(pair, `${from} ${isType ? `(${to})` : to}`)
  }
  const used = new Set(needed.values())
  const rules = Object.entries(MAY_IMPORT).flatMap(([from, rooms]) =>
    rooms.split(' ').flatMap((room) => (room === '' ? [] : [`${from} ${room}`])),
  )
  expect(rules.filter((rule) => !used.has(rule))).toEqual([])
})

test('what is imported from a package is installed with ours', () => {
  const { dependencies } = JSON.parse(readFileSync(join(SRC, '../package.json'), 'utf8')) as { dependencies: object }
  const missing = FILES.flatMap((file) =>
    packagesOf(file)
      .filter((name) => !isBuiltin(name) && !Object.hasOwn(dependencies, name))
      .map((name) => `${file} imports ${name}`),
  )
  expect(missing).toEqual([])
})

interface Import {
  file: string
  from: string
  to: string
  isType: boolean
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), 'utf8')
  const found = text.matchAll(/^(?:import|export)( type)?\b[^;'"]*?from '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm)
  return [...found].flatMap(([, type, named, loaded]) => {
    const target = relative(SRC, resolve(SRC, dirname(file), named ?? loaded ?? ''))
    const [from, to] = [roomOf(file), roomOf(target)]
    return from === to ? [] : [{ file, from, to, isType: type !== undefined }]
  })
}

/** Types are needed only to compile. */
function packagesOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8')
  const found = text.matchAll(/^(?:import|export)(?! type\b)[^;'"]*?from '([^.'][^']*)'|\bimport\('([^.'][^']*)'\)/gm)
  return [...found].map(([, named, loaded]) => /^(?:@[^/]+\/)?[^/]+/.exec(named ?? loaded ?? '')?.[0] ?? '')
}

function roomOf(file: string): string {
  const [room = '', inner = '', ...rest] = file.replace(/\.[jt]s$/, '').split('/')
  const hasInnerRooms = room === 'backends' || room === 'channels'
  return hasInnerRooms && rest.length > 0 ? inner : room
}
