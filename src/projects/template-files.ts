// Renders the files of a template. Values are untrusted: they are substituted in one pass, so that a value that looks
// like a placeholder stays literal, and a file name never leads out of the project.

import { isUtf8 } from 'node:buffer'
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../errors.js'

type Values = ReadonlyMap<string, string>

/** `from` is the path in the template, `path` the path in the project. */
export type TemplateEntry = { from: string; path: string } & (
  | { kind: 'directory' }
  | { kind: 'file'; content: Uint8Array | string; mode: number }
)

/** No spaces, so that double braces of other languages are left alone. */
const PLACEHOLDER = /\{\{([a-z][a-z0-9_]*)\}\}/g

export function placeholdersIn(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}

/** Contract: every placeholder has a value. */
export function fillPlaceholders(text: string, values: Values): string {
  return text.replaceAll(PLACEHOLDER, (placeholder, name: string) => values.get(name) ?? placeholder)
}

/**
 * Reads the whole template; directories come before their contents.
 *
 * Contract: throws `config_invalid` if the template is wrong, `request_invalid` if the values make it so.
 */
export async function readTemplateFiles(
  template: { name: string; directory: string },
  values: Values,
): Promise<TemplateEntry[]> {
  const entries = await readBelow(template, values, '', '')
  const paths = entries.map(({ path }) => path)
  const twice = paths.find((path, index) => paths.indexOf(path) !== index)
  if (twice === undefined) return entries
  const message = `Template ${template.name}: these values give two files the name ${twice}. Use other values.`
  throw new GatewayError('request_invalid', message)
}

/** Contract: the directory exists, is empty, and nobody else writes to it. */
export async function writeTemplateFiles(directory: string, entries: TemplateEntry[]): Promise<void> {
  for (const entry of entries) {
    const path = join(directory, entry.path)
    if (entry.kind === 'directory') {
      await mkdir(path)
    } else {
      await writeFile(path, entry.content, { flag: 'wx' })
      // Separately, because a mode given at creation goes through the umask.
      await chmod(path, entry.mode)
    }
  }
}

async function readBelow(
  template: { name: string; directory: string },
  values: Values,
  parentFrom: string,
  parentPath: string,
): Promise<TemplateEntry[]> {
  const entries: TemplateEntry[] = []
  for (const child of await readdir(join(template.directory, parentFrom), { withFileTypes: true })) {
    const from = join(parentFrom, child.name)
    const place = `Template ${template.name}: ${from}`
    const filled = (text: string): string => {
      const unknown = placeholdersIn(text).find((name) => !values.has(name))
      if (unknown === undefined) return fillPlaceholders(text, values)
      throw new GatewayError(
        'config_invalid',
        `${place} contains {{${unknown}}}, which template.json5 does not declare.`,
      )
    }
    const name = filled(storedName(child.name))
    if (!isPlainName(name)) {
      const message = `${place} would be named ${JSON.stringify(name)}, which is not a file name. Use other values.`
      throw new GatewayError('request_invalid', message)
    }
    const path = join(parentPath, name)
    if (child.isDirectory()) {
      entries.push({ kind: 'directory', from, path }, ...(await readBelow(template, values, from, path)))
    } else if (child.isFile()) {
      const bytes = await readFile(join(template.directory, from))
      // Installed files may be read-only; a project's are not.
      const { mode } = await stat(join(template.directory, from))
      const content = isText(bytes) ? filled(bytes.toString()) : bytes
      entries.push({ kind: 'file', from, path, content, mode: (mode & 0o777) | 0o600 })
    } else {
      // A link could expose any file on the machine.
      throw new GatewayError('config_invalid', `${place} is neither a file nor a directory. Remove it.`)
    }
  }
  return entries
}

/** npm excludes `.gitignore` from packages and obeys it, so templates use another name. */
function storedName(name: string): string {
  return name === '_gitignore' ? '.gitignore' : name
}

function isPlainName(name: string): boolean {
  // Git reads configuration from such a directory, which can run commands.
  if (/^\.git$/i.test(name)) return false
  return name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= 255 && !/[/\\\p{Cc}]/u.test(name)
}

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0)
}
