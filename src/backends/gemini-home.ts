// Gemini CLI takes instructions, retries and turn limits only from files in `~/.gemini`. To set them for one run
// without touching those of the operator, the run gets a home of its own: every entry is a link to the operator's, but
// for the two files we add to. Sessions and logins are therefore the operator's.

import { join } from 'node:path'
import { messageOf } from '../errors.js'
import type { JsonObject } from './jsonl.js'
import type { Place } from './place.js'
import { mergeSettings, parseSettings } from './settings.js'

const SETTINGS = 'settings.json'
const MEMORY = 'GEMINI.md'
/** Sessions are written below these: they must be links before the CLI makes them here. */
const SESSIONS = ['tmp', 'history']

/** Returns what `GEMINI_CLI_HOME` is to be. */
export async function createGeminiHome(
  { environment, home, files, list, readFile }: Place,
  signal: AbortSignal,
  systemPrompt: string,
  settings: JsonObject,
): Promise<string> {
  const theirs = join(environment['GEMINI_CLI_HOME'] ?? home, '.gemini')
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
  const memory = [ownMemory ?? '', escapeImports(systemPrompt)].filter((text) => text !== '')
  if (memory.length > 0) files.write(`.gemini/${MEMORY}`, memory.join('\n\n'))
  return files.path
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
