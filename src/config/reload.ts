// Reloads the configuration file while the gateway runs.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config.js'
import { SETTING_NAMES, type SettingName } from './schema.js'
import { type ErrorCode, GatewayError, messageOf } from '../errors.js'

/** Settings that are read for each message or turn. All others need a restart. */
const RELOADABLE_SETTINGS: ReadonlySet<SettingName> = new Set([
  ...(['agentBackend', 'codeAgentDefault', 'backendCliPath', 'backendModel', 'backendMaxTurns'] as const),
  ...(['agentMode', 'liveIdleMs', 'liveMaxProcesses', 'liveMaxMemoryMb', 'liveSpare'] as const),
  ...(['agentPermissions', 'approvalTimeoutMs'] as const),
  ...([
    'allowedTools',
    'queryTimeoutMs',
    'messageTimeoutMs',
    'queryTimeoutRetries',
    'idleTimeoutMs',
    'workingDir',
    'hooks',
    'projects',
  ] as const),
  ...(['attachmentMaxMb', 'attachmentTypes', 'mediaRoots', 'outputChannelId', 'inbound', 'heartbeat'] as const),
  ...(['queueMode', 'defaultProject'] as const),
  ...(['kubernetesContext', 'kubernetesNamespace', 'kubernetesLabel'] as const),
])

export interface ConfigChange {
  /** In effect now. */
  changed: SettingName[]
  /** In effect after a restart. */
  waiting: SettingName[]
}

/** Updates the shared configuration in place: every setting that can change while it is in use. */
export function applyConfig(current: GatewayConfig, next: GatewayConfig): ConfigChange {
  const different = SETTING_NAMES.filter((name) => !isDeepStrictEqual(current[name], next[name]))
  const changed = different.filter((name) => RELOADABLE_SETTINGS.has(name))
  for (const name of changed) {
    if (next[name] === undefined) delete current[name as 'inbound']
    else Object.assign(current, { [name]: next[name] })
  }
  current.isMaxTurnsChosen = next.isMaxTurnsChosen
  current.isDemoAgent = next.isDemoAgent
  return { changed, waiting: different.filter((name) => !RELOADABLE_SETTINGS.has(name)) }
}

interface WatchOptions {
  file: string
  /** Contract: rejects if the file is invalid or asks for something that is not installed. */
  load(): Promise<GatewayConfig>
  onChange(next: GatewayConfig): Promise<void>
  /** The file has a problem; the previous configuration stays in effect. */
  onProblem(problem: string): void
}

const POLL_INTERVAL_MS = 300
/** Errors that only a change to the file can fix. */
const FILE_ERRORS: ReadonlySet<ErrorCode> = new Set(['config_invalid', 'backend_missing'])

/**
 * Contract: reports the current file first, since it may have changed since it was read, then each change, one at a
 * time. Returns a function that stops watching.
 */
export function watchConfig({ file, load, onChange, onProblem }: WatchOptions): () => void {
  let loadedState: string | undefined
  let lastState: string | undefined
  let isReading = false
  let lastProblem: string | undefined
  const poll = async (): Promise<void> => {
    const state = stateOf(file)
    // Some editors write a file in two steps: read it only once it is the same on two polls in a row.
    const isSettled = state === lastState
    lastState = state
    if (isReading || !isSettled || state === loadedState) return
    isReading = true
    loadedState = state
    try {
      await onChange(await load())
      lastProblem = undefined
    } catch (error) {
      const problem = error instanceof GatewayError ? error.message : `${file}: ${messageOf(error)}`
      // Other errors, such as an unreachable database, are not the file's fault: try again.
      const isFileError = error instanceof GatewayError && FILE_ERRORS.has(error.code)
      if (!isFileError) loadedState = undefined
      if (isFileError || problem !== lastProblem) onProblem(problem)
      lastProblem = problem
    } finally {
      isReading = false
    }
  }
  // Polled: file-system notifications get lost on network drives and when an editor replaces the file.
  const timer = setInterval(() => void poll(), POLL_INTERVAL_MS)
  return () => clearInterval(timer)
}

/** Changes whenever the file does. */
function stateOf(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    return messageOf(error)
  }
}
