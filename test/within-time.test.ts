import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { inTime, timeLimit } from '../src/within-time.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

it('a time limit comes, whatever is collected as garbage meanwhile', async () => {
  let isOver = false
  const stopped = new AbortController()
  const listen = ({ signal }: { signal: AbortSignal }): void => {
    signal.addEventListener('abort', () => {
      isOver = true
    })
  }
  listen(timeLimit(20, stopped.signal))
  await expect
    .poll(() => {
      collectGarbage()
      return isOver
    })
    .toBe(true)
})

it('a time limit comes with another signal and its reason, and not after the work', async () => {
  const stopped = new AbortController()
  const reasons: unknown[] = []
  const note = async (signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => reasons.push(signal.reason))
  }
  await inTime(60_000, stopped.signal, note)
  const { signal, clear } = timeLimit(60_000, stopped.signal)
  await note(signal)
  stopped.abort('stopped')
  clear()
  await inTime(60_000, stopped.signal, async (late) => void reasons.push(late.reason))
  expect(reasons).toEqual(['stopped', 'stopped'])
})
