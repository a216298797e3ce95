import { Writable } from 'node:stream'
import { pino } from 'pino'
import { printable } from './core/one-line.js'
import { createScrubber, type Scrubber } from './credentials/scrubber.js'

/** Messages are dotted nouns (`backend.option-ignored`); what varies goes into the fields. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export type LogLevel = (typeof LOG_LEVELS)[number]

interface LogOptions {
  level?: LogLevel
  /** Values that must never appear in a line. */
  secrets?: string[]
  /** Hides secrets that become known later; `secrets` are added to it. */
  scrubber?: Pick<Scrubber, 'add' | 'scrubJson'>
  /** A terminal gets readable lines, anything else JSON. */
  destination?: LogDestination
}

export type LogDestination = Pick<NodeJS.WritableStream, 'write'> & { isTTY?: boolean }

export function createLog({
  level = 'warn',
  secrets = [],
  scrubber = createScrubber(),
  destination = process.stderr,
}: LogOptions = {}): Log {
  scrubber.add(secrets)
  // Scrub the finished line, not the fields: a secret may be in an error's text or deep inside an object.
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      const safe = scrubber.scrubJson(line)
      destination.write(destination.isTTY ? wordsOf(safe) : safe)
      done()
    },
  })
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream)
  return {
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
  }
}

const LEVEL_NAMES: Record<number, string> = { 20: 'debug', 30: 'info', 40: 'warning', 50: 'error' }

/** A line for people: time, level, message, then the fields. */
function wordsOf(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as { level: number; time: string; msg: string }
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${wordOf(value)}`)
  const clock = new Date(time).toTimeString().slice(0, 8)
  return `${[clock, LEVEL_NAMES[level] ?? level, msg, ...rest].join(' ')}\n`
}

function wordOf(value: unknown): string {
  const text = typeof value === 'string' && /^\S+$/.test(value) ? value : JSON.stringify(value)
  return printable(text)
}

/** The values of variables whose names suggest a secret. */
export function secretsOf(environment: NodeJS.ProcessEnv): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|DATABASE_URL/i.test(name) && value ? [value] : [],
  )
}
