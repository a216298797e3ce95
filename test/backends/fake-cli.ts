// Backends that drive fake executables in place of the CLI, each with its own home and working directory.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'vitest'
import type { BackendDependencies, CliBackend } from '../../src/backends/engine/cli-backend.js'
import { createBackend } from '../../src/backends/registry.js'
import type {
  AgentEvent,
  AgentRequest,
  AgentResult,
  BackendAdapterConfig,
  BackendName,
} from '../../src/backends/types.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { SILENT_LOG } from '../kit/log.js'
import { adapterConfig } from '../kit/adapter-config.js'
import { seeRun } from '../kit/seen-run.js'

/** The time in these tests: Sunday 2026-11-15, 12:00 local time. */
export const NOW = new Date(2026, 10, 15, 12).getTime()

/** The minimal output of each CLI for the answer "done". */
export const ANSWERS: Record<BackendName, string> = {
  claude: '{"type":"result","result":"done"}\n',
  codex: '{"type":"message","role":"assistant","content":"done"}\n',
  gemini: '{"response":"done"}\n',
  opencode: '{"type":"result","text":"done"}\n',
  pi: '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}]}}\n',
}

/** Prompts that some CLI misinterprets, truncates or cannot take as an argument. */
export const DELICATE_PROMPTS = {
  'a flag': '--help',
  'a list': '- one\n- two',
  'a command': '/help',
  'a command after a blank': ' /help',
  'a path': '/etc/hosts is a file',
  'a file': '@/etc/hostname',
  'files among words': 'see @note.txt, (@a) or me@example.com',
  'a file that is escaped': String.raw`\@note.txt`,
  'a shell command': '!ls $HOME `id`',
  'cut by NUL': 'a\0b',
  'blank at both ends': ' two \r\n lines \n\n',
  'of all alphabets': '\uFEFFGrüße 漢字 🦆\u2028',
  'longer than an argument may be': 'é'.repeat(100_000),
} as const

export interface Stage {
  /** The operator's home, empty. */
  home: string
  /** Where the agent works, empty. */
  workingDir: string
  /** Writes a file that is removed after the test, and returns its path. */
  write(name: string, content: string | Buffer): string
}

/** Contract: called in a test; everything is removed afterwards. A concurrent test passes its own `onTestFinished`. */
export function createStage(onFinished?: TestContext['onTestFinished']): Stage {
  const directory = temporaryDirectory(onFinished)
  const [home, workingDir] = [join(directory, 'home'), join(directory, 'work')]
  mkdirSync(home)
  mkdirSync(workingDir)
  return {
    home,
    workingDir,
    write(name, content) {
      const path = join(directory, name)
      writeFileSync(path, content)
      return path
    },
  }
}

export interface Options {
  config?: Partial<BackendAdapterConfig>
  /** In addition to PATH and HOME. */
  environment?: NodeJS.ProcessEnv
  dependencies?: Partial<BackendDependencies>
}

/** Prints the contents of the given files. */
export const PRINTER = fileURLToPath(new URL('./print.sh', import.meta.url))
/** Records how it was started, and answers. */
const RECORDER = fileURLToPath(new URL('./record.mjs', import.meta.url))

/** A backend with a stopped clock. */
export function createFakeBackend(name: BackendName, cliPath: string, stage: Stage, options: Options = {}): CliBackend {
  const { passVariables = [], ...dependencies } = options.dependencies ?? {}
  return createBackend(name, adapterConfig({ cliPath, workingDir: stage.workingDir, ...options.config }), {
    log: SILENT_LOG,
    now: () => NOW,
    ...dependencies,
    environment: { PATH: process.env['PATH'], HOME: stage.home, ...options.environment },
    passVariables: ['FAKE_*', ...passVariables],
  })
}

export interface Printed {
  stdout?: string | Buffer
  stderr?: string | Buffer
  /** Negative for the signal that kills it. */
  exit?: number
}

/** A backend whose CLI prints this, whatever the prompt. */
export function createPrintingBackend(
  name: BackendName,
  printed: Printed,
  stage = createStage(),
  options: Pick<Options, 'dependencies'> = {},
): CliBackend {
  return createFakeBackend(name, PRINTER, stage, {
    ...options,
    environment: {
      FAKE_STDOUT: stage.write('stdout', printed.stdout ?? ''),
      FAKE_STDERR: stage.write('stderr', printed.stderr ?? ''),
      FAKE_EXIT: String(printed.exit ?? 0),
    },
  })
}

/** How the CLI was started; the private directory of the run is written `<run>`. */
export interface Start {
  argv: string[]
  stdin: string
  cwd: string
  environment: Record<string, string>
  /** Whether its processes carry a marker. */
  isMarked: boolean
  /** The files of the run while the CLI ran, by name. */
  files: Record<string, string>
  /** The files that are left after the run. */
  isRemoved: boolean
  hookOutput?: string
}

export interface Recorded {
  /** Absent if nothing was started. */
  start?: Start
  events: AgentEvent[]
  result: AgentResult
}

/** Runs one turn with a CLI that records how it was started. */
export async function record(
  name: BackendName,
  request: Partial<AgentRequest> = {},
  options: Options = {},
  stage = createStage(),
): Promise<Recorded> {
  const file = stage.write('record', '')
  const backend = createFakeBackend(name, RECORDER, stage, {
    ...options,
    environment: { FAKE_STDOUT: stage.write('stdout', ANSWERS[name]), FAKE_RECORD: file, ...options.environment },
  })
  const outcome = await runTurn(backend, request)
  const text = readFileSync(file, 'utf8')
  return text === '' ? outcome : { ...outcome, start: readStart(text) }
}

function readStart(text: string): Start {
  const { directory } = JSON.parse(text) as { directory?: string }
  if (directory === undefined) return { ...(JSON.parse(text) as Start), isRemoved: true }
  const { directory: _, ...start } = JSON.parse(text.replaceAll(directory, '<run>')) as Start & { directory: string }
  return { ...start, isRemoved: !existsSync(directory) }
}

/** As `record`, for a turn that must start the CLI. */
export async function recordStart(...turn: Parameters<typeof record>): Promise<Start> {
  const { start, result } = await record(...turn)
  if (start) return start
  throw new Error(`Nothing was started: ${result.failure?.message}`)
}

/** What arrives on stdin for each of the delicate prompts. */
export async function recordDelicatePrompts(name: BackendName): Promise<Record<string, string>> {
  const arrived = Object.entries(DELICATE_PROMPTS).map(async ([what, prompt]) => {
    const { stdin } = await recordStart(name, { prompt })
    return [what, stdin] as const
  })
  return Object.fromEntries(await Promise.all(arrived))
}

export async function runTurn(
  backend: CliBackend,
  request: Partial<AgentRequest> = {},
  signal = new AbortController().signal,
): Promise<{ events: AgentEvent[]; result: AgentResult }> {
  const { events, result } = await seeRun(backend.run({ prompt: 'hi', ...request }, signal))
  return { events, result }
}
