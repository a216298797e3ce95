import { expect, it } from 'vitest'
import { painter } from '../../../src/cli/chat/styled-text.js'
import { Transcript } from '../../../src/cli/chat/transcript.js'
import { TurnView } from '../../../src/cli/chat/turn-view.js'

it('shows the notices for a person, not those for developers', () => {
  const transcript = new Transcript()
  const options = { transcript, width: () => 60, now: () => 0, directory: () => undefined, onChange: () => {} }
  const turn = new TurnView(options)
  turn.show({ type: 'notice', content: 'This turn runs in another process.', isTechnical: true, timestamp: 0 })
  turn.show({ type: 'notice', content: 'The session was lost.', timestamp: 0 })
  const rows = transcript.takeFinished().map(painter(false).paint)
  expect(rows.filter((row) => row !== '')).toEqual(['! The session was lost.'])
})
