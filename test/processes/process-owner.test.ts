import { describe, expect, it } from 'vitest'
import { ClaudeCodeBackend } from '../../src/backends/claude/backend.js'
import { Stage } from '../contract/stage.js'

describe('the owner of a backend', () => {
  it('hears of a run by the id of the request', async () => {
    const stage = openStage()
    const calls: unknown[] = []
    const owner = {
      id: 'owner-1',
      started: async ({ runId }: { runId: string }) => void calls.push(['started', runId]),
      ended: async (runId: string) => void calls.push(['ended', runId, stage.alive()]),
    }
    const backend = stage.backend({}, { owner })
    const prompt = stage.prompt({ start: true }, { descendant: 'own-session' }, { answer: 'done' })
    const { result } = await stage.see({ prompt, runId: 'run-1' }, { backend })
    expect([result.finalOutput, calls]).toEqual([
      'done',
      [
        ['started', 'run-1'],
        ['ended', 'run-1', []],
      ],
    ])
  })

  it('that cannot record a run keeps it from starting', async () => {
    const stage = openStage()
    const owner = {
      id: 'owner-1',
      started: () => Promise.reject(new Error('disk full')),
      ended: async () => {},
    }
    const backend = stage.backend({}, { owner })
    const { result, alive } = await stage.see({ prompt: stage.prompt({ touch: 'worked' }) }, { backend })
    const message = 'Claude CLI could not be started: disk full'
    expect([result.failure, alive]).toEqual([{ reason: 'spawn', message, report: message }, []])
  })
})

function openStage(): Stage {
  return new Stage('claude', (config, dependencies) => new ClaudeCodeBackend(config, dependencies))
}
