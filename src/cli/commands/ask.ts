import { text } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import { unenforcedLimits } from '../../backends/engine/refusals.js'
import {
  type AgentBackend,
  type AgentRequest,
  type AgentResult,
  BACKEND_NAMES,
  type BackendName,
} from '../../backends/types.js'
import { defined } from '../../core/defined.js'
import { EventScrubber, type Scrubber } from '../../credentials/scrubber.js'
import { withNotices } from '../../runtime/turn-notices.js'
import { backendArgument } from '../arguments.js'
import { type CommandContext, STOP_SIGNALS } from '../command-context.js'
import { approveAtTerminal } from '../terminal-approval.js'
import { terminalSafe } from '../terminal-safe.js'
import { type Output, TurnPrinter } from '../turn-printer.js'

interface AskFlags {
  backend?: BackendName
  model?: string
  session?: string
  cwd?: string
  system?: string
  json?: true
  timeout?: number
}

interface AskOptions {
  backend: Pick<AgentBackend, 'run'>
  request: AgentRequest
  /** Shown with the agent's activity, one sentence each. */
  notices?: string[]
  /** Prints every event as a line of JSON. */
  isJson: boolean
  stdout: Output
  stderr: Output
  signal: AbortSignal
  /** Knows, among other secrets, the password of a server started for this run. */
  scrubber: Scrubber
}

export function registerAsk(program: Command, context: CommandContext): void {
  program
    .command('ask')
    .description(
      'Ask an agent a single question, without a gateway. The answer goes to stdout, tool activity to stderr.',
    )
    .argument('[prompt]', 'what to ask; by default read from stdin')
    .option('-b, --backend <name>', `agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
    .option('-m, --model <model>', 'model, as the agent names it')
    .option('-s, --session <id>', 'session to resume')
    .option('-C, --cwd <directory>', 'directory to work in')
    .option('--system <text>', "text to add to the agent's system prompt")
    .option('--json', 'print every event as a line of JSON')
    .option('-t, --timeout <seconds>', 'time limit', secondsArgument)
    .action(async (prompt: string | undefined, flags: AskFlags) => {
      const { scrubber } = context
      const config = context.readConfig()
      const stderr = terminalSafe(process.stderr)
      // If the prompt comes from stdin, nobody can answer there.
      const input = prompt !== undefined && process.stdin.isTTY ? process.stdin : undefined
      const approve = approveAtTerminal({ input, output: stderr, scrubber })
      const request = defined({
        prompt: prompt ?? (await text(process.stdin)),
        approve: config.agentPermissions === 'ask' ? approve : undefined,
        idleTimeoutMs: config.idleTimeoutMs,
        model: flags.model,
        sessionId: flags.session,
        workingDir: flags.cwd,
        systemPrompt: flags.system,
        timeoutMs: flags.timeout && flags.timeout * 1000,
      })
      // A single turn needs no warm process.
      const { isError } = await context.withAgents({ ...config, agentMode: 'oneshot' }, (agents) => {
        const backend = agents.open(flags.backend ?? config.agentBackend)
        return ask({
          backend,
          request,
          notices: unenforcedLimits(config, backend.capabilities()),
          isJson: flags.json === true,
          stdout: terminalSafe(process.stdout),
          stderr,
          signal: context.abortOn(STOP_SIGNALS),
          scrubber,
        })
      })
      context.endWith(isError ? 1 : 0)
    })
}

/** Runs one turn: the answer streams to stdout, the activity to stderr. */
export async function ask(options: AskOptions): Promise<AgentResult> {
  const { backend, request, notices = [], isJson, stdout, stderr, signal, scrubber } = options
  const printer = new TurnPrinter(stdout, stderr, Date.now)
  let result: AgentResult | undefined
  const events = new EventScrubber(scrubber)
  const { onEvent } = withNotices((event) => {
    if (event.type === 'complete') result = event.result
    if (isJson) stdout.write(`${JSON.stringify(event)}\n`)
    else printer.show(event)
  }, notices)
  for await (const raw of backend.run(request, signal)) events.scrub(raw).forEach(onEvent)
  if (result === undefined) throw new Error('A run ended without its complete event')
  if (isJson) return result
  const { finalOutput = '', sessionId, failure } = result
  printer.answer(finalOutput)
  if (failure) stderr.write(`Error (${failure.reason}): ${failure.message}\n`)
  if (sessionId !== undefined) stderr.write(`Session: ${sessionId}\n`)
  return result
}

function secondsArgument(value: string): number {
  const seconds = Number(value)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw new InvalidArgumentError('It must be a positive number of seconds.')
}
