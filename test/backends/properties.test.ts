// Correctness properties for arbitrary strings: prompts that equal flags, blank ones, all of Unicode. Properties 9 and 10
// are tested with the runtime.

import { writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBackend, resolveBackendName } from '../../src/backends/registry.js'
import { BACKEND_NAMES, type BackendAdapterConfig, type BackendName } from '../../src/backends/types.js'
import { createFakeBackend, createStage, PRINTER } from './fake-cli.js'
import { adapterConfig } from '../kit/adapter-config.js'

const RUNS = { numRuns: 200 }
/** Each run of Property 8 starts processes. */
const PROCESS_RUNS = { numRuns: 100 }

/** Strings that a careless command line would misinterpret. */
const FLAGS = ['-', '--', '-p', '--resume', '--session', '--continue', '--model', 'resume', 'exec', 'run', '--help', '']

const anyCodeUnits = fc.array(fc.integer({ min: 0, max: 0xff_ff })).map((units) => String.fromCharCode(...units))
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.constantFrom(...FLAGS))
const anyConfig: fc.Arbitrary<BackendAdapterConfig> = fc.record(
  {
    cliPath: anyText,
    workingDir: anyText,
    queryTimeoutMs: fc.nat(),
    allowedTools: fc.array(anyText),
    maxTurns: fc.nat(),
    model: anyText,
  },
  { requiredKeys: ['cliPath', 'workingDir', 'queryTimeoutMs', 'allowedTools', 'maxTurns'] },
)

// Feature: multi-cli-backend, Property 1: Claude backend required flags
it('Claude is always given its required flags before the prompt', () => {
  fc.assert(
    fc.property(anyText, anyText, anyConfig, (prompt, systemPromptFile, config) => {
      const args = createBackend('claude', config).buildArgs(prompt, systemPromptFile)
      expect(readCommandLine('claude', args, 1)).toEqual({
        options: {
          '-p': [true],
          '--output-format': ['json'],
          '--dangerously-skip-permissions': [true],
          '--append-system-prompt-file': [systemPromptFile],
          '--max-turns': [String(config.maxTurns)],
          ...(config.allowedTools.length > 0 && { '--allowedTools': config.allowedTools }),
          ...(config.model !== undefined && { '--model': [config.model] }),
        },
        words: [prompt],
      })
    }),
    RUNS,
  )
})

// Feature: multi-cli-backend, Property 2: Codex backend required flags
it('Codex is always given its required flags before the prompt', () => {
  fc.assert(
    fc.property(anyText, anyText, anyConfig, (prompt, systemPrompt, config) => {
      const args = createBackend('codex', config).buildArgs(prompt, systemPrompt)
      expect(readCommandLine('codex', args, 1)).toEqual({
        command: 'exec',
        options: {
          '--json': [true],
          '--dangerously-bypass-approvals-and-sandbox': [true],
          '--cd': [config.workingDir],
          ...(config.model !== undefined && { '--model': [config.model] }),
        },
        words: [prompt],
      })
    }),
    RUNS,
  )
})

// Feature: multi-cli-backend, Property 3: Gemini backend required flags
it('Gemini is always given its required flags before the prompt', () => {
  fc.assert(
    fc.property(anyText, anyText, anyConfig, (prompt, systemPrompt, config) => {
      const args = createBackend('gemini', config).buildArgs(prompt, systemPrompt)
      expect(readCommandLine('gemini', args, 1)).toEqual({
        options: {
          '--output-format': ['json'],
          '--approval-mode': ['yolo'],
          ...(config.model !== undefined && { '--model': [config.model] }),
        },
        words: [prompt],
      })
    }),
    RUNS,
  )
})

// Feature: multi-cli-backend, Property 4: OpenCode backend required flags
it('OpenCode is always given its required flags before the prompt', () => {
  fc.assert(
    fc.property(anyText, anyText, anyConfig, (prompt, systemPrompt, config) => {
      const args = createBackend('opencode', config).buildArgs(prompt, systemPrompt)
      expect(readCommandLine('opencode', args, 1)).toEqual({
        command: 'run',
        options: { '--format': ['json'], ...(config.model !== undefined && { '--model': [config.model] }) },
        words: [prompt],
      })
    }),
    RUNS,
  )
})

// Feature: multi-cli-backend, Property 5: Session resume args across backends
describe('a session', () => {
  const RESUMED: Record<BackendName, (id: string) => { options: Record<string, Value[]>; words: string[] }> = {
    claude: (id) => ({ options: { '--resume': [id] }, words: [] }),
    codex: (id) => ({ options: {}, words: ['resume', id] }),
    gemini: (id) => ({ options: { '--resume': [id] }, words: [] }),
    opencode: (id) => ({ options: { '--session': [id], '--continue': [true] }, words: [] }),
    pi: (id) => ({ options: { '--session': [id] }, words: [] }),
  }

  it.each(BACKEND_NAMES)('adds what resumes it to the arguments of %s, and nothing else', (name) => {
    const anyId = fc.oneof(anyText, fc.uuid()).filter((id) => id !== '')
    fc.assert(
      fc.property(anyText, anyText, anyId, anyConfig, (prompt, systemPrompt, id, config) => {
        const backend = createBackend(name, config)
        const resumed = RESUMED[name](id)
        const without = readCommandLine(name, backend.buildArgs(prompt, systemPrompt), 1)
        const args = backend.buildArgs(prompt, systemPrompt, id)
        expect(readCommandLine(name, args, resumed.words.length + 1)).toEqual({
          ...without,
          options: { ...without.options, ...resumed.options },
          words: [...resumed.words, prompt],
        })
      }),
      RUNS,
    )
  })

  it.each(BACKEND_NAMES)('that is not given or empty leaves no trace in the arguments of %s', (name) => {
    const noId = fc.constantFrom(undefined, '')
    fc.assert(
      fc.property(anyText, anyText, noId, anyConfig, (prompt, systemPrompt, id, config) => {
        const args = createBackend(name, config).buildArgs(prompt, systemPrompt, id)
        const { options } = readCommandLine(name, args, 1)
        expect(Object.keys(options)).not.toEqual(
          expect.arrayContaining([expect.stringMatching(/^--(?:resume|session|continue)$/)]),
        )
      }),
      RUNS,
    )
  })

  it('id of OpenCode stands right before --continue', () => {
    fc.assert(
      fc.property(fc.uuid(), anyConfig, (id, config) => {
        const args = createBackend('opencode', config).buildArgs('hi', '', id)
        expect(args.slice(-4)).toEqual(['--session', id, '--continue', 'hi'])
      }),
      RUNS,
    )
  })
})

// Feature: multi-cli-backend, Property 6: Output parsing extracts correct fields
describe('the answer and the session', () => {
  const anyAnswer = fc.oneof(anyText, anyCodeUnits, fc.constantFrom('', ' ', '\n', '\r\n', ' two \n lines \n'))
  const anyId = fc.oneof(fc.uuid(), anyText).filter((id) => id !== '')

  interface Said {
    /** The answer in the pieces it was streamed in. */
    pieces: string[]
    answer: string
    id: string
  }
  const anySaid: fc.Arbitrary<Said> = fc
    .record({ pieces: fc.array(anyAnswer, { maxLength: 4 }), id: anyId })
    .map(({ pieces, id }) => ({ pieces, answer: pieces.join(''), id }))

  type Shape = [name: string, print: (said: Said) => string]
  const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')
  const pretty = (value: unknown) => JSON.stringify(value, undefined, 2)

  const claudeInit = (id: string) => ({ type: 'system', subtype: 'init', session_id: id })
  const claudeText = (text: string) => ({ type: 'assistant', message: { id: 'm', content: [{ type: 'text', text }] } })
  const claudeResult = (result: string) => ({ type: 'result', subtype: 'success', is_error: false, result })

  const SHAPES: Record<BackendName, Shape[]> = {
    claude: [
      ['an array', ({ answer, id }) => JSON.stringify([claudeInit(id), claudeText(answer), claudeResult(answer)])],
      ['an array over many lines', ({ answer, id }) => pretty([claudeInit(id), claudeResult(answer)])],
      ['one object', ({ answer, id }) => JSON.stringify({ ...claudeResult(answer), session_id: id })],
      ['one object over many lines', ({ answer, id }) => pretty({ ...claudeResult(answer), session_id: id })],
      ['the least of an object', ({ answer, id }) => lines({ type: 'result', result: answer, session_id: id })],
      ['lines', ({ answer, id }) => lines(claudeInit(id), claudeText(answer), claudeResult(answer))],
    ],
    codex: [
      [
        'events of a thread',
        ({ answer, id }) =>
          lines(
            { type: 'thread.started', thread_id: id },
            { type: 'turn.started' },
            { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: 'On it.' } },
            { type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: answer } },
            { type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 1 } },
          ),
      ],
      ['a message', ({ answer, id }) => lines({ type: 'message', role: 'assistant', content: answer, session_id: id })],
      [
        'the last of several messages',
        ({ answer, id }) =>
          lines(
            { type: 'message', role: 'user', content: 'hi', session_id: id },
            { type: 'message', role: 'assistant', content: 'On it.', session_id: id },
            { type: 'message', role: 'assistant', content: answer, session_id: id },
          ),
      ],
    ],
    gemini: [
      ['one object', ({ answer, id }) => JSON.stringify({ response: answer, session_id: id })],
      ['one object over many lines', ({ answer, id }) => pretty({ session_id: id, response: answer, stats: {} })],
      [
        'lines',
        ({ pieces, id }) =>
          lines(
            { type: 'init', session_id: id, model: 'auto' },
            { type: 'message', role: 'user', content: 'hi' },
            ...pieces.map((content) => ({ type: 'message', role: 'assistant', content, delta: true })),
            { type: 'result', status: 'success', stats: {} },
          ),
      ],
    ],
    opencode: [
      [
        'events',
        ({ answer, id }) =>
          lines(
            { type: 'step_start', sessionID: id, part: {} },
            { type: 'text', sessionID: id, part: { text: answer } },
            { type: 'step_finish', sessionID: id, part: { reason: 'stop' } },
          ),
      ],
      ['a result', ({ answer, id }) => lines({ type: 'result', text: answer, session_id: id })],
    ],
    pi: [
      [
        'events',
        ({ pieces, answer, id }) =>
          lines(
            { type: 'session', version: 3, id },
            { type: 'agent_start' },
            ...pieces.map((delta) => ({
              type: 'message_update',
              assistantMessageEvent: { type: 'text_delta', delta },
            })),
            {
              type: 'message_end',
              message: { role: 'assistant', content: [{ type: 'text', text: answer }], stopReason: 'stop' },
            },
            { type: 'agent_end', messages: [] },
          ),
      ],
    ],
  }

  const ALL = BACKEND_NAMES.flatMap((name) => SHAPES[name].map(([shape, print]) => ({ name, shape, print })))

  it.each(ALL)('of $name are read from $shape, character for character', ({ name, print }) => {
    fc.assert(
      fc.property(anySaid, fc.boolean(), fc.boolean(), (said, isWindows, hasLastNewline) => {
        const output = print(said)
        const ended = hasLastNewline ? `${output.trimEnd()}\n` : output.trimEnd()
        const stdout = isWindows ? ended.replaceAll('\n', '\r\n') : ended
        const backend = createBackend(name, adapterConfig())
        expect(backend.parseOutput(stdout)).toEqual({ isError: false, responseText: said.answer, sessionId: said.id })
      }),
      RUNS,
    )
  })
})

// Feature: multi-cli-backend, Property 7: Backend name resolution
describe('the name of a backend', () => {
  it('is taken when it is one of the five, and refused with all of them otherwise', () => {
    const anyName = fc.oneof(
      anyText,
      fc.constantFrom<string>(
        ...BACKEND_NAMES,
        'claudecode',
        'Claude',
        ' claude',
        'toString',
        '__proto__',
        'constructor',
      ),
    )
    fc.assert(
      fc.property(anyName, (name) => {
        const known = ['claude', 'codex', 'gemini', 'opencode', 'pi'].find((one) => one === name)
        // Its name on the wire.
        const meant = name === 'claudecode' ? 'claude' : known
        expect(outcomeOf(() => resolveBackendName(name))).toEqual(
          meant ?? `Unknown backend "${name}". Known: claude, codex, gemini, opencode, pi`,
        )
      }),
      { ...RUNS, examples: [[''], ['claudecode'], ...BACKEND_NAMES.map((name): [string] => [name])] },
    )
  })

  it('is claude when there is none', () => {
    expect(resolveBackendName(undefined)).toBe('claude')
  })
})

// Feature: multi-cli-backend, Property 8: Non-zero exit code produces error result
it('a non-zero exit code gives an error with the first 500 characters of stderr', async () => {
  const stage = createStage()
  const [stdout, stderrFile] = [stage.write('stdout', ''), stage.write('stderr', '')]
  // No terminal codes: those are stripped from the message.
  const anyStderr = fc
    .oneof(anyText, fc.string({ unit: 'binary', minLength: 490, maxLength: 1100 }))
    .filter((text) => !text.includes('\u001B'))
  const twoNames = fc.subarray([...BACKEND_NAMES], { minLength: 2, maxLength: 2 })
  const LABELS = { claude: 'Claude', codex: 'Codex', gemini: 'Gemini', opencode: 'OpenCode', pi: 'Pi' }
  await fc.assert(
    fc.asyncProperty(twoNames, fc.integer({ min: 1, max: 255 }), anyStderr, async (names, exitCode, stderr) => {
      writeFileSync(stderrFile, stderr)
      const environment = { FAKE_STDOUT: stdout, FAKE_STDERR: stderrFile, FAKE_EXIT: String(exitCode) }
      const results = await Promise.all(
        names.map((name) => createFakeBackend(name, PRINTER, stage, { environment }).execute('hi', '')),
      )
      expect(results).toEqual(
        names.map((name) => ({
          isError: true,
          responseText: `${LABELS[name]} CLI error (exit ${exitCode}): ${stderr.slice(0, 500) || 'unknown error'}`,
        })),
      )
    }),
    { ...PROCESS_RUNS, examples: [[[...BACKEND_NAMES], 1, '']] },
  )
})

type Value = string | true

/** The options each CLI has among those used here: with a value, and without. */
const GRAMMAR: Record<BackendName, { command?: true; valued: string[]; switches: string[] }> = {
  claude: {
    valued: ['--output-format', '--max-turns', '--model', '--resume', '--allowedTools', '--append-system-prompt-file'],
    switches: ['-p', '--dangerously-skip-permissions'],
  },
  codex: {
    command: true,
    valued: ['--cd', '--model'],
    switches: ['--json', '--dangerously-bypass-approvals-and-sandbox'],
  },
  gemini: { valued: ['--output-format', '--approval-mode', '--model', '--resume'], switches: [] },
  opencode: { command: true, valued: ['--format', '--model', '--session'], switches: ['--continue'] },
  pi: { valued: ['--mode', '--model', '--tools', '--session', '--append-system-prompt'], switches: ['-p'] },
}

/** Parses arguments by position, as a CLI does: a command, options with their values, and the remaining words. */
function readCommandLine(name: BackendName, args: string[], wordCount: number) {
  const { command, valued, switches } = GRAMMAR[name]
  const options: Record<string, Value[]> = {}
  const optionsEnd = args.length - wordCount
  for (let index = command ? 1 : 0; index < optionsEnd; index += 1) {
    const option = args[index] ?? ''
    if (valued.includes(option)) (options[option] ??= []).push(args[(index += 1)] ?? '')
    else if (switches.includes(option)) (options[option] ??= []).push(true)
    else throw new Error(`${JSON.stringify(option)} stands where an option should`)
  }
  return { ...(command && { command: args[0] }), options, words: args.slice(optionsEnd) }
}

function outcomeOf(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return (error as Error).message
  }
}
