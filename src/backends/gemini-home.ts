// Gemini CLI takes instructions, retries and turn limits only from files in `~/.gemini`. To set them for one run
// without touching those of the operator, the run gets a home of its own: every entry is a link to the operator's, but
// for the two files we add to. Sessions and logins are therefore the operator's.

import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.js'
import type { RunDirectory } from '../processes/run-directory.js'
import type { JsonObject } from './jsonl.js'
import { mergeSettings, parseSettings } from './settings.js'

const SETTINGS = 'settings.json'
const MEMORY = 'GEMINI.md'

/** Returns what `GEMINI_CLI_HOME` is to be. */
export function createGeminiHome(
  files: RunDirectory,
  operatorHome: string,
  systemPrompt: string,
  settings: JsonObject,
): string {
  const theirs = join(operatorHome, '.gemini')
  const ours = join(files.path, '.gemini')
  mkdirSync(ours)
  // Sessions are written below these: they must be links before the CLI makes them here.
  for (const name of ['tmp', 'history']) mkdirSync(join(theirs, name), { recursive: true })
  for (const name of readdirSync(theirs)) {
    if (name !== SETTINGS && name !== MEMORY) symlinkSync(join(theirs, name), join(ours, name))
  }
  files.write(`.gemini/${SETTINGS}`, JSON.stringify(mergeSettings(readSettings(join(theirs, SETTINGS)), settings)))
  const memory = [readIfThere(join(theirs, MEMORY)), escapeImports(systemPrompt)].filter((text) => text !== '')
  if (memory.length > 0) files.write(`.gemini/${MEMORY}`, memory.join('\n\n'))
  return files.path
}

/** `@name` would be replaced by the file of that name. */
function escapeImports(text: string): string {
  return text.replace(/(^|\s)@(?=[./A-Za-z])/g, '$1\\@')
}

function readSettings(path: string): JsonObject {
  try {
    return parseSettings(readIfThere(path) || '{}')
  } catch (error) {
    throw new SyntaxError(`${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}
