// The contract of every backend that asks for approval before it uses a tool.

import { describe, expect, it } from 'vitest'
import type { AgentEvent, AgentResult, ApprovalRequest, Approve } from '../../src/backends/types.js'
import { until } from '../kit/waiting.js'
import { brokenInvariants } from './invariants.js'
import { seenIn } from '../kit/seen-run.js'

/** One turn. */
export interface AskingTurn {
  events: AgentEvent[]
  stop(): void
  ended: Promise<unknown>
}

export interface AskingAgent {
  /** `allowed` and `denied` ask for the tool and then answer, `asked` asks for it, `after` answers. */
  begin(prompt: AskingPrompt, approve: Approve, sessionId?: string): AskingTurn
}

export type AskingPrompt = 'allowed' | 'denied' | 'asked' | 'after'

interface AskingSetup {
  /** Contract: called in a test. `asks` begins with `allowed`, `asks-interrupt` with `asked`. */
  open(what: 'asks' | 'asks-interrupt'): Promise<AskingAgent>
  /** The tool call it wants approved. */
  tool: ApprovalRequest
}

const REASON = 'Not today, said Ann.'

export function describeApprovals(name: string, { open, tool }: AskingSetup): void {
  describe(`${name} asks before it uses a tool`, () => {
    it('and uses it when it is allowed', async () => {
      const agent = await open('asks')
      const asked: ApprovalRequest[] = []
      const turn = agent.begin('allowed', async (request) => {
        asked.push(request)
        return { isAllowed: true }
      })
      const result = await resultOf(turn)
      expect([asked, result.failure, brokenInvariants(turn.events)]).toEqual([[tool], undefined, []])
      expect(toolResults(turn)).toEqual([expect.objectContaining({ isError: false })])
      expect(result.finalOutput).not.toBe('')
    })

    it('and continues without it when denied, and says why', async () => {
      const agent = await open('asks')
      const first = await resultOf(agent.begin('allowed', async () => ({ isAllowed: true })))
      const turn = agent.begin('denied', async () => ({ isAllowed: false, message: REASON }), first.sessionId)
      const result = await resultOf(turn)
      expect([result.failure, brokenInvariants(turn.events)]).toEqual([undefined, []])
      expect(toolResults(turn)).toEqual([
        expect.objectContaining({ isError: true, content: expect.stringContaining(REASON) }),
      ])
      expect(result.finalOutput).not.toBe('')
    })

    it('and stops at once while it waits; a late answer changes nothing, and the next turn is answered', async () => {
      const agent = await open('asks-interrupt')
      let answerLate = (): void => {}
      let signal: AbortSignal | undefined
      const turn = agent.begin('asked', async (_request, given) => {
        signal = given
        await new Promise<void>((resolve) => {
          answerLate = resolve
        })
        return { isAllowed: true }
      })
      await until(() => signal, 'the question')
      turn.stop()
      const result = await resultOf(turn)
      answerLate()
      expect([result.failure?.reason, signal?.aborted, brokenInvariants(turn.events)]).toEqual(['cancelled', true, []])
      expect(toolResults(turn)).toEqual([expect.objectContaining({ isError: true })])
      const after = await resultOf(agent.begin('after', async () => ({ isAllowed: true }), result.sessionId))
      expect([after.failure, after.finalOutput]).toEqual([undefined, expect.stringMatching(/./)])
    })
  })
}

async function resultOf({ events, ended }: AskingTurn): Promise<AgentResult> {
  await ended
  return seenIn(events).result
}

function toolResults({ events }: AskingTurn): AgentEvent[] {
  return events.filter(({ type }) => type === 'tool_result')
}
