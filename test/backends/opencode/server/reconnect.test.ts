import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AgentEvent } from '../../../../src/backends/types.js'
import { brokenInvariants } from '../../../contract/invariants.js'
import { type Action, promptOf } from './fake-opencode.js'
import { ServerStage } from './stage.js'
import type { SeenRun } from '../../../kit/seen-run.js'

const texts = fc.array(fc.string({ minLength: 1, maxLength: 5, unit: 'grapheme' }), { minLength: 1, maxLength: 5 })
const said = texts.map((list): Action => ({ do: 'say', texts: list }))
const thought = texts.map(([text = '']): Action => ({ do: 'think', text }))
const round = fc.tuple(fc.array(fc.oneof(said, thought), { maxLength: 2 }), fc.nat(2))
const turn = fc.tuple(fc.array(round, { maxLength: 3 }), fc.array(fc.oneof(said, thought), { maxLength: 2 }), said)

function actionsOf([rounds, before, answer]: typeof turn extends fc.Arbitrary<infer T> ? T : never): Action[] {
  const tools = rounds.flatMap(([words, count], index): Action[] => [
    ...words,
    ...Array.from({ length: count + 1 }, (_, number): Action[] => [
      { do: 'tool', id: `${index}-${number}`, command: 'ls' },
      { do: 'tool-end', id: `${index}-${number}`, output: `${index}`, isError: false },
    ]).flat(),
    { do: 'step', reason: 'tool-calls' },
  ])
  return [{ do: 'start' }, ...tools, ...before, answer, { do: 'step', reason: 'stop' }]
}

it('loses nothing and repeats nothing, wherever the connection breaks', async () => {
  const property = fc.asyncProperty(
    turn,
    fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 4 }),
    fc.boolean(),
    fc.boolean(),
    async (made, cutAfter, waitsForListeners, showsUnfinished) => {
      const prompt = promptOf(...actionsOf(made))
      const [whole, cut] = [
        await play(prompt, {}),
        await play(prompt, { cutAfter, waitsForListeners, showsUnfinished }),
      ]
      expect(told(cut)).toEqual(told(whole))
    },
  )
  await fc.assert(property, { numRuns: 150 })
}, 180_000)

type Conditions = Partial<Pick<ServerStage['server'], 'cutAfter' | 'waitsForListeners' | 'showsUnfinished'>>

async function play(prompt: string, conditions: Conditions): Promise<SeenRun> {
  const stage = await ServerStage.open()
  try {
    Object.assign(stage.server, conditions)
    return await stage.see({ prompt })
  } finally {
    await stage.close()
  }
}

/** All events, regardless of how texts were split. */
function told({ events, result }: SeenRun): object {
  const pieces = events.reduce<string[]>((list, event) => {
    const [kind, text] = pieceOf(event)
    const last = list.at(-1)
    if (text === undefined || !last?.startsWith(`${kind}:`)) return [...list, `${kind}:${text ?? ''}`]
    return [...list.slice(0, -1), last + text]
  }, [])
  return { pieces, broken: brokenInvariants(events), result: { ...result, durationMs: 0 } }
}

function pieceOf(event: AgentEvent): [kind: string, text?: string] {
  if (event.type === 'output' || event.type === 'thinking') return [event.type, event.content]
  if (event.type === 'tool_use') return [`use ${event.toolId} ${JSON.stringify(event.toolInput)}`]
  if (event.type === 'tool_result') return [`result ${event.toolId} ${event.content}`]
  return [event.type]
}
