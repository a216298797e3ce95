import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect } from 'vitest'
import { agentPath } from '../kit/agents.js'
import { type Stage } from './stage.js'
import { START, type Step } from './agent-script.js'
import type { ContractPart } from './backend-contract.js'
import type { BackendDependencies } from '../../src/backends/engine/cli-backend.js'
import type { AgentRequest } from '../../src/backends/types.js'

/** How test/fixtures/bin/mirror-agent.sh was called. */
interface Call {
  args: string[]
  stdin: string
  environment: Record<string, string>
}

export function describeCalls({ it, itOfProcess, itHere, setup }: ContractPart): void {
  /** The files that the mirror agent leaves in its working directory prove that it ran there. */
  const call = async (
    stage: Stage,
    request: AgentRequest,
    { directory = stage.workingDir, ...dependencies }: Partial<BackendDependencies> & { directory?: string } = {},
  ): Promise<Call> => {
    stage.leaveAnswer('Hello', directory)
    const backend = stage.backend({ cliPath: agentPath('mirror-agent.sh') }, dependencies)
    const { result } = await stage.see(request, { backend })
    if (result.failure) throw new Error(`There was no call: ${result.failure.message}`)
    const read = (name: string) => readFileSync(join(directory, `call-${name}`), 'utf8')
    const list = (name: string) => read(name).split('\0').slice(0, -1)
    const variables = list('environment').map((assignment) => /^([^=]*)=(.*)$/s.exec(assignment)?.slice(1) ?? [])
    return { args: list('arguments'), stdin: read('stdin'), environment: Object.fromEntries(variables) }
  }

  describe('the call', () => {
    const prompts: Record<string, string> = {
      'a flag': '--help',
      'a dash': '-',
      'a command of the CLI': '/help me',
      'a file': '@/etc/hostname',
      'a file in a sentence': 'Look at @notes.txt and me@example.com.',
      'a shell command': '!ls; $(ls) `ls`',
      NUL: 'a\0b',
      emoji: '🦆 Grüße\r\n漢字',
      'a subcommand': 'resume',
      'beyond the limit of one argument': 'long '.repeat(60_000),
    }
    itOfProcess.for(Object.entries(prompts))(
      'brings the prompt whole and by stdin: %s',
      async ([, prompt], { stage }) => {
        const { stdin, args } = await call(stage, { prompt })
        expect({ stdin, isArgument: args.includes(prompt) && prompt !== '-' }).toEqual({
          stdin: setup.sent(prompt),
          isArgument: false,
        })
      },
    )

    itOfProcess('happens in the working directory', async ({ stage }) => {
      const workingDir = stage.makeDirectory('a project with spaces')
      const { environment } = await call(stage, { prompt: 'Hello', workingDir }, { directory: workingDir })
      expect(environment['PWD']).toEqual(workingDir)
    })

    itHere('names the working directory whole, though the request does not', async ({ stage }) => {
      const workingDir = relative('.', stage.workingDir)
      const { environment, args } = await call(stage, { prompt: 'Hello', workingDir })
      expect([environment['PWD'], args.filter((argument) => argument === workingDir)]).toEqual([stage.workingDir, []])
    })

    itHere('shows the agent its own variables and none of the gateway', async ({ stage }) => {
      const operator = {
        [setup.ownVariable]: 'own',
        [setup.foreignVariable]: 'foreign',
        LANG: 'de_DE.UTF-8',
        https_proxy: 'http://proxy',
        EXTRA_ONE: 'passed',
        EXTRAS: 'not passed',
        DISCORD_TOKEN: 'secret',
        TWILIO_AUTH_TOKEN: 'secret',
        AETHEEL_KEY: 'secret',
        DATABASE_URL: 'secret',
        NODE_OPTIONS: '--no-warnings',
      }
      const dependencies = {
        environment: { ...stage.environment, ...operator },
        passVariables: ['EXTRA_*', 'DISCORD_*', 'DATABASE_URL'],
      }
      const { environment } = await call(stage, { prompt: 'Hello' }, dependencies)
      const passed = Object.keys(operator).filter((name) => name in environment)
      expect(passed).toEqual([setup.ownVariable, 'LANG', 'https_proxy', 'EXTRA_ONE'])
    })

    itOfProcess('hands the system prompt over in files that are gone afterwards', async ({ stage }) => {
      const seen = await call(stage, { prompt: 'Hello', systemPrompt: 'Be brief.' })
      const directories = JSON.stringify(seen).match(/\/[^"\s]*aetheel-run-\w+/g) ?? []
      expect({ isUsed: directories.length > 0, left: directories.filter((path) => existsSync(path)) }).toEqual({
        isUsed: true,
        left: [],
      })
    })

    itOfProcess('keeps the system prompt out of the prompt', async ({ stage }) => {
      const { stdin } = await call(stage, { prompt: 'Hello', systemPrompt: 'Be brief.' })
      expect(stdin).toEqual('Hello')
    })

    it('warns once about each option it cannot honour, and continues', async ({ stage }) => {
      const backend = stage.backend({ maxTurns: 3, allowedTools: ['read'] })
      const { supportsMaxTurns, supportsToolControl } = backend.capabilities()
      const prompt = stage.prompt(START, { answer: 'Hello' })
      const results = [await backend.execute(prompt, ''), await backend.execute(prompt, '')]
      const warning = (option: string, value: unknown) => [
        'backend.option-ignored',
        { backend: setup.name, option, value },
      ]
      expect({ results: results.map(({ responseText }) => responseText), warnings: stage.log.warnings }).toEqual({
        results: ['Hello', 'Hello'],
        warnings: [
          ...(supportsMaxTurns ? [] : [warning('maxTurns', 3)]),
          ...(supportsToolControl ? [] : [warning('allowedTools', ['read'])]),
        ],
      })
    })

    const rounds = (count: number): Step[] =>
      Array.from({ length: count }, (_, index) => ({ tool: { id: `round-${index}`, command: 'ls', output: '.' } }))

    it.runIf(setup.isCounted)('ends an agent that reached its turns', async ({ stage }) => {
      const steps: Step[] = [{ descendant: 'own-session' }, START, ...rounds(2), { hang: true }]
      const { result, broken, alive } = await stage.see({ prompt: stage.prompt(...steps), maxTurns: 2 })
      const message = 'Reached the maximum number of turns (2).'
      expect({ failure: result.failure, sessionId: result.sessionId, broken, alive }).toEqual({
        failure: { reason: 'max_turns', message, report: message },
        sessionId: setup.newSession,
        broken: [],
        alive: [],
      })
    })

    it.runIf(setup.isCounted)('lets an agent answer in its last turn', async ({ stage }) => {
      const prompt = stage.prompt(START, ...rounds(2), { answer: 'Hello' })
      const { result } = await stage.see({ prompt, maxTurns: 3 })
      expect(result).toMatchObject({ isError: false, finalOutput: 'Hello' })
    })

    it('takes /compact as its capabilities say', async ({ stage }) => {
      const backend = stage.backend()
      const request = { prompt: '/compact keep names', isCommand: true, sessionId: setup.knownSession }
      const { result, broken } = await stage.see(request, { backend })
      const isTaken = result.failure?.reason !== 'refused'
      expect({ isTaken, broken }).toEqual({ isTaken: backend.capabilities().supportsCompact, broken: [] })
    })

    it.for(['', ' \n'])('is refused without a prompt: %j', async (prompt, { stage }) => {
      const { result, types, broken } = await stage.see({ prompt })
      expect({ result, types, broken }).toEqual({
        result: {
          isError: true,
          durationMs: 0,
          failure: { reason: 'refused', message: 'The prompt is empty.', report: 'The prompt is empty.' },
        },
        types: 'error complete',
        broken: [],
      })
    })

    it.for([
      { model: '--help' },
      { model: '-x' },
      { model: 'a\0b' },
      { model: 'a\nb' },
      { allowedTools: ['read', '--dangerous'] },
      { allowedTools: ['a\0b'] },
    ])('is refused with a name that could be taken for something else: %o', async (names, { stage }) => {
      const { result, types } = await stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }), ...names })
      expect([result.failure?.reason, result.exitCode, types]).toEqual(['refused', undefined, 'error complete'])
    })

    it.runIf(setup.promptLimit !== undefined)(
      'is refused when the prompt is too long for the CLI',
      async ({ stage }) => {
        const { maxPromptLength } = stage.backend().capabilities()
        const { result } = await stage.see({ prompt: 'x'.repeat(maxPromptLength + 1) })
        const message = `The prompt is too long for ${setup.label}: ${maxPromptLength + 1} of at most ${setup.promptLimit}.`
        expect(result.failure).toEqual({ reason: 'refused', message, report: message })
      },
    )

    it.for([
      { timeoutMs: Number.NaN },
      { timeoutMs: 0 },
      { timeoutMs: -1 },
      { timeoutMs: Infinity },
      { idleTimeoutMs: -1 },
      { idleTimeoutMs: Number.NaN },
    ])('throws when it is made wrongly: %o', async (wrong, { stage }) => {
      const run = stage.see({ prompt: stage.prompt(START, { answer: 'Hello' }), ...wrong })
      await expect(run).rejects.toMatchObject({ name: 'GatewayError', code: 'request_invalid' })
    })
  })
}
