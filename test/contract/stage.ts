// The stage of one contract test: its own directories, a backend that drives a fake agent, and the record of a run.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'vitest'
import type { BackendDependencies } from '../../src/backends/engine/cli-backend.js'
import type {
  AgentBackend,
  AgentEvent,
  AgentRequest,
  BackendAdapterConfig,
  BackendName,
} from '../../src/backends/types.js'
import { livingProcesses } from '../kit/living-processes.js'
import { AgentScript, type Step } from './agent-script.js'
import { brokenInvariants, kindsOf } from './invariants.js'
import { printedAnswer, type Speaker } from './wire-formats.js'
import type { BackendSetup } from './backend-contract.js'
import { recordingLog } from '../kit/log.js'
import { processDirectory } from '../kit/temporary-directory.js'
import { adapterConfig } from '../kit/adapter-config.js'
import { seenIn, seeRun, type SeenRun } from '../kit/seen-run.js'
import { agentPath } from '../kit/agents.js'

export type CreateBackend = (
  config: BackendAdapterConfig,
  dependencies: Partial<BackendDependencies>,
  stage: Stage,
) => AgentBackend

export interface Seen extends SeenRun {
  /** Contract violations; see `brokenInvariants`. */
  broken: string[]
  /** Processes of the run at the moment it ended. */
  alive: string[]
}

export class Stage {
  /** A unique value in the environment of every process of the run. */
  readonly directory: string
  readonly workingDir: string
  readonly environment: { PATH: string | undefined; HOME: string }
  readonly log = recordingLog()

  constructor(
    private readonly name: BackendName,
    private readonly create: CreateBackend,
    onFinished?: TestContext['onTestFinished'],
    private readonly speaker?: () => Speaker,
    /** Part of a warm process's command line. */
    private readonly warmCommand?: string,
  ) {
    this.directory = processDirectory(onFinished)
    this.workingDir = this.makeDirectory('work')
    this.environment = { PATH: process.env['PATH'], HOME: this.makeDirectory('home') }
  }

  backend(config: Partial<BackendAdapterConfig> = {}, dependencies: Partial<BackendDependencies> = {}): AgentBackend {
    return this.create(
      adapterConfig({
        cliPath: agentPath('fake-agent.sh'),
        workingDir: this.workingDir,
        queryTimeoutMs: 100_000,
        ...config,
      }),
      { environment: this.environment, log: this.log, now: risingClock(), ...dependencies },
      this,
    )
  }

  /** The prompt that makes the fake agent do this. */
  prompt(...steps: Step[]): string {
    const prompt = new AgentScript(this.name, this.directory, this.speaker).prompt(steps)
    if (this.warmCommand === undefined || !this.speaker) return prompt
    const alone = new AgentScript(this.name, this.directory).prompt(steps)
    return `if [ "$WARM" ]; then\n${prompt}\nelse\n${alone}\nfi`
  }

  /** The session that the agent opens instead of the requested one; if left out, it knows none. For agents that open it
   *  before they read the prompt. */
  openSessionsAs(sessionId = ''): void {
    writeFileSync(join(this.workingDir, 'opens-as'), sessionId)
  }

  /** Runs to the end. Awaits `onEvent`, like a slow consumer. */
  async see(
    request: AgentRequest,
    { backend = this.backend(), signal = new AbortController().signal, onEvent = noMore }: SeeOptions = {},
  ): Promise<Seen> {
    const { events } = await seeRun(backend.run(request, signal), onEvent)
    return this.judge(events)
  }

  judge(events: AgentEvent[]): Seen {
    const alive = this.alive()
    return { ...seenIn(events), types: kindsOf(events).join(' '), broken: brokenInvariants(events), alive }
  }

  alive(): string[] {
    const commands = livingProcesses(this.directory).map(({ command }) => command)
    const { warmCommand } = this
    return warmCommand === undefined ? commands : commands.filter((command) => !command.includes(warmCommand))
  }

  /** What the deaf and the mirror agent print in this directory. */
  leaveAnswer(answer: string, directory = this.workingDir): void {
    writeFileSync(join(directory, 'answer'), printedAnswer(this.name, answer))
  }

  /** A file the agent waits for. */
  touch(name: string): void {
    writeFileSync(join(this.workingDir, name), '')
  }

  /** A file next to the working directory. */
  executable(name: string, content: string, mode = 0o755): string {
    const path = join(this.directory, name)
    writeFileSync(path, content, { mode })
    return path
  }

  makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }
}

interface SeeOptions {
  backend?: AgentBackend
  signal?: AbortSignal
  onEvent?: (event: AgentEvent) => unknown
}

/** A test with a `stage`. */
export function testOnStage(
  name: BackendName,
  { create, prepare, speaker, warmCommand }: Pick<BackendSetup, 'create' | 'prepare' | 'speaker' | 'warmCommand'>,
) {
  return test.extend<{ stage: Stage }>({
    stage: async ({ onTestFinished }, use) => {
      const stage = new Stage(name, create, onTestFinished, speaker, warmCommand)
      const tearDown = await prepare?.(stage)
      if (tearDown) onTestFinished(tearDown)
      await use(stage)
    },
  })
}

/** Never returns the same time twice, so events out of order are noticed. */
function risingClock(): () => number {
  let last = 0
  return () => (last = Math.max(Date.now(), last + 0.001))
}

const noMore = () => {}
