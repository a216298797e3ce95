import { closeSync, lstatSync, openSync, readSync } from 'node:fs'
import JSON5 from 'json5'
import { isObject, type JsonObject } from '../backends/engine/jsonl.js'
import { GatewayError, messageOf } from '../errors.js'
import { duplicateKeys } from './duplicate-keys.js'
import { explainSyntax } from './explain-syntax.js'

const MAX_BYTES = 1024 * 1024
const EXAMPLE = "{ agentBackend: 'claude' }"

/** True even if the file is unreadable, so that the operator is told. */
export function fileExists(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch (error) {
    return !['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')
  }
}

interface ConfigFile {
  settings: JsonObject
  /** One sentence each. */
  warnings: string[]
}

/** Contract: throws `config_invalid` unless the file is one JSON5 object. */
export function readConfigFile(path: string): ConfigFile {
  const text = decode(path, readBytes(path))
  if (text.trim() === '') throw invalid(`${path}: is empty; write an object such as ${EXAMPLE} into it, or remove it`)
  const settings = parse(path, text)
  if (!isObject(settings)) throw invalid(`${path}: must contain one object, such as ${EXAMPLE}`)
  const warnings = duplicateKeys(text).map(
    ({ key, line, earlierLine }) => `${path}:${line}: ${key} is already set on line ${earlierLine}; the last one wins.`,
  )
  return { settings, warnings }
}

/** Reads at most one byte beyond the limit: the path may be a pipe or a device, which has no size. */
function readBytes(path: string): Buffer {
  const buffer = Buffer.alloc(MAX_BYTES + 1)
  let length = 0
  try {
    const descriptor = openSync(path, 'r')
    try {
      for (let count = -1; count !== 0 && length < buffer.length; length += count) {
        count = readSync(descriptor, buffer, length, buffer.length - length, null)
      }
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw invalid(`${path}: ${describeFileError(error)}`, error)
  }
  if (length > MAX_BYTES) throw invalid(`${path}: is larger than 1 MB; is this the configuration file?`)
  return buffer.subarray(0, length)
}

function describeFileError(error: unknown): string {
  switch (errorCode(error)) {
    case 'ENOENT':
      return 'does not exist; create it, or name another file with --config'
    case 'EISDIR':
      return 'is a directory; name the file in it with --config'
    case 'EACCES':
    case 'EPERM':
      return "cannot be read: permission denied; give the gateway's user access, or name another file with --config"
    default:
      return `cannot be read (${messageOf(error)})`
  }
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw invalid(`${path}: is not UTF-8 text; save it as UTF-8`, error)
  }
}

function parse(path: string, text: string): unknown {
  try {
    return JSON5.parse(text)
  } catch (error) {
    const { lineNumber, columnNumber } = error as { lineNumber?: number; columnNumber?: number }
    const problem = messageOf(error)
      .replace(/^JSON5: /, '')
      .replace(/ at \d+:\d+$/, '')
    const { place, details } = explainSyntax(text, lineNumber ?? 1, columnNumber ?? 1)
    throw invalid([`${path}:${place}: ${problem}`, ...details].join('\n'), error)
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

function invalid(message: string, cause?: unknown): GatewayError {
  return new GatewayError('config_invalid', message, { cause })
}
