// Codex as a warm process. Wire types captured from `codex app-server`, CLI 0.166.0; see test/fixtures/codex/live-*.jsonl and
// docs/backends/codex.md. What it tells is given to the translation of one-shot in the words of `codex exec --json`.
//
// Traps that a careless edit would fall into:
// - A turn that is started on a busy thread steers the one that runs: turns of a thread wait for each other.
// - What is told of an earlier turn comes late, such as the end of a command or old usage: the id of the turn decides.
// - An interrupt before `turn/started` is refused, and one leaves the commands of the turn running.
// - A thread that is loaded is locked: no other process can continue it until this one has ended.
// - Only at its load does a thread take settings, and a model without being told that it was changed.
// - A thread that is loaded keeps its settings, whatever `thread/resume` says, and its sub-agents theirs: threads that ask have
//   a process of their own.
// - What is added to a thread in the middle of a turn makes the model answer once more.

import { messageOf } from '../../errors.js'
import { gatewayInstructions, isLastInstructed, untrustedConfig } from './settings.js'
import type { JsonObject } from '../engine/jsonl.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody, ApprovalAnswer, Approve, Steer } from '../types.js'
import { requestOf } from './approvals.js'
import { type Item, lineOf, type Notification } from './warm-lines.js'
import { Rpc } from '../engine/warm/rpc.js'
import { SessionLines, SharedTurn } from '../engine/warm/shared-turn.js'
import type { WarmConnection, WarmDriver, WarmTurn } from '../engine/warm/types.js'

type Send = (message: JsonObject) => void
type Translate = (emit: (event: AgentEventBody) => void, turn: Turn) => Translation

interface Loaded {
  thread: { id: string; path?: string | null }
  model: string
}

interface Config {
  model?: string | null
  developer_instructions?: string | null
}

interface Thread {
  id: string
  /** Where it works. */
  workingDir: string
  model: string
  isModelChosen: boolean
  /** The system prompt it was given at its load. */
  lasting: string
  /** The one that the model was told last. */
  instructed: string | undefined
}

export class CodexWarmDriver implements WarmDriver {
  readonly isShared = true
  readonly canAsk = true
  readonly locksSessions = true
  readonly oldestKnown = '0.166.0'

  constructor(
    readonly launch: WarmDriver['launch'],
    private readonly translation: Translate,
  ) {}

  /** All else is said with a thread or a turn. */
  keyOf({ isUntrusted, isAsking }: Turn): string {
    return JSON.stringify({ isUntrusted, isAsking })
  }

  connect(send: Send): WarmConnection {
    return new CodexConnection(send, this.translation)
  }
}

class CodexConnection implements WarmConnection {
  readonly ready: Promise<void>
  readonly #rpc: Rpc
  #lines = new SessionLines()
  /** Those that are loaded, by id. */
  #threads = new Map<string, Thread>()
  /** Those under way, by the id of their thread. */
  #turns = new Map<string, CodexTurn>()
  /** What was last told of the usage of each thread. */
  #totals = new Map<string, JsonObject>()
  /** What was told of threads while no turn of them was under way. */
  #warnings = new Map<string, string[]>()

  constructor(
    send: Send,
    private readonly translation: Translate,
  ) {
    this.#rpc = new Rpc(send, {
      notified: (method, params) => this.#notified(method, params),
      asked: (method, params) => this.#asked(method, params),
    })
    this.ready = this.#initialize()
  }

  ping(): Promise<void> {
    return this.#rpc.ask('thread/loaded/list')
  }

  receive(message: JsonObject): void {
    this.#rpc.receive(message)
  }

  begin(turn: Turn, emit: (event: AgentEventBody) => void, approve?: Approve): WarmTurn {
    const warm = new CodexTurn(turn, this.translation(emit, turn), this.#rpc, approve)
    const open = (): Promise<Thread> => this.#open(turn, 'thread/start')
    void this.#lines.play(warm, open, (id) => this.#talk(id, warm))
    return warm
  }

  async #initialize(): Promise<void> {
    await this.#rpc.request('initialize', {
      clientInfo: { name: 'aetheel', title: null, version: '0' },
      // Experimental is the request that ends what a turn left running.
      capabilities: { experimentalApi: true, requestAttestation: false, optOutNotificationMethods: UNHEARD },
    })
    this.#rpc.notify('initialized')
  }

  async #talk(id: string, warm: CodexTurn): Promise<void> {
    if (warm.isInterrupted) return
    const thread = this.#threads.get(id) ?? (await this.#open(warm.turn, 'thread/resume', id))
    const { turn, translation } = warm
    translation.accept({ type: 'thread.started', thread_id: thread.id })
    if (translation.mustStop) return
    for (const message of this.#warnings.get(thread.id) ?? []) warm.warn(message)
    this.#warnings.delete(thread.id)
    await this.#instruct(thread, turn.systemPrompt)
    const model = turn.model ?? (thread.isModelChosen ? await this.#defaultModel(turn) : thread.model)
    if (!warm.mayAsk()) return
    this.#turns.set(thread.id, warm)
    try {
      await this.#rpc.request('turn/start', {
        threadId: thread.id,
        input: inputOf(turn.prompt),
        // What is said anew, Codex works out anew, which takes it milliseconds.
        ...(turn.workingDir !== thread.workingDir && { cwd: turn.workingDir }),
        ...(model !== thread.model && { model }),
      })
      Object.assign(thread, { workingDir: turn.workingDir, model, isModelChosen: turn.model !== undefined })
      await warm.completed
      if (warm.hasOpenCommands) await this.#endCommands(thread.id, warm)
    } catch (error) {
      // The next turn loads it anew.
      this.#threads.delete(thread.id)
      throw error
    } finally {
      this.#turns.delete(thread.id)
    }
  }

  /** What a turn left running would go on for ever. */
  async #endCommands(threadId: string, warm: CodexTurn): Promise<void> {
    try {
      await this.#rpc.request('thread/backgroundTerminals/clean', { threadId })
    } catch (error) {
      warm.warn(`A command that is still running could not be ended: ${messageOf(error)}`)
    }
  }

  async #open(turn: Turn, method: 'thread/start' | 'thread/resume', id?: string): Promise<Thread> {
    const { workingDir, model, isUntrusted, systemPrompt } = turn
    const own = systemPrompt === '' ? undefined : await this.#config(turn)
    const instructions = [own?.developer_instructions, gatewayInstructions(systemPrompt)].filter(Boolean)
    const loaded = (await this.#rpc.request(method, {
      ...(id !== undefined && { threadId: id, excludeTurns: true }),
      cwd: workingDir,
      ...approval(turn),
      sandbox: 'danger-full-access',
      ...(model !== undefined && { model }),
      ...(own && { developerInstructions: instructions.join('\n\n') }),
      ...(isUntrusted && { config: untrustedConfig(workingDir) }),
    })) as unknown as Loaded
    const isInstructed =
      systemPrompt === '' || id === undefined || (await isLastInstructed(systemPrompt, loaded.thread.path ?? ''))
    const thread: Thread = {
      id: loaded.thread.id,
      workingDir,
      model: loaded.model,
      isModelChosen: model !== undefined,
      lasting: systemPrompt,
      instructed: isInstructed ? systemPrompt : undefined,
    }
    if (id === undefined) this.#totals.set(thread.id, {})
    this.#threads.set(thread.id, thread)
    return thread
  }

  /** Of the operator, and of the project where it may have a say. */
  async #config({ workingDir, isUntrusted }: Turn): Promise<Config> {
    const { config } = await this.#rpc.request('config/read', isUntrusted ? {} : { cwd: workingDir })
    return config as Config
  }

  /** The one that a thread has which is started without. */
  async #defaultModel(turn: Turn): Promise<string | undefined> {
    const { model } = await this.#config(turn)
    if (model) return model
    const { data } = (await this.#rpc.request('model/list')) as { data: Array<{ model: string; isDefault: boolean }> }
    return data.find(({ isDefault }) => isDefault)?.model
  }

  /** As the hook of one-shot adds it, and knows it again. What a thread was given at its load is not said anew when changed. */
  async #instruct(thread: Thread, systemPrompt: string): Promise<void> {
    if (systemPrompt === '' || thread.instructed === systemPrompt) return
    thread.instructed = systemPrompt
    const content = [{ type: 'input_text', text: gatewayInstructions(systemPrompt) }]
    await this.#rpc.request('thread/inject_items', {
      threadId: thread.id,
      items: [{ type: 'message', role: 'developer', content }],
    })
  }

  /** Sub-agents have threads of their own, which nobody knows here: what they ask for is declined. */
  async #asked(method: string, params: JsonObject): Promise<JsonObject | undefined> {
    const warm = this.#turns.get(String(params['threadId']))
    const answer = await warm?.ask(method, params)
    switch (method) {
      case 'item/commandExecution/requestApproval':
      case 'item/fileChange/requestApproval':
        return { decision: answer?.isAllowed ? 'accept' : warm?.isInterrupted ? 'cancel' : 'decline' }
      case 'mcpServer/elicitation/request':
        return { action: answer?.isAllowed ? 'accept' : 'decline', content: null, _meta: null }
      default:
        return undefined
    }
  }

  #notified(method: string, params: Notification): void {
    const { threadId = '', tokenUsage, item, message } = params
    const warm = this.#turns.get(threadId)
    if (method === 'warning' && message !== undefined) {
      if (warm) warm.warn(message)
      else this.#warnings.set(threadId, [...(this.#warnings.get(threadId) ?? []), message])
      return
    }
    warm?.heard(method, params, this.#totals.get(threadId))
    if (tokenUsage) this.#totals.set(threadId, tokenUsage.total)
    const thread = this.#threads.get(threadId)
    // A summary took the place of all that was said, but for what the thread was given at its load.
    if (thread && method === 'item/completed' && item?.type === 'contextCompaction') thread.instructed = thread.lasting
  }
}

class CodexTurn extends SharedTurn {
  /** Settles when Codex has said that the turn is over. */
  readonly completed: Promise<void>
  #setCompleted = (): void => {}
  readonly #started: Promise<void>
  #setStarted = (): void => {}
  /** Where to interrupt it, when it has started. */
  #address: { threadId: string; turnId: string } | undefined
  #totalBefore: JsonObject | undefined
  #openCommands = new Set<string>()
  /** What it has begun with, by id. */
  #items = new Map<string, Item>()
  /** What is said of tools that were not allowed, by the id of the item. */
  #denials = new Map<string, string>()
  #over = new AbortController()

  constructor(
    turn: Turn,
    translation: Translation,
    private readonly rpc: Rpc,
    private readonly approve?: Approve,
  ) {
    super(turn, translation)
    this.completed = new Promise((resolve) => {
      this.#setCompleted = resolve
    })
    this.#started = new Promise((resolve) => {
      this.#setStarted = resolve
    })
  }

  fail(error: unknown): void {
    this.translation.accept({ type: 'turn.failed', error: { message: messageOf(error) } })
  }

  /** The id of the turn goes along: without it, what comes too late would begin another. */
  readonly steer: Steer = async (text) => {
    await this.#started
    const { threadId, turnId } = this.#address ?? {}
    try {
      await this.rpc.request('turn/steer', { threadId, expectedTurnId: turnId, input: inputOf(text) })
      return true
    } catch {
      return false
    }
  }

  get hasOpenCommands(): boolean {
    return this.#openCommands.size > 0
  }

  protected stop(): void {
    // Refused when it is over anyway.
    if (this.#address) this.rpc.request('turn/interrupt', this.#address).catch(() => {})
  }

  /** Undefined for what is no tool, or where the turn does not ask. */
  async ask(method: string, params: JsonObject): Promise<ApprovalAnswer | undefined> {
    const request = requestOf(method, params, this.#items)
    if (!this.approve || !request || this.isInterrupted) return undefined
    const answer = await this.approve(request, this.#over.signal)
    if (!answer.isAllowed) this.#denials.set(String(params['itemId']), answer.message)
    return answer
  }

  warn(message: string): void {
    this.translation.accept({ type: 'item.completed', item: { id: '', type: 'error', message } })
  }

  /** `total` is what the thread has used before, where that is known. */
  heard(method: string, params: Notification, total: JsonObject | undefined): void {
    const { threadId = '', turn, turnId = turn?.id, item } = params
    if (turnId === undefined) return
    if (method === 'turn/started' && !this.#address) {
      this.#address = { threadId, turnId }
      this.#totalBefore = total
      this.#setStarted()
      if (this.isInterrupted) this.stop()
    }
    if (turnId !== this.#address?.turnId) return
    this.translation.accept(lineOf(method, this.#told(params), this.#totalBefore))
    if (item && method === 'item/started') this.#items.set(item.id, item)
    if (item?.type === 'commandExecution') {
      if (method === 'item/started') this.#openCommands.add(item.id)
      else this.#openCommands.delete(item.id)
    }
    if (method === 'turn/completed') {
      if (this.approve) this.#over.abort()
      this.#setCompleted()
    }
  }

  /** Why it was not allowed is not among what Codex says of a tool. */
  #told(params: Notification): Notification {
    const { item } = params
    const aggregatedOutput = item?.status === 'declined' ? this.#denials.get(item.id) : undefined
    return item && aggregatedOutput !== undefined ? { ...params, item: { ...item, aggregatedOutput } } : params
  }
}

/** With the whole machine before it, `untrusted` asks about every command and every change of a file. The settings of the
 *  operator could have an agent answer in place of a person. */
function approval({ isAsking }: Turn): JsonObject {
  return isAsking ? { approvalPolicy: 'untrusted', approvalsReviewer: 'user' } : { approvalPolicy: 'never' }
}

function inputOf(text: string): JsonObject[] {
  return [{ type: 'text', text, text_elements: [] }]
}

/** What grows with the output of commands and with files, or tells nothing of a turn. */
const UNHEARD = [
  ...['item/commandExecution/outputDelta', 'item/fileChange/outputDelta', 'item/fileChange/patchUpdated'],
  ...['turn/diff/updated', 'account/rateLimits/updated', 'remoteControl/status/changed'],
  ...['thread/started', 'thread/status/changed', 'thread/readState/changed'],
]
