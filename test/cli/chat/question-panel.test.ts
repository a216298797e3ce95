import { expect, it, onTestFinished, vi } from 'vitest'
import { QuestionPanel } from '../../../src/cli/chat/question-panel.js'
import { Transcript } from '../../../src/cli/chat/transcript.js'
import type { OpenQuestion } from '../../../src/cli/control/protocol.js'

const QUESTION: OpenQuestion = {
  ...{ id: 'q', messageId: 'm', backend: 'claude', toolName: 'Bash', summary: 'Bash: ls', request: 'ls' },
  ...{ remembers: 'call', deadline: 600_000 },
}

it('can be answered after a pause, even if its timer fires early by the clock', () => {
  vi.useFakeTimers({ now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  // On a busy machine, timers count from an earlier time than the clock shows.
  let aheadMs = 50
  const changes: boolean[] = []
  const panel = new QuestionPanel({
    transcript: new Transcript(),
    width: () => 80,
    now: () => Date.now() + aheadMs,
    onChange: () => changes.push(panel.isReady(true)),
  })
  panel.update([QUESTION])
  aheadMs = 0
  vi.advanceTimersByTime(1_000)
  expect(changes).toEqual([false, true])
})
