// Gemini CLI reads instructions, retries and turn limits only from files in `~/.gemini`. To set them for one run without
// touching the operator's, the run gets its own copy of that directory, in which everything is a link to the original
// except the two files we extend. Sessions and logins are therefore the operator's.

import { join } from 'node:path'
import { messageOf } from '../../errors.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { Place, RunFiles } from '../engine/place.js'
import { mergeSettings, parseSettings } from '../engine/settings.js'
import type { Turn } from '../engine/turn.js'

const SETTINGS = 'settings.json'
const MEMORY = 'GEMINI.md'
/** Hold the sessions. They must be links before the CLI creates them here. */
const SESSIONS = ['tmp', 'history']
const UNSUPPORTED_HOOKS = ['SessionStart', 'BeforeTool', 'AfterTool']

/** Returns the value for `GEMINI_CLI_HOME`. */
export async function createGeminiHome(
  { environment, home, files, list, readFile }: Place,
  signal: AbortSignal,
  systemPrompt: string,
  settings: JsonObject,
): Promise<string> {
  const operatorHome = operatorDirectory({ environment, home })
  const [names, ownSettings, ownMemory] = await Promise.all([
    list(operatorHome, signal),
    readFile(join(operatorHome, SETTINGS), signal),
    readFile(join(operatorHome, MEMORY), signal),
  ])
  for (const name of SESSIONS) files.makeDirectory(join(operatorHome, name))
  for (const name of new Set([...SESSIONS, ...names])) {
    if (name !== SETTINGS && name !== MEMORY) files.link(`.gemini/${name}`, join(operatorHome, name))
  }
  const merged = mergeSettings(parseOwn(join(operatorHome, SETTINGS), ownSettings), settings)
  files.write(`.gemini/${SETTINGS}`, JSON.stringify(merged))
  if (ownMemory || systemPrompt !== '') writeMemory(files, ownMemory, systemPrompt)
  return files.path
}

/** Replaces the system prompt; takes effect when the CLI rereads its memory. */
export async function changeInstructions(place: Place, signal: AbortSignal, systemPrompt: string): Promise<void> {
  writeMemory(place.files, await place.readFile(join(operatorDirectory(place), MEMORY), signal), systemPrompt)
}

/** Whether the session began in the current minute, according to its file name. */
export async function isFreshSession(
  place: Place,
  signal: AbortSignal,
  sessionId: string,
  now: Date,
): Promise<boolean> {
  const minute = now.toISOString().slice(0, 16).replaceAll(':', '-')
  const name = `session-${minute}-${sessionId.slice(0, 8)}.jsonl`
  const projects = join(operatorDirectory(place), 'tmp')
  const chats = (await place.list(projects, signal)).map((project) => join(projects, project, 'chats'))
  return (await Promise.all(chats.map((directory) => place.list(directory, signal)))).some((names) =>
    names.includes(name),
  )
}

/** Hooks of the operator or the project that a warm process would not run. */
export async function unsupportedHooks(
  place: Place,
  signal: AbortSignal,
  { workingDir, isUntrusted }: Pick<Turn, 'workingDir' | 'isUntrusted'>,
): Promise<string[]> {
  const directories = isUntrusted ? [operatorDirectory(place)] : [operatorDirectory(place), join(workingDir, '.gemini')]
  const paths = directories.map((directory) => join(directory, SETTINGS))
  const all = await Promise.all(paths.map(async (path) => parseOwn(path, await place.readFile(path, signal))))
  return UNSUPPORTED_HOOKS.filter((name) => all.some(({ hooks }) => isObject(hooks) && name in hooks))
}

function operatorDirectory({ environment, home }: Pick<Place, 'environment' | 'home'>): string {
  return join(environment['GEMINI_CLI_HOME'] ?? home, '.gemini')
}

/** Combines the operator's memory and the system prompt. */
function writeMemory(files: RunFiles, operatorMemory: string | undefined, systemPrompt: string): void {
  const memory = [operatorMemory ?? '', escapeImports(systemPrompt)].filter((text) => text !== '')
  files.write(`.gemini/${MEMORY}`, memory.join('\n\n'))
}

/** Gemini replaces `@name` by the file of that name. */
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
