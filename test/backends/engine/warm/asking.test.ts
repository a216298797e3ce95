import { CANCELLED } from '../../../../src/backends/engine/failures.js'
import { startWarmRun } from '../../../../src/backends/engine/warm/warm-process.js'
import type { AgentEvent, BackendName } from '../../../../src/backends/types.js'
import { type AskingAgent, describeApprovals } from '../../../contract/approvals.js'
import { captured, openStage } from './warm-stage.js'

const MODELS: Partial<Record<BackendName, string>> = { codex: 'gpt-5.5', gemini: 'gemini-2.5-flash' }

/** Replays the real CLI's messages. */
async function open(name: BackendName, what: string): Promise<AskingAgent> {
  const model = MODELS[name]
  const options = { ...(model !== undefined && { config: { model } }) }
  const { backend, process } = await openStage(name, captured(name, what), options)
  return {
    begin(prompt, approve, sessionId) {
      const run = startWarmRun(backend.cli, process, {
        prompt,
        approve,
        ...(sessionId !== undefined && { sessionId }),
      })
      const events: AgentEvent[] = []
      const reading = (async () => {
        for await (const event of run.events) events.push(event)
      })()
      return { events, stop: () => run.stop(CANCELLED), ended: Promise.all([run.ended, reading]) }
    },
  }
}

describeApprovals('claude', {
  open: (what) => open('claude', what),
  tool: { toolName: 'Bash', toolInput: { command: 'touch a', description: 'Run it' } },
})

describeApprovals('codex', {
  open: (what) => open('codex', what),
  tool: { toolName: 'command_execution', toolInput: { command: 'touch a', cwd: '/workspace' } },
})

describeApprovals('gemini', {
  open: (what) => open('gemini', what),
  tool: { toolName: 'run_shell_command', toolInput: { command: 'touch a' } },
})
