// The part of a transcript that is loaded: bounded, and ending with the latest entry unless the reader went back.

import type { TranscriptEntry, TranscriptPage } from '../../../src/client/aetheel-client.js'

export interface TranscriptWindow {
  /** Oldest first. */
  entries: TranscriptEntry[]
  /** Where older entries begin; null if there are none. */
  before: number | null
  /** Whether newer entries were dropped to make room for older ones. */
  isBehind: boolean
}

const MOST_ENTRIES = 120
/** Of all texts together, counting only what is shown. */
const MOST_CHARACTERS = 600_000
const SHOWN_CHARACTERS = 30_000

export const EMPTY_WINDOW: TranscriptWindow = { entries: [], before: null, isBehind: false }

/** Merges the latest page. If nothing overlaps there may be a gap, so the page replaces everything. */
export function withLatest(held: TranscriptWindow, { entries, next }: TranscriptPage): TranscriptWindow {
  const latest = entries.toReversed()
  const first = latest[0]
  const known = new Set(held.entries.map(({ id }) => id))
  if (held.isBehind || !first || !latest.some(({ id }) => known.has(id))) {
    return trimmed({ entries: latest, before: next, isBehind: false })
  }
  // A retried entry has a new number.
  const inPage = new Set(latest.map(({ id }) => id))
  const older = held.entries.filter(({ id, number }) => number < first.number && !inPage.has(id))
  return trimmed({ entries: [...older, ...latest], before: older.length > 0 ? held.before : next, isBehind: false })
}

/** Adds older entries above. Excess is dropped at the end, since the reader is at the beginning. */
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

/** How many can be shown; at least one. */
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
