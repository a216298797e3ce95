import { describe, expect, it } from 'vitest'
import { pumpStream } from '../../../src/backends/engine/execute-turn.js'
import type { StreamCallback } from '../../../src/backends/types.js'
import { recordingLog } from '../../kit/log.js'

function setup(onStream: StreamCallback) {
  const log = recordingLog()
  return { pump: pumpStream(onStream, log), warnings: log.warnings }
}

describe('a streaming callback', () => {
  it('gets what was pushed, in order, one call at a time; what came meanwhile comes together', async () => {
    const heard: string[] = []
    let inCall = 0
    const { pump } = setup(async (text) => {
      inCall += 1
      heard.push(`${inCall}: ${text}`)
      await new Promise((resolve) => setImmediate(resolve))
      inCall -= 1
    })
    for (const text of ['a', 'b', 'c']) pump.push(text)
    await pump.drained()
    pump.push('d')
    await pump.drained()
    expect(heard).toEqual(['1: a', '1: bc', '1: d'])
  })

  it('that fails is called again, with one warning', async () => {
    const heard: string[] = []
    const { pump, warnings } = setup(async (text) => {
      heard.push(text)
      throw new Error('It broke')
    })
    pump.push('a')
    await pump.drained()
    pump.push('b')
    await pump.drained()
    expect({ heard, warnings }).toEqual({
      heard: ['a', 'b'],
      warnings: [['stream.callback-failed', { error: 'It broke' }]],
    })
  })

  it('that throws synchronously is a failing one too', async () => {
    const { pump, warnings } = setup(() => {
      throw new Error('It broke')
    })
    pump.push('a')
    await pump.drained()
    expect(warnings).toEqual([['stream.callback-failed', { error: 'It broke' }]])
  })

  it('is not called when there was nothing', async () => {
    const heard: string[] = []
    const { pump } = setup(async (text) => void heard.push(text))
    await pump.drained()
    expect(heard).toEqual([])
  })

  it('gets everything even if it throws each time', async () => {
    const got: string[] = []
    const { pump } = setup((text) => {
      got.push(text)
      throw new Error('broken')
    })
    pump.push('a')
    pump.push('b')
    await pump.drained()
    expect(got).toEqual(['a', 'b'])
  })
})
