import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { ContractPart } from './backend-contract.js'
import { agentPath } from '../kit/agents.js'
import { type Stage } from './stage.js'
import { until } from '../kit/waiting.js'
import type { BackendDependencies } from '../../src/backends/engine/cli-backend.js'
import type { AgentRequest } from '../../src/backends/types.js'

export function describeRunEnvironment({ it, itOfProcess, setup }: ContractPart): void {
  /** Which of these variables an agent saw in its environment. */
  const seen = async (
    stage: Stage,
    names: string[],
    request: Partial<AgentRequest>,
    dependencies: Partial<BackendDependencies> = {},
  ): Promise<Record<string, string>> => {
    stage.leaveAnswer('Hello')
    const backend = stage.backend({ cliPath: agentPath('mirror-agent.sh') }, dependencies)
    await stage.see({ prompt: 'Hello', ...request }, { backend })
    const assignments = readFileSync(join(stage.workingDir, 'call-environment'), 'utf8').split('\0')
    const pairs = assignments.map((assignment) => /^([^=]*)=(.*)$/s.exec(assignment)?.slice(1) ?? [])
    return Object.fromEntries(pairs.filter(([name = '']) => names.includes(name)))
  }

  describe('the variables of a run', () => {
    itOfProcess('are seen in it and in no other', async ({ stage }) => {
      const environment = { NPM_TOKEN: 'of the project', DATABASE_URL: 'of the project, too' }
      const names = Object.keys(environment)
      const runs = [await seen(stage, names, { environment }), await seen(stage, names, {})]
      expect(runs).toEqual([environment, {}])
    })

    itOfProcess("stand over the operator's", async ({ stage }) => {
      const operator = { ...stage.environment, [setup.ownVariable]: 'of the operator' }
      const environment = { [setup.ownVariable]: 'of the project' }
      expect(await seen(stage, [setup.ownVariable], { environment }, { environment: operator })).toEqual(environment)
    })

    it.for(['PATH', 'HOME', 'PWD', 'NODE_OPTIONS', 'LD_PRELOAD', 'AETHEEL_RUN_ID', '', 'A=B', 'A\0B'])(
      'cannot be %j, by value or by file',
      async (variable, { stage }) => {
        const failures = []
        for (const given of [{ environment: { [variable]: 'x' } }, { secretFiles: [{ variable, content: 'x' }] }]) {
          const { result, types } = await stage.see({ prompt: 'Hello', ...given })
          failures.push([result.failure, types])
        }
        const message = `The variable ${JSON.stringify(variable)} cannot be set for a run. Use another name.`
        const refused = [{ reason: 'refused', message, report: message }, 'error complete']
        expect(failures).toEqual([refused, refused])
      },
    )

    it('cannot contain a NUL, and the value is not shown', async ({ stage }) => {
      const { result } = await stage.see({ prompt: 'Hello', environment: { TOKEN: 'secret\0' } })
      const message = 'The value of TOKEN contains a NUL character. Pass it as a file instead.'
      expect(result.failure).toEqual({ reason: 'refused', message, report: message })
    })
  })

  describe('the secret files of a run', () => {
    itOfProcess('are private, named by their variables, and gone with it', async ({ stage }) => {
      const cliPath = stage.executable(
        'reader',
        `#!/bin/sh
for file in "$KEY_FILE" "$(dirname "$KEY_FILE")"; do ls -ld "$file" | cut -c 1-10; done > modes
cat "$KEY_FILE" "$answer" > contents
printf %s "$KEY_FILE" > path
cat answer
`,
      )
      stage.leaveAnswer('Hello')
      const secretFiles = [
        { variable: 'KEY_FILE', content: 'one\0two\n' },
        { variable: 'answer', content: 'a name that others have' },
      ]
      const { result } = await stage.see({ prompt: 'Hello', secretFiles }, { backend: stage.backend({ cliPath }) })
      const read = (name: string) => readFileSync(join(stage.workingDir, name), 'utf8')
      expect({
        answer: result.finalOutput,
        contents: read('contents'),
        modes: read('modes'),
        isLeft: existsSync(read('path')),
      }).toEqual({
        answer: 'Hello',
        contents: 'one\0two\na name that others have',
        modes: '-rw-------\ndrwx------\n',
        isLeft: false,
      })
    })

    itOfProcess('are gone when the run is cancelled, too', async ({ stage }) => {
      const controller = new AbortController()
      const cliPath = stage.executable(
        'waiter',
        '#!/bin/sh\n[ "$1" = --version ] && exit\nprintf %s "$KEY_FILE" > path\nexec sleep 60\n',
      )
      const path = join(stage.workingDir, 'path')
      const isWritten = () => existsSync(path) && readFileSync(path, 'utf8') !== ''
      const secretFiles = [{ variable: 'KEY_FILE', content: 'one' }]
      const run = stage.see(
        { prompt: 'Hello', secretFiles },
        { backend: stage.backend({ cliPath }), signal: controller.signal },
      )
      await until(isWritten, 'its start')
      controller.abort()
      const { result } = await run
      const isLeft = () => existsSync(readFileSync(path, 'utf8'))
      if (setup.isShared !== undefined) await until(() => !isLeft(), 'the end of the process')
      expect([result.failure?.reason, isLeft()]).toEqual(['cancelled', false])
    })
  })
}
