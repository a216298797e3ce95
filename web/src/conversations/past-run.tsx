import { useEffect, useState } from 'preact/hooks'
import { api, wordsOf } from '../api.js'
import { formatCount } from '../format.js'
import { ErrorNote } from '../parts/error-note.js'
import { RunView } from '../parts/run-view.js'
import { RunModel } from '../run-model.js'
import { type Folds, lastOpened } from '../use-fold.js'

const EVENTS_AT_ONCE = 1000
/** Events of one run that are loaded before a person asks for more. */
const MOST_EVENTS = 20_000
/** Steps on the page at once. */
const SHOWN_STEPS = 40

/** Everything that happened in a run, some steps at a time, starting with what was opened last. */
export function PastRun({ runId, folds }: { runId: string; folds: Folds }) {
  const { model, count, isDone, isPaused, error, loadMore } = usePastRun(runId)
  const [opened] = useState(() => lastOpened(folds))
  const [chosen, setFirst] = useState<number>()
  const steps = model.blocks.length
  const first = chosen ?? firstWith(model.blocks.findIndex(({ key }) => key === opened))
  const shown = model.blocks.slice(first, first + SHOWN_STEPS)
  if (error !== undefined && steps === 0) return <ErrorNote words={error} onRetry={loadMore} />
  if (isDone && steps === 0) return <p class="muted">No steps: the agent only answered.</p>
  return (
    <div class="past-run">
      <div class="row muted">
        <span>
          {steps === 0 ? 'Loading…' : `Steps ${first + 1} to ${first + shown.length} of ${steps}`}
          {steps > 0 && ` · ${formatCount(count)} events`}
          {!isDone && !isPaused && steps > 0 && ', loading more…'}
        </span>
        {steps > SHOWN_STEPS && (
          <span class="row">
            <Jump label="First" to={0} at={first} onJump={setFirst} />
            <Jump label="Earlier" to={Math.max(0, first - SHOWN_STEPS)} at={first} onJump={setFirst} />
            <Jump label="Later" to={laterOf(first, steps)} at={first} onJump={setFirst} />
            <Jump label="Last" to={lastOf(steps)} at={first} onJump={setFirst} />
          </span>
        )}
      </div>
      <RunView model={{ blocks: shown, dropped: 0, folds }} />
      {error !== undefined && <ErrorNote words={error} onRetry={loadMore} />}
      {isPaused && (
        <button type="button" onClick={loadMore}>
          Load more
        </button>
      )}
    </div>
  )
}

function Jump({ label, to, at, onJump }: { label: string; to: number; at: number; onJump: (to: number) => void }) {
  return (
    <button type="button" class="quiet" disabled={to === at} onClick={() => onJump(to)}>
      {label}
      <span class="hidden"> steps</span>
    </button>
  )
}

/** The first step of the page that contains this one. */
function firstWith(step: number): number {
  return Math.max(0, Math.floor(step / SHOWN_STEPS) * SHOWN_STEPS)
}

function lastOf(steps: number): number {
  return firstWith(steps - 1)
}

function laterOf(first: number, steps: number): number {
  return Math.min(first + SHOWN_STEPS, lastOf(steps))
}

interface Loaded {
  model: RunModel
  count: number
  after: number
  isDone: boolean
  isPaused: boolean
  error?: string
}

/** The events of a run, page by page. Loaded ones are shown while the rest is loading. */
export function usePastRun(runId: string): Loaded & { loadMore: () => void } {
  const [loaded, setLoaded] = useState<Loaded>(() => ({
    model: new RunModel(Infinity),
    count: 0,
    after: 0,
    isDone: false,
    isPaused: false,
  }))
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let isLeft = false
    const load = async (): Promise<void> => {
      let { after, count } = loaded
      const { model } = loaded
      const end = count + MOST_EVENTS
      setLoaded({ model, count, after, isDone: false, isPaused: false })
      for (;;) {
        const page = await api.runEvents(runId, { after, limit: EVENTS_AT_ONCE })
        if (isLeft) return
        for (const event of page.events) model.apply(event)
        count += page.events.length
        after = page.next ?? after
        const isDone = page.next === null
        const isPaused = !isDone && count >= end
        setLoaded({ model, count, after, isDone, isPaused })
        if (isDone || isPaused) return
      }
    }
    load().catch((error: unknown) => {
      if (!isLeft) setLoaded((before) => ({ ...before, isPaused: false, error: wordsOf(error) }))
    })
    return () => {
      isLeft = true
    }
  }, [runId, turn])
  return { ...loaded, loadMore: () => setTurn(turn + 1) }
}
