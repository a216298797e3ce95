import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { ContractPart } from './backend-contract.js'
import { agentPath } from '../kit/agents.js'

// Newer than any tested version.
const NEW_AGENT = `#!/bin/sh
if [ "$1" = --version ]; then echo 9999.0.0; exit; fi
exec ${agentPath('mirror-agent.sh')} "$@"
`

export function describeUntrusted({ itHere, setup }: ContractPart): void {
  describe('in an untrusted project', () => {
    itHere('an agent works, and git runs nothing that the project names', async ({ stage }) => {
      const backend = stage.backend({ cliPath: stage.executable('new-agent', NEW_AGENT) })
      stage.leaveAnswer('Hello')
      const environment = { GIT_CONFIG_COUNT: '0' }
      const { result } = await stage.see({ prompt: 'Hello', isUntrusted: true, environment }, { backend })
      const variables = readFileSync(join(stage.workingDir, 'call-environment'), 'utf8').split('\0')
      const git = variables.filter((assignment) => assignment.startsWith('GIT_')).toSorted()
      expect({ answer: result.finalOutput, git }).toEqual({
        answer: 'Hello',
        git: [
          'GIT_CONFIG_COUNT=3',
          'GIT_CONFIG_KEY_0=core.fsmonitor',
          'GIT_CONFIG_KEY_1=core.hooksPath',
          'GIT_CONFIG_KEY_2=protocol.ext.allow',
          'GIT_CONFIG_VALUE_0=false',
          'GIT_CONFIG_VALUE_1=/dev/null',
          'GIT_CONFIG_VALUE_2=never',
        ],
      })
    })

    itHere('an agent is not started beside git settings that may run a program', async ({ stage }) => {
      const cliPath = stage.executable('new-agent', NEW_AGENT)
      const settings = join(stage.workingDir, '.git/config')
      mkdirSync(join(stage.workingDir, '.git'))
      writeFileSync(settings, '[filter "x"]\n\tclean = touch ran\n')
      const { result } = await stage.see(
        { prompt: 'Hello', isUntrusted: true },
        { backend: stage.backend({ cliPath }) },
      )
      const message = `The project is untrusted, and ${settings} sets filter.x.clean, which can make git run a program or leave the project. Remove the setting, or trust the project.`
      expect([result.failure, existsSync(join(stage.workingDir, 'call-environment'))]).toEqual([
        { reason: 'refused', message, report: message },
        false,
      ])
    })

    itHere('an agent older than any that was tried is refused', async ({ stage }) => {
      const backend = stage.backend({ cliPath: agentPath('old-agent.mjs') })
      const { result, types } = await stage.see({ prompt: 'Hello', isUntrusted: true }, { backend })
      const message = expect.stringMatching(
        new RegExp(
          `^${setup.label} 0\\.0\\.7 is too old for an untrusted project\\. Update it to [\\d.]+ or newer\\.$`,
        ),
      )
      expect([result.failure, result.exitCode, types]).toEqual([
        { reason: 'refused', message, report: result.failure?.message },
        undefined,
        'error complete',
      ])
    })

    itHere('an agent that does not tell its version is refused', async ({ stage }) => {
      const cliPath = stage.executable('silent-agent', '#!/bin/sh\n[ "$1" = --version ] || touch started\n')
      const { result } = await stage.see(
        { prompt: 'Hello', isUntrusted: true },
        { backend: stage.backend({ cliPath }) },
      )
      const message = `The version of ${setup.label} could not be read, so it is not started in an untrusted project. Check that \`${cliPath} --version\` works.`
      expect([result.failure, existsSync(join(stage.workingDir, 'started'))]).toEqual([
        { reason: 'refused', message, report: message },
        false,
      ])
    })

    itHere('a cancel while the version is read is a cancel', async ({ stage }) => {
      const controller = new AbortController()
      const asked = join(stage.directory, 'asked')
      const cliPath = stage.executable('slow-agent', `#!/bin/sh\ntouch ${asked}\nexec sleep 60\n`)
      const run = stage.see(
        { prompt: 'Hello', isUntrusted: true },
        { backend: stage.backend({ cliPath }), signal: controller.signal },
      )
      await expect.poll(() => existsSync(asked)).toBe(true)
      controller.abort()
      const { result, alive } = await run
      expect([result.failure?.reason, alive]).toEqual(['cancelled', []])
    })
  })
}
