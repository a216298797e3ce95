import { createLog, type Log } from '../../src/log.js'

/** For tests that are not about the log. */
export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} }

export interface RecordingLog extends Log {
  readonly logged: Array<[level: keyof Log, message: string, fields: Record<string, unknown>]>
  /** Only warnings and errors, as they were passed in. */
  readonly warnings: Array<Parameters<Log['warn']>>
  /** Their messages. */
  readonly warned: string[]
}

export function recordingLog(): RecordingLog {
  const logged: RecordingLog['logged'] = []
  const warnings: RecordingLog['warnings'] = []
  const warned: string[] = []
  const at =
    (level: keyof Log): Log['warn'] =>
    (...entry) => {
      const [message, fields = {}] = entry
      logged.push([level, message, fields])
      if (level === 'debug' || level === 'info') return
      warnings.push(entry)
      warned.push(message)
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), logged, warnings, warned }
}

/** The gateway's own log, as the lines that an operator would read. */
export function lineLog(): { log: Log; logged: string[] } {
  const logged: string[] = []
  const log = createLog({ level: 'debug', destination: { write: (line) => logged.push(String(line)) > 0 } })
  return { log, logged }
}
