import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { START, type Step } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'

export function describeSessions({ it, setup }: ContractPart): void {
  describe('a session', () => {
    it('continues under its own id', async ({ stage }) => {
      const prompt = stage.prompt({ start: setup.knownSession }, { answer: 'Hello again' })
      const result = await stage.backend().execute(prompt, '', setup.knownSession)
      expect(result).toEqual({ isError: false, responseText: 'Hello again', sessionId: setup.knownSession })
    })

    it('is continued in the directory where it began', async ({ stage }) => {
      const backend = stage.backend()
      const workingDir = stage.makeDirectory('elsewhere')
      const { result } = await stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }), workingDir }, { backend })
      const prompt = stage.prompt({ start: setup.newSession }, { touch: 'continued' }, { answer: 'Hello again' })
      await stage.see({ prompt, sessionId: result.sessionId ?? '' }, { backend })
      expect(existsSync(join(workingDir, 'continued'))).toEqual(true)
    })

    it('that the CLI does not know is lost, and has no id', async ({ stage }) => {
      stage.openSessionsAs()
      const request = { prompt: stage.prompt(...setup.unknownSession), sessionId: setup.knownSession }
      const { result, broken } = await stage.see(request)
      expect({ reason: result.failure?.reason, sessionId: result.sessionId, broken }).toEqual({
        reason: 'session_lost',
        sessionId: undefined,
        broken: [],
      })
    })

    it.runIf(setup.startsAnew)('is lost when the agent starts another one, which is stopped', async ({ stage }) => {
      stage.openSessionsAs(setup.otherSession)
      const steps: Step[] = [{ descendant: 'own-session' }, { start: setup.otherSession }, { hang: true }]
      const request = { prompt: stage.prompt(...steps), sessionId: setup.knownSession }
      const { result, types, broken, alive } = await stage.see(request)
      expect({ failure: result.failure, sessionId: result.sessionId, types, broken, alive }).toMatchObject({
        failure: { reason: 'session_lost' },
        sessionId: undefined,
        types: 'error complete',
        broken: [],
        alive: [],
      })
    })

    it.for(['-', '--help', '-c', 'latest', '1', '../../etc', 'a\0b', ' ', ...setup.wrongSessions])(
      'that cannot be one never reaches a command line: %j',
      async (sessionId, { stage }) => {
        const { result, types, broken } = await stage.see({
          prompt: stage.prompt(START, { answer: 'Hello' }),
          sessionId,
        })
        expect({ result, types, broken }).toMatchObject({
          result: { isError: true, failure: { reason: 'session_lost' } },
          types: 'error complete',
          broken: [],
        })
        expect(result).not.toHaveProperty('exitCode')
      },
    )
  })
}
