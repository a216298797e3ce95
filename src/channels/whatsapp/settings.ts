/** Of the block `inbound.reply`, what the channel itself goes by. */
export interface ReplySettings {
  /** Left out, nobody may write; `*` is for everybody. */
  allowFrom?: string[]
  session?: { scope: 'per-sender' | 'global'; resetTriggers: string[] }
  /** Of one file that is sent. */
  mediaMaxMb: number
  typingIntervalSeconds: number
}

/** What begins a new session on every channel does so here, too, whatever else is configured. */
const RESET_COMMAND = /^\/new(?=\s|$)/i
/** The address of the one conversation that all share. */
const SHARED_ADDRESS = 'global'

/** Where a person talks. */
export function placeOf(number: string, settings: ReplySettings | undefined): { address: string; isPrivate?: true } {
  return settings?.session?.scope === 'global' ? { address: SHARED_ADDRESS } : { address: number, isPrivate: true }
}

export function mayWrite(number: string, settings: ReplySettings | undefined): boolean {
  const { allowFrom = [] } = settings ?? {}
  return allowFrom.includes('*') || allowFrom.includes(number)
}

/** What stands after a word for a new session: nothing at all for the word alone, undefined without one. */
export function afterReset(text: string, settings: ReplySettings | undefined): string | undefined {
  const triggers = settings?.session?.resetTriggers ?? []
  const trigger =
    RESET_COMMAND.exec(text)?.[0] ??
    triggers.find((word) => text.startsWith(word) && /^(\s|$)/.test(text.slice(word.length)))
  return trigger === undefined ? undefined : text.slice(trigger.length).trim()
}
