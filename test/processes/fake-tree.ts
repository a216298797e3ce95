import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { AgentScript, type Step } from '../contract/agent-script.js'
import { agentPath } from '../kit/agents.js'
import { livingProcesses } from '../kit/living-processes.js'
import { processDirectory } from '../kit/temporary-directory.js'
import { until } from '../kit/waiting.js'

interface FakeTree {
  child: ChildProcess
  alive(): number
}

/** A fake agent that has taken these steps and keeps running, with a variable that marks its processes. */
export async function startFakeTree(
  steps: Step[],
  marker: Record<string, string>,
  onFinished?: TestContext['onTestFinished'],
): Promise<FakeTree> {
  const directory = processDirectory(onFinished)
  const prompt = new AgentScript('claude', directory).prompt([...steps, { touch: 'ready' }, { hang: true }])
  const child = spawn(agentPath('fake-agent.sh'), [], {
    cwd: directory,
    env: { PATH: process.env['PATH'], ...marker },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.stdin?.end(prompt)
  await until(() => existsSync(join(directory, 'ready')), 'the agent')
  return { child, alive: () => livingProcesses(directory).length }
}
