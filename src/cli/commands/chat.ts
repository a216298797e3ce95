import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import { type Command, InvalidArgumentError } from 'commander'
import { TerminalChannel } from '../../channels/terminal.js'
import type { GatewayConfig } from '../../config.js'
import type { CommandContext } from '../command-context.js'
import { ControlClient } from '../control/client.js'
import { gatewayHandlers } from '../control/gateway-handlers.js'
import { LocalControl } from '../control/local-control.js'
import { type Control, type Push, socketPath } from '../control/protocol.js'
import { messageOf } from '../../errors.js'
import { makeHome, startGateway } from '../../gateway.js'
import { requireBackend } from '../../runtime/required-agents.js'
import type { Log } from '../../log.js'
import { ChatSession } from '../chat-session.js'
import { terminalSafe } from '../terminal-safe.js'
import type { Output } from '../turn-printer.js'

interface ChatOptions {
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  log: Log
  conversation: string
  projectId: string | undefined
  showsHistory: boolean
  stdin: ReadStream
  stdout: WriteStream
  stderr: WriteStream
  /** Calls back on Ctrl-C. */
  onInterrupt(listener: () => void): void
  /** Ends the chat at once. */
  signal: AbortSignal
}

const HISTORY_AT_START = 10
const MAX_LINES = 500
const LINES_FILE = 'chat-history'
/** A script must not wait forever for a gateway that nobody restarts. */
const SCRIPT_RECONNECT_TIMEOUT_MS = 30_000

export function registerChat(program: Command, context: CommandContext): void {
  program
    .command('chat')
    .description('Talk to the gateway that runs, or without one.')
    .option('-c, --conversation <name>', 'which conversation', nameArgument, 'default')
    .option('-p, --project <id>', 'the project to work in from now on')
    .option('--no-history', 'do not show what was said last')
    .action(async (flags: { conversation: string; project?: string; history: boolean }) => {
      const config = context.readConfig()
      const exitCode = await chat({
        config,
        environment: context.environment,
        log: context.openLog(config),
        conversation: flags.conversation,
        projectId: flags.project,
        showsHistory: flags.history,
        stdin: process.stdin,
        stdout: process.stdout,
        stderr: process.stderr,
        onInterrupt: (listener) => process.on('SIGINT', listener),
        signal: context.abortOn(['SIGTERM', 'SIGHUP']),
      })
      context.endWith(exitCode)
    })
}

/** Chats until the person leaves. Returns the exit code. */
async function chat(options: ChatOptions): Promise<number> {
  const { config, environment, log, conversation, projectId, stdin, stdout, stderr, signal } = options
  const isInteractive = stdin.isTTY && stdout.isTTY
  makeHome(config)

  const path = socketPath(config.home)
  let screen: Screen | undefined
  const session = new ChatSession({
    address: conversation,
    author: environment['USER'] || 'terminal',
    projectId,
    stdout: terminalSafe({ isTTY: stdout.isTTY, write: (text) => (screen ?? stdout).write(String(text)) }),
    stderr: terminalSafe({
      isTTY: stderr.isTTY,
      write: (text) => (screen ? screen.write(String(text), stderr) : stderr.write(String(text))),
    }),
    reconnectTimeoutMs: isInteractive ? undefined : SCRIPT_RECONNECT_TIMEOUT_MS,
    width: stdout.columns || 120,
    connect: (onPush) => ControlClient.connect(path, onPush),
    onIdle: () => screen?.prompt(),
  })
  const onPush = (push: Push): void => session.onPush(push)
  const running = await ControlClient.connect(path, onPush)
  const control = running ?? (await startOwnGateway(config, environment, log, conversation, onPush))
  try {
    if (isInteractive) {
      const { backend, pid } = await control.call('status', {})
      const whose = running ? `the gateway (process ${pid})` : 'no gateway runs, so this is one of its own'
      stdout.write(`Conversation ${conversation} with ${backend}: ${whose}. /help lists what else you can do.\n`)
    }
    await session.begin(control, isInteractive && options.showsHistory ? HISTORY_AT_START : 0)
    screen = new Screen(options, isInteractive, log)
    await untilDone(session, screen, options)
    if (!isInteractive && session.hasOnlyBlanks) {
      stderr.write('The message is empty. Write what the agent should do.\n')
      return 1
    }
    if (!session.isBusy) return session.hasFailed && !isInteractive ? 1 : 0
    const kept = running ? 'The gateway goes on with it' : 'Your message is kept and answered by the next gateway'
    if (!signal.aborted) stderr.write(`${kept}; "aetheel chat" shows the answer.\n`)
    return isInteractive ? 0 : 1
  } finally {
    screen?.close()
    await session.close()
    // The session closes it only if it has begun.
    await control.close()
  }
}

function nameArgument(value: string): string {
  if (/^\P{Cc}{1,500}$/u.test(value)) return value
  throw new InvalidArgumentError('It must be a name of at most 500 characters, without control characters.')
}

/** Does not take the gateway's lock: leases keep two gateways on one database apart. */
async function startOwnGateway(
  config: GatewayConfig,
  environment: NodeJS.ProcessEnv,
  log: Log,
  address: string,
  onPush: (push: Push) => void,
): Promise<Control> {
  await requireBackend(config, environment, log)
  const terminal = new TerminalChannel()
  // Leaving before the answer must not wait for it.
  const settings = { ...config, drainTimeoutMs: 0 }
  const gateway = await startGateway(settings, { environment, log, channels: [terminal], address })
  return new LocalControl(gatewayHandlers(gateway, terminal, config, Date.now), () => gateway.stop(), onPush)
}

/** Settles when the person leaves, or when the input has ended and everything is answered. */
async function untilDone(session: ChatSession, screen: Screen, { signal, onInterrupt }: ChatOptions): Promise<void> {
  await new Promise<void>((resolve) => {
    let taking: Promise<void> = Promise.resolve()
    let isStopping = false
    const interrupt = async (): Promise<void> => {
      if (isStopping || !session.isBusy || !session.isConnected) return resolve()
      isStopping = true
      await session.stopTurn()
      isStopping = false
    }
    screen.onLine((line) => {
      taking = taking.then(() => (line.trim() === '/quit' ? resolve() : session.take(line)))
    })
    screen.onInterrupt(() => void interrupt())
    onInterrupt(() => void interrupt())
    screen.onEnd(() => void taking.then(() => session.answered()).then(resolve))
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
    screen.prompt()
  })
}

/** Lines in, text out. On a terminal, the prompt makes way for printed text. */
class Screen {
  readonly #lines: Interface
  #isPrompting = false
  #isClosed = false

  constructor(
    private readonly options: Pick<ChatOptions, 'config' | 'stdin' | 'stdout'>,
    private readonly isInteractive: boolean,
    log: Log,
  ) {
    const { config, stdin, stdout } = options
    const file = join(config.home, LINES_FILE)
    this.#lines = isInteractive
      ? createInterface({
          input: stdin,
          output: stdout,
          prompt: '> ',
          history: readLines(file),
          historySize: MAX_LINES,
          removeHistoryDuplicates: true,
        })
      : createInterface({ input: stdin, terminal: false })
    this.#lines.on('history', (lines: string[]) => saveLines(file, lines, log))
    this.#lines.on('line', () => {
      this.#isPrompting = false
    })
    this.#lines.on('close', () => {
      this.#isClosed = true
    })
  }

  onLine(listener: (line: string) => void): void {
    this.#lines.on('line', listener)
  }

  onInterrupt(listener: () => void): void {
    this.#lines.on('SIGINT', listener)
  }

  onEnd(listener: () => void): void {
    this.#lines.once('close', listener)
    if (this.#isClosed) listener()
  }

  write(text: string, output: Output = this.options.stdout): boolean {
    this.#hidePrompt()
    return output.write(text)
  }

  prompt(): void {
    if (!this.isInteractive || this.#isClosed) return
    this.#lines.prompt(true)
    this.#isPrompting = true
  }

  close(): void {
    this.#hidePrompt()
    this.#lines.close()
  }

  #hidePrompt(): void {
    if (!this.#isPrompting) return
    this.#isPrompting = false
    const { stdout } = this.options
    moveCursor(stdout, 0, -this.#lines.getCursorPos().rows)
    cursorTo(stdout, 0)
    clearScreenDown(stdout)
  }
}

/** Newest first, as readline wants them. */
function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean).toReversed().slice(0, MAX_LINES)
  } catch {
    return [] // No history yet.
  }
}

function saveLines(file: string, lines: string[], log: Log): void {
  try {
    writeFileSync(file, `${lines.toReversed().join('\n')}\n`, { mode: 0o600 })
  } catch (error) {
    log.warn('chat-history.not-written', { error: messageOf(error) })
  }
}
