// The files that a person names in a message, as `@path`.
//
// Only existing files count, and only those named. The agent can read files in its own directory itself; any other file
// is attached.

import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface NamedFile {
  path: string
  name: string
  bytes: number
}

const MENTION = /(?<![^\s(])@(?:"([^"\n]+)"|([^\s"]+))/g

/** The files to attach. `directory` is where the agent works, if that is on this machine. */
export function attachmentsIn(text: string, directory: string | undefined): NamedFile[] {
  const found = new Map<string, NamedFile>()
  for (const [, quoted, plain = ''] of text.matchAll(MENTION)) {
    const file = quoted === undefined ? fileNamed(plain, directory) : fileAt(quoted, directory)
    if (file && (directory === undefined || !isInside(file.path, directory))) found.set(file.path, file)
  }
  return [...found.values()]
}

/** Pasted text that is only file paths, as a terminal inserts when files are dragged into it. */
export function mentionsOf(pasted: string): string | undefined {
  const paths = pathsIn(pasted.trim())
  const files = paths.map((path) => (isAbsolute(path) ? fileAt(path, undefined) : undefined))
  if (files.length === 0 || files.some((file) => file === undefined)) return undefined
  return paths.map((path) => mention(path)).join(' ')
}

/** How a path is written in a message. */
export function mention(path: string): string {
  return /[\s"]|[.,;:!?)]$/.test(path) ? `@"${path}"` : `@${path}`
}

/** Punctuation may follow the path directly. */
function fileNamed(text: string, directory: string | undefined): NamedFile | undefined {
  const bare = text.replace(/[.,;:!?)]+$/, '')
  return fileAt(text, directory) ?? (bare === text ? undefined : fileAt(bare, directory))
}

function fileAt(path: string, directory: string | undefined): NamedFile | undefined {
  const expanded = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path
  if (!isAbsolute(expanded) && directory === undefined) return undefined
  const whole = resolve(directory ?? '/', expanded)
  try {
    const found = statSync(whole)
    return found.isFile() ? { path: whole, name: basename(whole), bytes: found.size } : undefined
  } catch {
    return undefined // No file: it stays text.
  }
}

function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return way !== '' && !way.startsWith('..') && !isAbsolute(way)
}

/** Several paths as terminals write them: quoted, or with special characters escaped by backslashes. */
function pathsIn(text: string): string[] {
  if (text === '' || text.length > 20_000 || text.includes('\n')) return []
  // Some terminals and file managers do not escape spaces.
  if (fileAt(text, undefined)) return [text]
  const words = text.match(/'[^']*'|"[^"]*"|(?:\\.|[^\s\\])+/g) ?? []
  return words.map((word) => {
    if (/^'.*'$|^".*"$/s.test(word)) return word.slice(1, -1)
    if (word.startsWith('file:///')) return pathOfUrl(word)
    return word.replaceAll(/\\(.)/g, '$1')
  })
}

function pathOfUrl(url: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    return url // On another machine, or not a URL: no file has this name.
  }
}
