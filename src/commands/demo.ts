import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ClaudeCodeBackend } from '../backends/claude-backend.js'
import type { AgentRequest, AgentResult } from '../backends/types.js'
import { ask } from './ask.js'

/** A real executable that speaks Claude Code's wire format; it needs no model. */
const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

/** Two turns of one conversation, through the same code as `aetheel ask`. Returns the exit code. */
export async function demo(
  environment: NodeJS.ProcessEnv,
  stdout: Pick<NodeJS.WritableStream, 'write'>,
  signal: AbortSignal,
): Promise<number> {
  const workingDir = mkdtempSync(join(tmpdir(), 'aetheel-demo-'))
  writeFileSync(join(workingDir, 'hello.txt'), 'Hello\n')
  writeFileSync(join(workingDir, 'notes.md'), '# Notes\n')
  const backend = new ClaudeCodeBackend(
    { cliPath: DEMO_AGENT, workingDir, queryTimeoutMs: 60_000, allowedTools: [], maxTurns: 25 },
    { environment },
  )

  const turn = (prompt: string, sessionId?: string): Promise<AgentResult> => {
    stdout.write(`\nyou    ${prompt}\nagent  `)
    const request: AgentRequest = { prompt, ...(sessionId !== undefined && { sessionId }) }
    return ask({ backend, request, isJson: false, stdout, stderr: stdout, signal })
  }

  try {
    const first = await turn('My name is Ada. Which files are here?')
    const second = first.isError ? first : await turn('What is my name?', first.sessionId)
    return second.isError ? 1 : 0
  } finally {
    rmSync(workingDir, { recursive: true, force: true })
  }
}
