/** A warm agent, in its own pool. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type WarmLimits, WarmPool } from '../../src/backends/engine/warm/warm-pool.js'
import { createBackend } from '../../src/backends/registry.js'
import type { BackendName } from '../../src/backends/types.js'
import type { Log } from '../../src/log.js'
import { adapterConfig, gatewayEnvironment, idleServer, type OpenPlace } from '../place.js'
import { createSandbox, type Sandbox, type SandboxProcess } from '../sandbox.js'

interface LiveOptions {
  limits?: Partial<WarmLimits>
  /** How often their memory is measured. */
  measureMs?: number
  /** After this much idle time a process is pinged. */
  freshMs?: number
  /** A program that wraps the CLI; see `programPath`. */
  program?(cliPath: string): string
  /** Without the MCP server that every session otherwise has. */
  isBare?: boolean
  /** Whether a turn may run one-shot. */
  mayFallBack?: boolean
  onStarted?(pid: number): void
}

const usualLimits: WarmLimits = { liveIdleMs: 600_000, liveMaxProcesses: 8, liveMaxMemoryMb: 4096, liveSpare: false }

export function openLive(options: LiveOptions = {}): OpenPlace {
  const { limits, measureMs, freshMs, program, isBare, mayFallBack, onStarted } = options
  return async ({ agent, installation: installed, modelUrl, log: stageLog }) => {
    const sandbox = await createSandbox(agent, modelUrl, installed.path, isBare ? undefined : idleServer)
    const installation = { ...installed, ...(program && { cliPath: programPath(sandbox) }) }
    if (program) await writeFile(installation.cliPath, program(installed.cliPath), { mode: 0o755 })
    const log: Log = {
      ...stageLog,
      debug(message, fields) {
        if (message === 'live.started') onStarted?.(Number(fields?.['pid']))
      },
    }
    const config = adapterConfig(agent, installation, sandbox.workspace)
    const pool = new WarmPool({
      log,
      limits: { ...usualLimits, ...limits },
      ...(measureMs !== undefined && { measureMs }),
      ...(freshMs !== undefined && { freshMs }),
    })
    const warm = { mode: 'live' as const, pool }
    const backend = createBackend(agent.name, config, { environment: sandbox.environment, log, warm })
    const { definition } = backend.cli
    assert.ok(definition.driver, `${agent.name} has a warm driver`)
    let fallen = 0
    const launchAlone = definition.invocation
    definition.invocation = (...launch) => {
      fallen += 1
      return launchAlone(...launch)
    }
    return {
      sandbox,
      backend,
      gatewayEnvironment: { ...gatewayEnvironment(agent, installation, sandbox), AGENT_MODE: 'live' },
      stays: (process) => isLiveAgent(agent.name, process) || isIdleServer(process),
      // Codex inspects the operator's shell.
      ...(agent.name === 'codex' && { besideMs: 5_000 }),
      checkTurn({ failure }) {
        if (mayFallBack || failure?.reason === 'refused') return
        assert.equal(fallen, 0, 'no turn ran one-shot')
      },
      close: () => pool.stop(),
    }
  }
}

/** The path of `program`. */
export function programPath({ temporary }: Sandbox): string {
  return join(temporary, 'agent')
}

const signs: Partial<Record<BackendName, RegExp>> = {
  claude: / --input-format stream-json/,
  codex: / app-server /,
  gemini: / --acp /,
  // It changes its process title.
  pi: /^pi +$| --mode rpc/,
}

/** Whether the process is the agent itself. */
export function isLiveAgent(name: BackendName, { command }: SandboxProcess): boolean {
  return signs[name]?.test(command) === true
}

function isIdleServer({ command }: SandboxProcess): boolean {
  return idleServer.args.every((argument) => command.includes(argument))
}
