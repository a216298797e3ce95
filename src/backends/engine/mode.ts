// Decides whether a turn runs in a warm process or in one of its own. Nothing else does.

import { isAtLeast } from '../../core/versions.js'
import type { AgentMode, AgentProbe } from '../types.js'

const BACKING_OFF =
  'Each turn has a process of its own for now: one that should have stayed did not begin to listen. It is tried again.'

interface ModeInputs {
  mode: AgentMode
  /** The oldest version known to work as a warm process. */
  oldestKnown: string
  /** Whether a warm process recently failed to start. */
  isBackingOff?: boolean
}

interface TurnInputs extends ModeInputs {
  /** The turn needs approvals, which only a warm process can ask for. */
  isAsking: boolean
  /** Only a one-shot command line can do what the request asks for. */
  needsCommandLine: boolean
  /** Contract: called only if it matters. */
  version(): Promise<string | undefined>
}

export async function isWarmTurn({ isAsking, needsCommandLine, version, ...inputs }: TurnInputs): Promise<boolean> {
  if (needsCommandLine) return false
  if (isAsking) return true
  const matters = inputs.mode === 'auto' && !inputs.isBackingOff
  return modeInUse(inputs, matters ? await version() : undefined).mode === 'live'
}

/** What a configured mode resolves to with this version. */
export function modeInUse(
  { mode, oldestKnown, isBackingOff = false }: ModeInputs,
  version: string | undefined,
): Pick<AgentProbe, 'mode' | 'whyNotLive'> {
  if (mode === 'oneshot') return { mode }
  const isKnown = isAtLeast(version, oldestKnown)
  if (mode === 'auto' && !isKnown) {
    const what = version === undefined ? 'its version is not known' : `version ${version} is older than ${oldestKnown}`
    return { mode: 'oneshot', whyNotLive: `Each turn has a process of its own: ${what}.` }
  }
  return isBackingOff ? { mode: 'oneshot', whyNotLive: BACKING_OFF } : { mode: 'live' }
}
