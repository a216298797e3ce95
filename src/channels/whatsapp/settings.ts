/** The part of `inbound.reply` that the channel itself uses. */
export interface ReplySettings {
  /** Without it nobody may write; `*` allows everyone. */
  allowFrom?: string[]
  session?: { scope: 'per-sender' | 'global'; resetTriggers: string[] }
  /** Per outgoing file. */
  mediaMaxMb: number
  typingIntervalSeconds: number
}

/** Starts a new session as on every channel, whatever else is configured. */
const RESET_COMMAND = /^\/new(?=\s|$)/i
/** The address of the single conversation that everyone shares. */
const SHARED_ADDRESS = 'global'

/** The conversation of a person. */
export function placeOf(number: string, settings: ReplySettings | undefined): { address: string; isPrivate?: true } {
  return settings?.session?.scope === 'global' ? { address: SHARED_ADDRESS } : { address: number, isPrivate: true }
}

export function mayWrite(number: string, settings: ReplySettings | undefined): boolean {
  const { allowFrom = [] } = settings ?? {}
  return allowFrom.includes('*') || allowFrom.includes(number)
}

/** The text after a reset trigger: empty if the trigger stands alone, undefined if there is none. */
export function afterReset(text: string, settings: ReplySettings | undefined): string | undefined {
  const triggers = settings?.session?.resetTriggers ?? []
  const trigger =
    RESET_COMMAND.exec(text)?.[0] ??
    triggers.find((word) => text.startsWith(word) && /^(\s|$)/.test(text.slice(word.length)))
  return trigger === undefined ? undefined : text.slice(trigger.length).trim()
}
