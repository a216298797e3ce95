import { createInterface, type Interface } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import { type Command, InvalidArgumentError } from 'commander'
import { TerminalChannel } from '../../channels/terminal.js'
import type { GatewayConfig } from '../../config.js'
import type { CommandContext } from '../command-context.js'
import { ControlClient } from '../control/client.js'
import { gatewayHandlers } from '../control/gateway-handlers.js'
import { LocalControl } from '../control/local-control.js'
import { type ChatPlace, type Control, type Push, socketPath } from '../control/protocol.js'
import { makeHome, startGateway } from '../../gateway.js'
import { requireBackend } from '../../runtime/required-agents.js'
import type { Log, LogDestination } from '../../log.js'
import type { TerminalView } from '../chat/terminal-view.js'
import { PlainChat, PlainChatView } from '../chat/plain-chat.js'
import { PlainView } from '../chat/plain-view.js'
import { TypedLines } from '../chat/typed-lines.js'
import { ChatSession, type ChatView } from '../chat-session.js'
import { terminalSafe } from '../terminal-safe.js'
import { DEMO_AGENT_NAME } from '../../core/demo-agent.js'

interface ChatOptions {
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  openLog(destination?: LogDestination): Log
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
/** A script must not wait forever for a gateway that nobody restarts. */
const SCRIPT_RECONNECT_TIMEOUT_MS = 30_000

export function registerChat(program: Command, context: CommandContext): void {
  program
    .command('chat')
    .description('Chat with the agent, with or without a running gateway.')
    .option('-c, --conversation <name>', 'name of the conversation', nameArgument, 'default')
    .option('-p, --project <id>', 'work in this project, from now on')
    .option('--no-history', 'do not show the last messages')
    .action(async (flags: { conversation: string; project?: string; history: boolean }) => {
      const config = context.readConfig()
      const exitCode = await chat({
        config,
        environment: context.environment,
        // On a screen, the chat itself shows what went wrong.
        openLog: (destination) => context.openLog(config, destination ? 'silent' : 'error', destination),
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
  makeHome(options.config)
  const { stdin, stdout, environment } = options
  const isAtTerminal = stdin.isTTY && stdout.isTTY
  // A simple terminal can neither move the cursor nor send separate keys.
  if (!isAtTerminal || environment['TERM'] === 'dumb') return chatInPlainText(options, isAtTerminal)
  return chatOnScreen(options)
}

async function chatOnScreen(options: ChatOptions): Promise<number> {
  const { config, environment, conversation, stdin, stdout, stderr, signal } = options
  // Loaded lazily: plain chats do not need it.
  const { historyFileIn, TerminalChat } = await import('../chat/terminal-chat.js')
  let shown: TerminalView | undefined
  // A log line must not break up the screen.
  const destination: LogDestination = {
    isTTY: stderr.isTTY,
    write: (line) => {
      if (!stderr.isTTY || !shown) return stderr.write(line)
      shown.note(String(line).trimEnd())
      return true
    },
  }
  const log = options.openLog(destination)
  const historyFile = historyFileIn(config.home)
  const about = { historyFile, conversation, log, now: Date.now }
  const terminal = new TerminalChat({ stdin, stdout, environment, ...about })
  const session = newSession(options, terminal.view, false)
  const leaving = Promise.race([terminal.left, aborted(signal)])
  let closeGateway = async (): Promise<void> => {}
  let farewell = ''
  const begin = async (): Promise<ChatGateway> => {
    const { control, gateway } = await connectOrStart(options, log, (push) => session.onPush(push), leaving)
    // The session closes it only if it has begun.
    closeGateway = async () => control.close()
    const agentOf = ({ backend, isDemo }: ChatPlace): string => (isDemo ? DEMO_AGENT_NAME : backend)
    const greet = async (): Promise<void> => terminal.greet(session, agentOf, gateway.words)
    await session.begin(control, options.showsHistory ? HISTORY_AT_START : 0, greet)
    return gateway
  }
  let beginning: Promise<ChatGateway> | undefined
  try {
    terminal.open()
    shown = terminal.view
    options.onInterrupt(() => void terminal.interrupt())
    beginning = begin()
    const gateway = await Promise.race([beginning, leaving])
    if (gateway) {
      terminal.ready()
      await leaving
      if (session.isBusy && !signal.aborted) farewell = farewellOf(gateway)
    }
  } finally {
    // First, so that the shell gets its terminal back whatever the gateway does.
    shown = undefined
    terminal.close()
    // It must not look for another gateway while this one stops.
    await session.close()
    await Promise.allSettled([beginning])
    await session.close()
    await closeGateway()
  }
  if (farewell !== '') stderr.write(farewell)
  return 0
}

async function chatInPlainText(options: ChatOptions, isPerson: boolean): Promise<number> {
  const { stdin, stdout, stderr, signal } = options
  const log = options.openLog()
  const shown = [terminalSafe(stdout), terminalSafe(stderr), stdout.columns || 120, Date.now] as const
  const personal = isPerson ? new PlainChatView(...shown) : undefined
  const session = newSession(options, personal ?? new PlainView(...shown), !isPerson)
  const { control, gateway } = await connectOrStart(options, log, (push) => session.onPush(push), aborted(signal))
  let lines: Interface | undefined
  try {
    await session.begin(control, isPerson && options.showsHistory ? HISTORY_AT_START : 0)
    if (isPerson) stderr.write(`${gateway.words}. /help lists commands.\n`)
    // Not earlier: lines without a listener are lost.
    lines = createInterface({ input: stdin, terminal: false })
    await untilDone(session, lines, options, personal && new PlainChat(personal, session))
    if (!isPerson && session.hasOnlyBlanks) {
      stderr.write('The message is empty. Write what the agent should do.\n')
      return 1
    }
    if (!session.isBusy) return session.hasFailed && !isPerson ? 1 : 0
    if (!signal.aborted) stderr.write(farewellOf(gateway))
    return isPerson ? 0 : 1
  } finally {
    lines?.close()
    personal?.questions.stop()
    await session.close()
    await control.close()
  }
}

function newSession(
  { config, environment, conversation, projectId }: ChatOptions,
  view: ChatView,
  isScript: boolean,
): ChatSession {
  return new ChatSession({
    address: conversation,
    author: environment['USER'] || 'terminal',
    projectId,
    view,
    refusesQuestions: isScript,
    reconnectTimeoutMs: isScript ? SCRIPT_RECONNECT_TIMEOUT_MS : undefined,
    connect: (onPush) => ControlClient.connect(socketPath(config.home), onPush),
  })
}

interface ChatGateway {
  /** Whether it was already running, rather than started by this chat. */
  isRunning: boolean
  words: string
}

async function connectOrStart(
  { config, environment, conversation }: ChatOptions,
  log: Log,
  onPush: (push: Push) => void,
  /** Settles when a gateway that does not answer must be given up. */
  leaving: Promise<void>,
): Promise<{ control: Control; gateway: ChatGateway }> {
  const running = await ControlClient.connect(socketPath(config.home), onPush)
  if (!running) {
    const control = await startOwnGateway(config, environment, log, conversation, onPush)
    const words = `Conversation ${conversation}: no gateway is running, so this chat runs its own`
    return { control, gateway: { isRunning: false, words } }
  }
  void leaving.then(() => running.close())
  const { pid } = await running.call('status', {})
  return {
    control: running,
    gateway: { isRunning: true, words: `Conversation ${conversation}: gateway process ${pid}` },
  }
}

function farewellOf({ isRunning }: ChatGateway): string {
  const kept = isRunning ? 'The gateway keeps working on it' : 'Your message is kept, and the next gateway answers it'
  return `${kept}; "aetheel chat" shows the answer.\n`
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

/** Settles when the input has ended and everything is answered, or when the chat is ended. */
async function untilDone(
  session: ChatSession,
  lines: Interface,
  { signal, onInterrupt }: ChatOptions,
  person: PlainChat | undefined,
): Promise<void> {
  await new Promise<void>((resolve) => {
    let taking: Promise<void> = Promise.resolve()
    let isStopping = false
    const interrupt = async (): Promise<void> => {
      if (isStopping || !session.isBusy || !session.control) return resolve()
      isStopping = true
      await session.stopTurn()
      isStopping = false
    }
    const take = (text: string): void => {
      taking = taking.then(() => (text.trim() === '/quit' ? resolve() : (person ?? session).take(text)))
    }
    const typed = new TypedLines(take)
    lines.on('line', (line) => (person ? typed.push(line) : take(line)))
    lines.once('close', () => {
      typed.end()
      void taking.then(() => session.answered()).then(resolve)
    })
    onInterrupt(() => void interrupt())
    void aborted(signal).then(resolve)
  })
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
