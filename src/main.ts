#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { Command, InvalidArgumentError } from 'commander'
import { createBackend, resolveBackendName } from './backends/registry.js'
import { type AgentBackend, BACKEND_NAMES, type BackendName } from './backends/types.js'
import { agentsTable, doctorReport, probeAll } from './commands/agents.js'
import { ask } from './commands/ask.js'
import { demo } from './commands/demo.js'
import { backendConfig, type GatewayConfig, loadConfig } from './config.js'
import { operatorEnvironment } from './environment.js'
import { GatewayError } from './errors.js'
import { createLog, secretsOf } from './log.js'

interface AskFlags {
  backend?: BackendName
  model?: string
  session?: string
  cwd?: string
  system?: string
  json?: true
  timeout?: number
}

const environment = operatorEnvironment()

/** Aborted when the reader has left, as in `aetheel ask … 2>&1 | head`. */
const unwanted = new AbortController()
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => unwanted.abort())

const program = new Command('aetheel')
  .description('Talk to coding agents (Claude Code, Codex, Gemini CLI, OpenCode, Pi) through one interface.')
  .version(readVersion())
  .option('--config <file>', 'configuration file (JSON5)')
  .showHelpAfterError()

program
  .command('ask')
  .description('Ask an agent one thing; the answer streams to stdout, tool activity to stderr.')
  .argument('[prompt]', 'what to ask; read from stdin when left out')
  .option('-b, --backend <name>', `agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
  .option('-m, --model <model>', "model, by the agent's own name for it")
  .option('-s, --session <id>', 'session to continue')
  .option('-C, --cwd <directory>', 'directory to work in')
  .option('--system <text>', "added to the agent's own system prompt")
  .option('--json', 'print every event as a line of JSON')
  .option('-t, --timeout <seconds>', 'time limit', secondsArgument)
  .action(async (prompt: string | undefined, flags: AskFlags) => {
    const config = readConfig()
    const request = {
      prompt: prompt ?? (await text(process.stdin)),
      idleTimeoutMs: config.idleTimeoutMs,
      ...(flags.model !== undefined && { model: flags.model }),
      ...(flags.session !== undefined && { sessionId: flags.session }),
      ...(flags.cwd !== undefined && { workingDir: flags.cwd }),
      ...(flags.system !== undefined && { systemPrompt: flags.system }),
      ...(flags.timeout !== undefined && { timeoutMs: flags.timeout * 1000 }),
    }
    const { isError } = await ask({
      backend: openBackend(config, flags.backend ?? config.agentBackend),
      request,
      isJson: flags.json === true,
      stdout: process.stdout,
      stderr: process.stderr,
      signal: abortOnSignals(),
    })
    process.exitCode = isError ? 1 : 0
  })

program
  .command('agents')
  .description('List the agents: which are installed, and what they can do.')
  .action(async () => {
    const config = readConfig()
    console.log(agentsTable(await probeAll(BACKEND_NAMES.map((name) => openBackend(config, name)))))
  })

program
  .command('doctor')
  .description('Check every agent and say what to fix and how.')
  .action(async () => {
    const config = readConfig()
    const agents = await probeAll(BACKEND_NAMES.map((name) => openBackend(config, name)))
    const { text: report, isHealthy } = doctorReport(agents, config.agentBackend)
    console.log(report)
    process.exitCode = isHealthy ? 0 : 1
  })

program
  .command('demo')
  .description('Show the main job with a built-in demonstration agent: nothing to install, no account.')
  .action(async () => {
    process.exitCode = await demo(environment, process.stdout, abortOnSignals())
  })

function readConfig(): GatewayConfig {
  const config = loadConfig(environment, program.opts<{ config?: string }>().config)
  for (const warning of config.warnings) console.error(`Warning: ${warning}`)
  return config
}

function openBackend(config: GatewayConfig, name: BackendName): AgentBackend {
  // A person reads what these commands print: the log speaks only when something is broken, or when asked to.
  const log = createLog({ level: config.logLevel ?? 'error', secrets: secretsOf(environment) })
  return createBackend(name, backendConfig(config, name), { environment, passVariables: config.agentEnvPass, log })
}

/** Aborts on Ctrl-C and its like, too. */
function abortOnSignals(): AbortSignal {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => unwanted.abort())
  return unwanted.signal
}

function backendArgument(value: string): BackendName {
  try {
    return resolveBackendName(value)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

function secondsArgument(value: string): number {
  const seconds = Number(value)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw new InvalidArgumentError('It must be a number of seconds.')
}

function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return manifest.version
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof GatewayError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
