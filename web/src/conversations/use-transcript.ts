import { useEffect, useRef, useState } from 'preact/hooks'
import type { TranscriptEntry, TranscriptPage } from '../../../src/client/aetheel-client.js'
import { api, wordsOf } from '../api.js'
import { EMPTY_WINDOW, type TranscriptWindow, withLatest, withOlder } from './transcript-window.js'

const ENTRIES_AT_ONCE = 30
/** The stream does not report deliveries, so they are polled. */
const DELIVERY_MS = 3_000

export interface Transcript {
  window: TranscriptWindow
  /** Until the first page is loaded. */
  isLoading: boolean
  isLoadingOlder: boolean
  error: string | undefined
  loadOlder: () => void
  /** Back to the end. */
  loadLatest: () => void
}

/**
 * A conversation's messages. The latest page is reloaded whenever `version` changes, but not while the reader looks at
 * older ones, so that nothing moves.
 */
export function useTranscript(id: string, version: string): Transcript {
  const [held, setHeld] = useState<TranscriptWindow>()
  const [isLoadingOlder, setIsLoadingOlder] = useState(false)
  const [error, setError] = useState<string>()
  // Separate, so that loading older entries does not cancel a reload of the latest.
  const latest = useRef(0)
  const older = useRef(0)
  const window = held ?? EMPTY_WINDOW
  const load = async (
    counter: { current: number },
    query: { before?: number },
    join: (known: TranscriptWindow, page: TranscriptPage) => TranscriptWindow,
  ): Promise<void> => {
    const turn = ++counter.current
    try {
      const page = await api.conversations.messages(id, { limit: ENTRIES_AT_ONCE, ...query })
      if (turn !== counter.current) return
      setHeld((known = EMPTY_WINDOW) => join(known, page))
      setError(undefined)
    } catch (problem) {
      if (turn === counter.current) setError(wordsOf(problem))
    }
  }
  const loadOlder = async (before: number): Promise<void> => {
    setIsLoadingOlder(true)
    // By now the window may have changed, so that this page no longer adjoins it.
    await load(older, { before }, (known, page) => (known.before === before ? withOlder(known, page) : known))
    setIsLoadingOlder(false)
  }
  // The reader may have gone back in the meantime.
  const refresh = (): Promise<void> =>
    load(latest, {}, (known, page) => (known.isBehind ? known : withLatest(known, page)))
  useEffect(() => {
    if (!window.isBehind) void refresh()
  }, [version, window.isBehind])
  useEffect(() => {
    if (window.isBehind || !window.entries.slice(-ENTRIES_AT_ONCE).some(isOnItsWay)) return undefined
    const timer = setTimeout(() => void refresh(), DELIVERY_MS)
    return () => clearTimeout(timer)
  }, [window])
  useEffect(
    () => () => {
      latest.current += 1
      older.current += 1
    },
    [],
  )
  return {
    window,
    isLoading: held === undefined && error === undefined,
    isLoadingOlder,
    error,
    loadOlder: () => {
      if (window.before !== null) void loadOlder(window.before)
    },
    loadLatest: () => void load(latest, {}, withLatest),
  }
}

function isOnItsWay(entry: TranscriptEntry): boolean {
  const said = entry.type === 'message' ? entry.replies : [entry]
  return said.some(({ state }) => state === 'pending')
}
