// The scripted model in its own process, so that its cost is not attributed to any side.
import { startScriptedModel } from '../../conformance/scripted-model.js'
import { deltasFor, LONG_PROMPT } from './script.js'

const model = await startScriptedModel(({ messages }) => {
  const answered = messages.findLastIndex(({ role }) => role === 'assistant')
  const isLong = messages.slice(answered + 1).some(({ text }) => text.includes(LONG_PROMPT))
  // Nobody reads the requests.
  model.requests.length = 0
  return { type: 'text', deltas: deltasFor(isLong) }
})
process.once('disconnect', () => process.exit())
process.send?.(model.url)
