// How the operator's command template is combined with each backend's own arguments.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AgentCommand, type AgentRequest, BACKEND_NAMES, type BackendName } from '../../../src/backends/types.js'
import { inboundSchema } from '../../../src/config/inbound.js'
import { composeReply } from '../../../src/turns/inbound-reply/compose-reply.js'
import {
  ANSWERS,
  createFakeBackend,
  createPrintingBackend,
  createStage,
  PRINTER,
  recordStart,
  runTurn,
} from '../fake-cli.js'

const SESSION = '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6'
const OPENCODE_SESSION = 'ses_abc'

async function argvOf(name: BackendName, command: AgentCommand, request: object = {}, config: object = {}) {
  const stage = createStage()
  const { argv } = await recordStart(name, { command, ...request }, { config }, stage)
  return argv.map((argument) => argument.replaceAll(stage.workingDir, '<work>'))
}

const STREAMING = ['--output-format', 'stream-json', '--verbose', '--include-partial-messages', '-p']
const SKIP = '--dangerously-skip-permissions'
const CODEX = ['--skip-git-repo-check', '-c', 'check_for_update_on_startup=false']
const RETRIES = ['--disable', 'unbounded_connection_retries']

describe('further arguments are added to those of the backend:', () => {
  it.each<[BackendName, string[], string[]]>([
    ['claude', ['--name', 'x', 'word'], [...STREAMING, '--max-turns', '25', '--name', 'x', 'word', SKIP]],
    [
      'codex',
      ['-i', 'a.png', 'b.png'],
      ['exec', '--json', '--dangerously-bypass-approvals-and-sandbox', '--cd', '<work>', '-i', 'a.png', 'b.png'].concat(
        CODEX,
        RETRIES,
        '-',
      ),
    ],
    ['gemini', ['-e', 'x', 'y'], ['--output-format', 'stream-json', '--approval-mode', 'yolo', '-e', 'x', 'y']],
    [
      'opencode',
      ['--file', 'x', 'y'],
      ['run', '--format', 'json', '--file', 'x', 'y', '--thinking', '--auto', '--title', 'Aetheel', '--dir', '<work>'],
    ],
    ['pi', ['--thinking', 'high'], ['-p', '--mode', 'json', '--thinking', 'high']],
  ])('%s %j', async (name, args, argv) => {
    expect(await argvOf(name, { args })).toEqual(argv)
  })

  it('before the tools of Claude, which take every word up to the next option', async () => {
    const argv = await argvOf('claude', { args: ['word'] }, { allowedTools: ['Read'], isUntrusted: false })
    expect(argv.slice(STREAMING.length + 2)).toEqual([
      ...['word', SKIP, '--disallowedTools', 'mcp__*', '--tools', 'Read', '--allowedTools', 'Read'],
    ])
  })
})

describe('an option that the backend gives itself is not doubled:', () => {
  it.each<[BackendName, string[]]>([
    ['claude', ['-p', '--print', '--output-format', 'json', '--output-format=text', '--verbose', SKIP]],
    ['claude', ['--resume', SESSION, '-r', '-c', '--session-id', SESSION, '--input-format', 'text']],
    ['codex', ['exec', '--json', '--skip-git-repo-check', '-C', '/tmp', '--cd=/tmp', '-']],
    ['gemini', ['-o', 'json', '-p', '--yolo', '--prompt', 'x', '--resume', 'latest', '-y']],
    ['opencode', ['run', '--format', 'default', '-s', 'x', '--continue', '--auto', '--thinking', '--dir', '/tmp']],
    ['pi', ['-p', '--mode', 'text', '--session', 'x', '-c', '-r']],
  ])('%s %j', async (name, args) => {
    expect(await argvOf(name, { args })).toEqual(await argvOf(name, { args: [] }))
  })
})

describe('a model', () => {
  it.each(BACKEND_NAMES)('of the template comes before the configured one of %s', async (name) => {
    const argv = await argvOf(name, { args: ['--model', 'large'] }, {}, { model: 'small' })
    expect(argv.filter((argument) => ['--model', 'large', 'small'].includes(argument))).toEqual(['--model', 'large'])
  })

  it.each(BACKEND_NAMES)('that was chosen comes before that of the template of %s', async (name) => {
    const argv = await argvOf(name, { args: ['--model=large', '--model', 'large'] }, { model: 'a/small' })
    expect(argv.filter((argument) => /^--model|large|small/.test(argument))).toEqual(['--model', 'a/small'])
  })
})

describe('Claude', () => {
  it.each<[string[], string[]]>([
    [
      ['--max-turns', '3'],
      ['--max-turns', '3', SKIP],
    ],
    [
      ['--permission-mode', 'plan'],
      ['--max-turns', '25', '--permission-mode', 'plan'],
    ],
    [
      ['--allowedTools', 'Read'],
      ['--max-turns', '25', '--allowedTools', 'Read', '--permission-mode', 'dontAsk'],
    ],
    [
      ['--allowedTools', 'Read', SKIP],
      ['--max-turns', '25', '--allowedTools', 'Read', SKIP],
    ],
  ])('does with %j what the template says', async (args, argv) => {
    expect((await argvOf('claude', { args })).slice(STREAMING.length)).toEqual(argv)
  })

  it('gets what the template adds to its prompt together with ours', async () => {
    const stage = createStage()
    writeFileSync(join(stage.workingDir, 'more.md'), 'Rhyme.')
    const args = ['--append-system-prompt', 'Be kind.', '--append-system-prompt-file=more.md']
    const start = await recordStart('claude', { systemPrompt: 'Be brief.', command: { args } }, {}, stage)
    expect([start.argv.slice(STREAMING.length), start.files]).toEqual([
      ['--max-turns', '25', SKIP, '--append-system-prompt-file', '<run>/system-prompt.md'],
      { 'system-prompt.md': 'Be brief.\n\nBe kind.\n\nRhyme.' },
    ])
  })
})

describe('Codex', () => {
  const sandboxOf = (argv: string[]) => argv.slice(2, argv.indexOf('--cd'))

  it('only looks where it must, and otherwise may do anything', async () => {
    expect([
      sandboxOf(await argvOf('codex', { args: [], isReadOnly: true })),
      sandboxOf(await argvOf('codex', { args: [] })),
    ]).toEqual([['--sandbox', 'read-only'], ['--dangerously-bypass-approvals-and-sandbox']])
  })

  it.each([
    [['--sandbox', 'workspace-write']],
    [['--sandbox=workspace-write']],
    [['-s', 'workspace-write']],
    [['-sworkspace-write']],
    [['--yolo']],
    [['--dangerously-bypass-approvals-and-sandbox']],
    [['-c', 'sandbox_mode="danger-full-access"']],
    [['--config=sandbox_mode="danger-full-access"']],
  ])('may do what the template says: %j', async (args) => {
    const argv = await argvOf('codex', { args, isReadOnly: true })
    expect(argv).toEqual(['exec', '--json', '--cd', '<work>', ...args, ...CODEX, ...RETRIES, '-'])
  })

  it.each([
    [['{{Transcript}}'], 'sandbox_mode = wide open please'],
    [['-c', '{{Transcript}}'], 'sandbox_mode="danger-full-access"'],
  ])('stays read-only whatever is put into %j', async (template, said) => {
    const args = template.map((element) => element.replace('{{Transcript}}', said))
    expect(sandboxOf(await argvOf('codex', { args, template, isReadOnly: true }))).toEqual(['--sandbox', 'read-only'])
  })

  it('is read-only in a continued session too', async () => {
    const argv = await argvOf('codex', { args: [], isReadOnly: true }, { sessionId: SESSION })
    expect([sandboxOf(argv), argv.slice(-3)]).toEqual([
      ['--sandbox', 'read-only'],
      ['resume', SESSION, '-'],
    ])
  })
})

it('Gemini has the approval mode of the template', async () => {
  expect(await argvOf('gemini', { args: ['--approval-mode', 'plan'] })).toEqual([
    ...['--output-format', 'stream-json', '--approval-mode', 'plan'],
  ])
})

it('OpenCode has the title and the agent of the template, unless its tools are restricted', async () => {
  const command = { args: ['--title', 'Mine', '--agent', 'plan'] }
  const [free, restricted] = [
    await argvOf('opencode', command),
    await argvOf('opencode', command, { allowedTools: ['read'] }),
  ]
  expect([free.slice(3), restricted.slice(3)]).toEqual([
    ['--title', 'Mine', '--agent', 'plan', '--thinking', '--auto', '--dir', '<work>'],
    ['--title', 'Mine', '--thinking', '--auto', '--agent', 'aetheel', '--dir', '<work>'],
  ])
})

it('Pi has the tools of the template, unless they are restricted', async () => {
  const command = { args: ['--tools', 'bash'] }
  const [free, restricted] = [await argvOf('pi', command), await argvOf('pi', command, { allowedTools: ['read'] })]
  expect([free.slice(3), restricted.slice(3)]).toEqual([
    ['--tools', 'bash'],
    ['--tools', 'read'],
  ])
})

describe('the arguments of a session', () => {
  it.each<[BackendName, string, string[]]>([
    ['claude', SESSION, ['--resume', SESSION]],
    ['codex', SESSION, ['resume', SESSION]],
    ['gemini', SESSION, ['--resume', SESSION]],
    ['opencode', OPENCODE_SESSION, ['--session', OPENCODE_SESSION, '--continue']],
    ['pi', SESSION, ['--session', SESSION]],
  ])('of the template take the place of those of %s', async (name, sessionId, own) => {
    const sessionArgs = ['--fork', sessionId]
    const argv = await argvOf(name, { args: [], sessionArgs }, { sessionId })
    const plain = (await argvOf(name, { args: [] }, { sessionId })).join(' ')
    expect(argv.join(' ')).toBe(plain.replace(own.join(' '), sessionArgs.join(' ')))
  })

  it('of the template may lead to another session, which is kept', async () => {
    const other = SESSION.replace('0', 'f')
    const stdout = `{"type":"session","id":"${other}"}\n${ANSWERS.pi}`
    const command = { args: [], sessionArgs: ['--fork', SESSION] }
    const { result } = await runTurn(createPrintingBackend('pi', { stdout }), { sessionId: SESSION, command })
    expect(result).toMatchObject({ isError: false, sessionId: other })
  })
})

describe('the format', () => {
  it.each<[BackendName, 'text' | 'json', string[]]>([
    ['claude', 'json', ['--output-format', 'json', '-p', '--max-turns', '25', SKIP]],
    ['claude', 'text', ['--output-format', 'text', '-p', '--max-turns', '25', SKIP]],
    [
      'codex',
      'json',
      ['exec', '--json', '--dangerously-bypass-approvals-and-sandbox', '--cd', '<work>'].concat(CODEX, RETRIES, '-'),
    ],
    [
      'codex',
      'text',
      ['exec', '--dangerously-bypass-approvals-and-sandbox', '--cd', '<work>'].concat(CODEX, RETRIES, '-'),
    ],
    ['gemini', 'json', ['--output-format', 'json', '--approval-mode', 'yolo']],
    ['gemini', 'text', ['--output-format', 'text', '--approval-mode', 'yolo']],
    ['opencode', 'json', ['run', '--format', 'json', '--thinking', '--auto', '--title', 'Aetheel', '--dir', '<work>']],
    ['opencode', 'text', ['run', '--format', 'default', '--auto', '--title', 'Aetheel', '--dir', '<work>']],
    ['pi', 'json', ['-p', '--mode', 'json']],
    ['pi', 'text', ['-p', '--mode', 'text']],
  ])('of %s can be %s', async (name, format, argv) => {
    expect(await argvOf(name, { args: [], format })).toEqual(argv)
  })
})

describe('plain text', () => {
  const TEXT: Partial<AgentRequest> = { command: { args: [], format: 'text' } }

  it.each(BACKEND_NAMES)('of %s is the answer, even if it looks like something else', async (name) => {
    const stdout = '\n\u001B[1mOne\u001B[0m\r\n{"type":"result","result":"no"}\n \n\n  two\n\n'
    const { events, result } = await runTurn(createPrintingBackend(name, { stdout }), TEXT)
    const answer = 'One\n{"type":"result","result":"no"}\n \n\n  two'
    const streamed = events.flatMap((event) => (event.type === 'output' ? [event.content] : []))
    expect([result, streamed.join(''), events.at(-2)?.type]).toEqual([
      { isError: false, durationMs: 0, exitCode: 0, finalOutput: answer },
      answer,
      'output',
    ])
  })

  it('that comes before a bad exit is what went wrong', async () => {
    const printed = { stdout: 'Error: Reached max turns (1)\n', exit: 1 }
    const { result } = await runTurn(createPrintingBackend('claude', printed), TEXT)
    expect(result).toEqual({
      isError: true,
      durationMs: 0,
      exitCode: 1,
      failure: {
        reason: 'max_turns',
        message: 'Error: Reached max turns (1)',
        report: 'Claude CLI error (exit 1): Error: Reached max turns (1)',
      },
    })
  })

  it('that is missing is not an answer, whatever the exit code', async () => {
    const { result } = await runTurn(createPrintingBackend('pi', { stdout: '\n', stderr: 'Odd.' }), TEXT)
    expect(result.failure).toMatchObject({ reason: 'no_result', message: 'Pi ended without an answer. Odd.' })
  })

  it('that is endless is stopped', async () => {
    const stage = createStage()
    const stdout = stage.write('stdout', 'x'.repeat(60).concat('\n').repeat(10))
    const backend = createFakeBackend('pi', PRINTER, stage, {
      environment: { FAKE_STDOUT: stdout, FAKE_EXIT: '0' },
      dependencies: { limits: { lineBytes: 100, totalBytes: 1_000_000 } },
    })
    expect((await runTurn(backend, TEXT)).result.failure).toMatchObject({
      reason: 'no_result',
      message: 'The agent printed an answer of more than 100 characters and was stopped.',
    })
  })
})

describe('the executable of the command', () => {
  const create = (stage = createStage()) => createFakeBackend('claude', 'no-such-cli', stage)

  it('is what is started, searched for and asked for its version', async () => {
    const stage = createStage()
    const executable = stage.write(
      'cli',
      `#!/bin/sh\n[ "$1" = --version ] && echo 9.9.9 || echo '${ANSWERS.claude.trim()}'\n`,
    )
    chmodSync(executable, 0o755)
    const backend = create(stage)
    const { result } = await runTurn(backend, { isUntrusted: true, command: { executable, args: [] } })
    const probe = await backend.probe({ executable })
    expect([
      result.finalOutput,
      await backend.validate(),
      await backend.validate({ executable }),
      probe.version,
    ]).toEqual(['done', false, true, '9.9.9'])
  })

  it('that is missing is reported by name', async () => {
    const { result } = await runTurn(create(), { command: { executable: 'my-claude', args: [] } })
    expect(result.failure).toMatchObject({
      reason: 'spawn',
      isLasting: true,
      message:
        'Claude CLI "my-claude" was not found. Install it (npm install -g @anthropic-ai/claude-code) and make sure it is on the PATH, or begin inbound.reply.command with its path.',
    })
  })

  it('whose version is unknown is not started in an untrusted project', async () => {
    const stage = createStage()
    const executable = stage.write('cli', '#!/bin/sh\n')
    chmodSync(executable, 0o755)
    const { result } = await runTurn(create(stage), { isUntrusted: true, command: { executable, args: [] } })
    expect(result.failure?.message).toContain(`Check that \`${executable} --version\` works.`)
  })
})

describe('whatever a person writes', () => {
  const anyBody = fc
    .oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '-',
        '--',
        '-p',
        '--help',
        'exec',
        'run',
        'resume',
        'sandbox_mode = "danger-full-access"',
        '{{From}}',
        '$(id)',
        '`id`',
        '; id',
        '*',
        '~',
      ),
    )
    // Well-formed Unicode, as a platform delivers it.
    .map((body) => Buffer.from(body.replaceAll('\0', '')).toString())
    .filter((body) => body.trim() !== '')

  it.each(BACKEND_NAMES)(
    'changes one argument of %s and no other, and is asked on stdin to the character',
    async (name) => {
      const stage = createStage()
      const [argv, stdin] = [stage.write('argv', ''), stage.write('stdin', '')]
      const script = '#!/bin/sh\nprintf "%s\\0" "$@" > "$FAKE_ARGV"\ncat > "$FAKE_STDIN"\ncat "$FAKE_STDOUT"\n'
      const executable = stage.write('cli', script)
      chmodSync(executable, 0o755)
      const environment = { FAKE_ARGV: argv, FAKE_STDIN: stdin, FAKE_STDOUT: stage.write('stdout', ANSWERS[name]) }
      const backend = createFakeBackend(name, executable, stage, { environment })
      const places = ['about: {{BodyStripped}}', '{{Transcript}}']

      const start = async (body: string, template: string[]) => {
        const { reply } = inboundSchema.parse({ reply: { agent: { kind: name }, command: [executable, ...template] } })
        const message = { body, fileLines: [], variables: { Transcript: body } }
        const turn = { backend: name, canSendFiles: false, sessionId: undefined, newId: () => SESSION }
        await runTurn(backend, composeReply(reply, message, turn))
        return [readFileSync(argv, 'utf8').split('\0'), readFileSync(stdin, 'utf8')] as const
      }
      const templates = places.flatMap((place) =>
        [0, 2].map((position) => ['--a', '--b'].toSpliced(position, 0, place, '{{Body}}')),
      )
      const plain: string[][] = []
      for (const template of templates) plain.push((await start('SAID', template))[0])
      await fc.assert(
        fc.asyncProperty(anyBody, fc.nat(templates.length - 1), async (body, index) => {
          const template = templates[index] ?? []
          // That is refused.
          fc.pre(!template.includes('{{Transcript}}') || !body.startsWith('-'))
          const [args, asked] = await start(body, template)
          expect(args).toEqual(plain[index]?.map((argument) => argument.replace('SAID', () => body)))
          expect(asked.replace(/^[\u200B ](?=\s*\/)/, '').replaceAll('\\@', '@')).toBe(body.replaceAll('\\@', '@'))
        }),
        { numRuns: 100 },
      )
    },
  )
})
