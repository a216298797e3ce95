// Follows the configuration file while the gateway runs.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config.js'
import { SETTING_NAMES, type SettingName } from './schema.js'
import { type ErrorCode, GatewayError, messageOf } from '../errors.js'

/** What is looked at anew for each message or turn. Everything else holds from the start of a gateway to its end. */
const LIVE_SETTINGS: ReadonlySet<SettingName> = new Set([
  ...(['agentBackend', 'codeAgentDefault', 'backendCliPath', 'backendModel', 'backendMaxTurns'] as const),
  ...(['agentMode', 'liveIdleMs', 'liveMaxProcesses', 'liveMaxMemoryMb', 'liveSpare'] as const),
  ...(['agentPermissions', 'approvalTimeoutMs'] as const),
  ...(['allowedTools', 'queryTimeoutMs', 'idleTimeoutMs', 'workingDir', 'hooks', 'projects'] as const),
  ...(['attachmentMaxMb', 'attachmentTypes', 'mediaRoots', 'outputChannelId', 'inbound', 'heartbeat'] as const),
  'queueMode',
  ...(['kubernetesContext', 'kubernetesNamespace', 'kubernetesLabel'] as const),
])

export interface ConfigChange {
  /** What holds from now on. */
  changed: SettingName[]
  /** What holds from the next start on. */
  waiting: SettingName[]
}

/** Puts what can change into the configuration that is in use, which everybody reads from. */
export function applyConfig(live: GatewayConfig, next: GatewayConfig): ConfigChange {
  const different = SETTING_NAMES.filter((name) => !isDeepStrictEqual(live[name], next[name]))
  const changed = different.filter((name) => LIVE_SETTINGS.has(name))
  for (const name of changed) {
    if (next[name] === undefined) delete live[name as 'inbound']
    else Object.assign(live, { [name]: next[name] })
  }
  live.isMaxTurnsChosen = next.isMaxTurnsChosen
  return { changed, waiting: different.filter((name) => !LIVE_SETTINGS.has(name)) }
}

interface WatchOptions {
  file: string
  /** Contract: rejects when the file is not right, or asks for what is not there. */
  load(): Promise<GatewayConfig>
  onChange(next: GatewayConfig): Promise<void>
  /** What is wrong with the file; the configuration before goes on. */
  onProblem(problem: string): void
}

const LOOK_EVERY_MS = 300
/** What a change of the file puts right. */
const OF_FILE: ReadonlySet<ErrorCode> = new Set(['config_invalid', 'backend_missing'])

/**
 * Contract: what is there is told first, since it may have changed after it was read, and then each change, one at a
 * time. Returns what ends it.
 */
export function watchConfig({ file, load, onChange, onProblem }: WatchOptions): () => void {
  let told: string | undefined
  let seen: string | undefined
  let isReading = false
  let lastProblem: string | undefined
  const look = async (): Promise<void> => {
    const state = stateOf(file)
    // Some editors write a file in two steps: it is read when it has stayed the same from one look to the next.
    const isSettled = state === seen
    seen = state
    if (isReading || !isSettled || state === told) return
    isReading = true
    told = state
    try {
      await onChange(await load())
      lastProblem = undefined
    } catch (error) {
      const problem = error instanceof GatewayError ? error.message : `${file}: ${messageOf(error)}`
      // Nothing is wrong with the file where the database is away: it is read again.
      const isOfFile = error instanceof GatewayError && OF_FILE.has(error.code)
      if (!isOfFile) told = undefined
      if (isOfFile || problem !== lastProblem) onProblem(problem)
      lastProblem = problem
    } finally {
      isReading = false
    }
  }
  // By looking again and again: notices of the system get lost on network drives, and when an editor puts a new file there.
  const timer = setInterval(() => void look(), LOOK_EVERY_MS)
  return () => clearInterval(timer)
}

/** Differs whenever the file does. */
function stateOf(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    return messageOf(error)
  }
}
