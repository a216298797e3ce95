// Whether a turn is taken by a warm process or by one of its own: decided here alone.

import { compareVersions } from '../../core/versions.js'
import type { AgentMode, AgentProbe } from '../types.js'

const BACKING_OFF =
  'Each turn has a process of its own for now: one that should have stayed did not begin to listen. It is tried again.'

interface ModeInputs {
  mode: AgentMode
  /** Versions from this one on are known to work as warm processes. */
  oldestKnown: string
  /** Whether a warm process has failed to start a moment ago. */
  isBackingOff?: boolean
}

interface TurnInputs extends ModeInputs {
  /** Only a warm process asks before it uses a tool. */
  isAsking: boolean
  /** What the request says can be had of a command line alone. */
  needsCommandLine: boolean
  /** Contract: not called unless it matters. */
  version(): Promise<string | undefined>
}

export async function isWarmTurn({ isAsking, needsCommandLine, version, ...inputs }: TurnInputs): Promise<boolean> {
  if (needsCommandLine) return false
  if (isAsking) return true
  const matters = inputs.mode === 'auto' && !inputs.isBackingOff
  return modeInUse(inputs, matters ? await version() : undefined).mode === 'live'
}

/** What comes of a mode with this version. */
export function modeInUse(
  { mode, oldestKnown, isBackingOff = false }: ModeInputs,
  version: string | undefined,
): Pick<AgentProbe, 'mode' | 'whyNotLive'> {
  if (mode === 'oneshot') return { mode }
  const isKnown = version !== undefined && compareVersions(version, oldestKnown) >= 0
  if (mode === 'auto' && !isKnown) {
    const what = version === undefined ? 'its version is not known' : `version ${version} is older than ${oldestKnown}`
    return { mode: 'oneshot', whyNotLive: `Each turn has a process of its own: ${what}.` }
  }
  return isBackingOff ? { mode: 'oneshot', whyNotLive: BACKING_OFF } : { mode: 'live' }
}
