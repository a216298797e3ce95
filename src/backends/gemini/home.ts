// Gemini CLI takes instructions, retries and turn limits only from files in `~/.gemini`. To set them for one run
// without touching those of the operator, the run gets a home of its own: every entry is a link to the operator's, but
// for the two files we add to. Sessions and logins are therefore the operator's.

import { join } from 'node:path'
import { messageOf } from '../../errors.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { Place, RunFiles } from '../engine/place.js'
import { mergeSettings, parseSettings } from '../engine/settings.js'
import type { Turn } from '../engine/turn.js'

const SETTINGS = 'settings.json'
const MEMORY = 'GEMINI.md'
/** Sessions are written below these: they must be links before the CLI makes them here. */
const SESSIONS = ['tmp', 'history']
const UNHEARD_HOOKS = ['SessionStart', 'BeforeTool', 'AfterTool']

/** Returns what `GEMINI_CLI_HOME` is to be. */
export async function createGeminiHome(
  { environment, home, files, list, readFile }: Place,
  signal: AbortSignal,
  systemPrompt: string,
  settings: JsonObject,
): Promise<string> {
  const theirs = homeOf({ environment, home })
  const [names, ownSettings, ownMemory] = await Promise.all([
    list(theirs, signal),
    readFile(join(theirs, SETTINGS), signal),
    readFile(join(theirs, MEMORY), signal),
  ])
  for (const name of SESSIONS) files.makeDirectory(join(theirs, name))
  for (const name of new Set([...SESSIONS, ...names])) {
    if (name !== SETTINGS && name !== MEMORY) files.link(`.gemini/${name}`, join(theirs, name))
  }
  const merged = mergeSettings(parseOwn(join(theirs, SETTINGS), ownSettings), settings)
  files.write(`.gemini/${SETTINGS}`, JSON.stringify(merged))
  if (ownMemory || systemPrompt !== '') writeMemory(files, ownMemory, systemPrompt)
  return files.path
}

/** Replaces the system prompt; the CLI sees it when it reads its memory again. */
export async function changeInstructions(place: Place, signal: AbortSignal, systemPrompt: string): Promise<void> {
  writeMemory(place.files, await place.readFile(join(homeOf(place), MEMORY), signal), systemPrompt)
}

/** Whether the session was begun in this minute, as the name of its file says. */
export async function isFreshSession(
  place: Place,
  signal: AbortSignal,
  sessionId: string,
  now: Date,
): Promise<boolean> {
  const minute = now.toISOString().slice(0, 16).replaceAll(':', '-')
  const name = `session-${minute}-${sessionId.slice(0, 8)}.jsonl`
  const projects = join(homeOf(place), 'tmp')
  const chats = (await place.list(projects, signal)).map((project) => join(projects, project, 'chats'))
  return (await Promise.all(chats.map((directory) => place.list(directory, signal)))).some((names) =>
    names.includes(name),
  )
}

/** The hooks of the operator and of the project that a warm process would not run. */
export async function unheardHooks(
  place: Place,
  signal: AbortSignal,
  { workingDir, isUntrusted }: Pick<Turn, 'workingDir' | 'isUntrusted'>,
): Promise<string[]> {
  const directories = isUntrusted ? [homeOf(place)] : [homeOf(place), join(workingDir, '.gemini')]
  const paths = directories.map((directory) => join(directory, SETTINGS))
  const all = await Promise.all(paths.map(async (path) => parseOwn(path, await place.readFile(path, signal))))
  return UNHEARD_HOOKS.filter((name) => all.some(({ hooks }) => isObject(hooks) && name in hooks))
}

function homeOf({ environment, home }: Pick<Place, 'environment' | 'home'>): string {
  return join(environment['GEMINI_CLI_HOME'] ?? home, '.gemini')
}

/** What the operator has the agent remember, and the system prompt. */
function writeMemory(files: RunFiles, theirs: string | undefined, systemPrompt: string): void {
  const memory = [theirs ?? '', escapeImports(systemPrompt)].filter((text) => text !== '')
  files.write(`.gemini/${MEMORY}`, memory.join('\n\n'))
}

/** `@name` would be replaced by the file of that name. */
function escapeImports(text: string): string {
  return text.replace(/(^|\s)@(?=[./A-Za-z])/g, '$1\\@')
}

function parseOwn(path: string, text: string | undefined): JsonObject {
  try {
    return parseSettings(text || '{}')
  } catch (error) {
    throw new SyntaxError(`${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}
