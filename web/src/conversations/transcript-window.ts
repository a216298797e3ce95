// What of a transcript is held and shown: a stretch of it, bounded, that ends with the latest unless one has gone back.

import type { TranscriptEntry, TranscriptPage } from '../../../src/client/aetheel-client.js'

export interface TranscriptWindow {
  /** Oldest first. */
  entries: TranscriptEntry[]
  /** For older ones; null when there are none. */
  before: number | null
  /** Whether newer ones were let go, to make room for older. */
  isBehind: boolean
}

const MOST_ENTRIES = 120
/** Of all texts together, as far as they are shown. */
const MOST_CHARACTERS = 600_000
const SHOWN_CHARACTERS = 30_000

export const EMPTY_WINDOW: TranscriptWindow = { entries: [], before: null, isBehind: false }

/** The latest page over what is held. Without anything in common there may be a gap, so the page stands alone. */
export function withLatest(held: TranscriptWindow, { entries, next }: TranscriptPage): TranscriptWindow {
  const latest = entries.toReversed()
  const first = latest[0]
  const known = new Set(held.entries.map(({ id }) => id))
  if (held.isBehind || !first || !latest.some(({ id }) => known.has(id))) {
    return trimmed({ entries: latest, before: next, isBehind: false })
  }
  // One that was taken up again has a new number.
  const inPage = new Set(latest.map(({ id }) => id))
  const older = held.entries.filter(({ id, number }) => number < first.number && !inPage.has(id))
  return trimmed({ entries: [...older, ...latest], before: older.length > 0 ? held.before : next, isBehind: false })
}

/** What comes before is put above. What is too much then goes at the end: one looks at the beginning. */
export function withOlder(held: TranscriptWindow, { entries, next }: TranscriptPage): TranscriptWindow {
  const first = held.entries[0]
  const known = new Set(held.entries.map(({ id }) => id))
  const older = entries.toReversed().filter(({ id, number }) => (!first || number < first.number) && !known.has(id))
  const all = [...older, ...held.entries]
  const kept = all.slice(0, roomOf(all))
  return { entries: kept, before: next, isBehind: held.isBehind || kept.length < all.length }
}

function trimmed(held: TranscriptWindow): TranscriptWindow {
  const room = roomOf(held.entries.toReversed())
  if (room >= held.entries.length) return held
  const entries = held.entries.slice(-room)
  return { ...held, entries, before: entries[0]?.number ?? null }
}

/** How many of them can be shown; at least one. */
function roomOf(entries: TranscriptEntry[]): number {
  let characters = 0
  const count = entries.findIndex((entry, index) => {
    characters += weightOf(entry)
    return index > 0 && (index >= MOST_ENTRIES || characters > MOST_CHARACTERS)
  })
  return count === -1 ? entries.length : count
}

function weightOf(entry: TranscriptEntry): number {
  const texts = entry.type === 'message' ? [entry, ...entry.replies] : [entry]
  return texts.reduce((sum, { text }) => sum + Math.min(text.length, SHOWN_CHARACTERS), 0)
}
