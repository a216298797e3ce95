// Codex as a warm process. Wire types captured from `codex app-server`, CLI 0.166.0; see test/fixtures/codex/live-*.jsonl and
// docs/backends/codex.md. Its events are converted to lines of `codex exec --json` for the one-shot translation.
//
// Traps:
// - A turn started on a busy thread steers the running one, so turns of a thread wait for each other.
// - Events of an earlier turn may arrive late, such as the end of a command or old usage: go by the turn's id.
// - An interrupt before `turn/started` is refused, and an interrupt leaves the turn's commands running.
// - A loaded thread is locked: no other process can continue it until this one has ended.
// - A thread takes settings only when it is loaded. Only then can its model be set without the model being told.
// - A loaded thread keeps its settings, whatever `thread/resume` says, and so do its subagents: threads that need approvals
//   get a separate process.
// - Items added to a thread in the middle of a turn make the model answer once more.

import { deferred } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { JsonObject } from '../engine/jsonl.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import { RpcError, SharedConnection, SharedTurn } from '../engine/warm/shared-connection.js'
import type { Send, Variables, WarmDriver } from '../engine/warm/types.js'
import type { ApprovalAnswer, Approve, Steer } from '../types.js'
import { type Item, lineOf, type Notification, requestOf } from './warm-lines.js'
import { areLastInstructions, gatewayInstructions, untrustedConfig } from './settings.js'

interface LoadedThread {
  thread: { id: string; path?: string | null }
  model: string
}

interface Config {
  model?: string | null
  developer_instructions?: string | null
}

interface Thread {
  id: string
  workingDir: string
  model: string
  isModelChosen: boolean
  /** The system prompt it was loaded with, which survives compaction. */
  loadedInstructions: string
  /** The system prompt the model got last. */
  lastInstructions: string | undefined
}

const KEY_VARIABLE = 'CODEX_API_KEY'
const OWN_SUMMARY = 'Codex cannot be told what to keep when it compacts a session.'

/** Keeps a login by `CODEX_API_KEY` in memory. */
export function storeArgs(variables: Variables): string[] {
  return variables[KEY_VARIABLE] ? ['-c', 'cli_auth_credentials_store="ephemeral"'] : []
}

export function codexWarmDriver(launch: WarmDriver['launch']): WarmDriver {
  return {
    isShared: true,
    canAsk: true,
    canCompact: true,
    locksSessions: true,
    oldestKnown: '0.166.0',
    /** Everything else is set per thread or turn. */
    keyOf: ({ isUntrusted, isAsking }) => JSON.stringify({ isUntrusted, isAsking }),
    launch,
    connect: (send, _place, variables) => new CodexConnection(send, variables[KEY_VARIABLE]),
  }
}

/** Its sessions are called threads. */
class CodexConnection extends SharedConnection<CodexTurn> {
  readonly ready: Promise<void>
  /** Loaded threads, by id. */
  #threads = new Map<string, Thread>()
  /** The latest total usage of each thread. */
  #totals = new Map<string, JsonObject>()
  /** Warnings about threads without a running turn. */
  #warnings = new Map<string, string[]>()

  constructor(send: Send, apiKey: string | undefined) {
    super(send)
    this.ready = this.#initialize(apiKey)
  }

  ping(): Promise<void> {
    return this.rpc.ask('thread/loaded/list')
  }

  protected newTurn(turn: Turn, translation: Translation, approve?: Approve): CodexTurn {
    return new CodexTurn(turn, translation, this.rpc, approve)
  }

  async #initialize(apiKey: string | undefined): Promise<void> {
    await this.rpc.request('initialize', {
      clientInfo: { name: 'aetheel', title: null, version: '0' },
      // The request that ends commands left running is experimental.
      capabilities: { experimentalApi: true, requestAttestation: false, optOutNotificationMethods: UNWANTED },
    })
    this.rpc.notify('initialized')
    if (apiKey) await this.#logIn(apiKey)
  }

  /** `codex app-server` does not read the variable. If the login were not kept in memory, Codex would write the key into the
   *  operator's own home. */
  async #logIn(apiKey: string): Promise<void> {
    const { config } = (await this.rpc.request('config/read')) as { config?: JsonObject }
    if (config?.['cli_auth_credentials_store'] !== 'ephemeral') return
    try {
      await this.rpc.request('account/login/start', { type: 'apiKey', apiKey })
    } catch (error) {
      // This login may be forbidden: then the turn reports that Codex is not logged in.
      if (!(error instanceof RpcError)) throw error
    }
  }

  protected async talk(id: string, warm: CodexTurn): Promise<void> {
    if (warm.isInterrupted) return
    const thread = this.#threads.get(id) ?? (await this.open(warm.turn, id))
    const { turn, translation } = warm
    translation.accept({ type: 'thread.started', thread_id: thread.id })
    if (translation.mustStop) return
    for (const message of this.#warnings.get(thread.id) ?? []) warm.warn(message)
    this.#warnings.delete(thread.id)
    if (turn.compaction?.focus) warm.warn(OWN_SUMMARY)
    const model = turn.compaction ? undefined : await this.#prepare(thread, turn)
    if (!warm.mayPrompt()) return
    this.turns.set(thread.id, warm)
    try {
      if (turn.compaction) await this.rpc.request('thread/compact/start', { threadId: thread.id })
      else await this.#prompt(thread, turn, model)
      await warm.completed
      if (warm.hasOpenCommands) await this.#endCommands(thread.id, warm)
    } catch (error) {
      // The next turn reloads it.
      this.#threads.delete(thread.id)
      throw error
    } finally {
      this.turns.delete(thread.id)
    }
  }

  /** Returns the turn's model. */
  async #prepare(thread: Thread, turn: Turn): Promise<string | undefined> {
    await this.#instruct(thread, turn.systemPrompt)
    return turn.model ?? (thread.isModelChosen ? this.#defaultModel(turn) : thread.model)
  }

  async #prompt(thread: Thread, turn: Turn, model: string | undefined): Promise<void> {
    await this.rpc.request('turn/start', {
      threadId: thread.id,
      input: inputOf(turn.prompt),
      // Only if changed: Codex spends milliseconds on each setting it is given.
      ...(turn.workingDir !== thread.workingDir && { cwd: turn.workingDir }),
      ...(model !== thread.model && { model }),
    })
    Object.assign(thread, { workingDir: turn.workingDir, model, isModelChosen: turn.model !== undefined })
  }

  /** Commands that a turn left running would never end. */
  async #endCommands(threadId: string, warm: CodexTurn): Promise<void> {
    try {
      await this.rpc.request('thread/backgroundTerminals/clean', { threadId })
    } catch (error) {
      warm.warn(`A command that is still running could not be stopped: ${messageOf(error)}`)
    }
  }

  protected async open(turn: Turn, id?: string): Promise<Thread> {
    const { workingDir, model, isUntrusted, systemPrompt } = turn
    const own = systemPrompt === '' ? undefined : await this.#config(turn)
    const instructions = [own?.developer_instructions, gatewayInstructions(systemPrompt)].filter(Boolean)
    const loaded = (await this.rpc.request(id === undefined ? 'thread/start' : 'thread/resume', {
      ...(id !== undefined && { threadId: id, excludeTurns: true }),
      cwd: workingDir,
      ...approval(turn),
      sandbox: 'danger-full-access',
      ...(model !== undefined && { model }),
      ...(own && { developerInstructions: instructions.join('\n\n') }),
      ...(isUntrusted && { config: untrustedConfig(workingDir) }),
    })) as unknown as LoadedThread
    const isUpToDate =
      systemPrompt === '' || id === undefined || (await areLastInstructions(systemPrompt, loaded.thread.path ?? ''))
    const thread: Thread = {
      id: loaded.thread.id,
      workingDir,
      model: loaded.model,
      isModelChosen: model !== undefined,
      loadedInstructions: systemPrompt,
      lastInstructions: isUpToDate ? systemPrompt : undefined,
    }
    if (id === undefined) this.#totals.set(thread.id, {})
    this.#threads.set(thread.id, thread)
    return thread
  }

  /** The operator's configuration, merged with that of a trusted project. */
  async #config({ workingDir, isUntrusted }: Turn): Promise<Config> {
    const { config } = await this.rpc.request('config/read', isUntrusted ? {} : { cwd: workingDir })
    return config as Config
  }

  /** The model of a thread that is started without one. */
  async #defaultModel(turn: Turn): Promise<string | undefined> {
    const { model } = await this.#config(turn)
    if (model) return model
    const { data } = (await this.rpc.request('model/list')) as { data: Array<{ model: string; isDefault: boolean }> }
    return data.find(({ isDefault }) => isDefault)?.model
  }

  /** Adds the system prompt in the form that the one-shot hook adds and recognises. Codex does not tell the model about
   *  changed `developerInstructions` of a thread. */
  async #instruct(thread: Thread, systemPrompt: string): Promise<void> {
    if (systemPrompt === '' || thread.lastInstructions === systemPrompt) return
    thread.lastInstructions = systemPrompt
    const content = [{ type: 'input_text', text: gatewayInstructions(systemPrompt) }]
    await this.rpc.request('thread/inject_items', {
      threadId: thread.id,
      items: [{ type: 'message', role: 'developer', content }],
    })
  }

  /** Requests of subagents are declined: they come from threads unknown here. */
  async onRequest(method: string, params: JsonObject): Promise<JsonObject | undefined> {
    const warm = this.turns.get(String(params['threadId']))
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

  onNotification(method: string, params: Notification): void {
    const { threadId = '', tokenUsage, item, message } = params
    const warm = this.turns.get(threadId)
    if (method === 'warning' && message !== undefined) {
      if (warm) warm.warn(message)
      else this.#warnings.set(threadId, [...(this.#warnings.get(threadId) ?? []), message])
      return
    }
    warm?.receive(method, params, this.#totals.get(threadId))
    if (tokenUsage) this.#totals.set(threadId, tokenUsage.total)
    const thread = this.#threads.get(threadId)
    // Compaction replaced everything except the instructions the thread was loaded with.
    if (thread && method === 'item/completed' && item?.type === 'contextCompaction')
      thread.lastInstructions = thread.loadedInstructions
  }
}

class CodexTurn extends SharedTurn {
  readonly #started = deferred()
  readonly #completed = deferred()
  /** Settles when Codex reports the end of the turn. */
  readonly completed = this.#completed.promise
  /** Where to interrupt it; set once it has started. */
  #address: { threadId: string; turnId: string } | undefined
  #totalBefore: JsonObject | undefined
  #openCommands = new Set<string>()
  /** Started items, by id. */
  #items = new Map<string, Item>()
  /** Reasons for denied tools, by item id. */
  #denials = new Map<string, string>()

  fail(error: unknown): void {
    this.translation.accept({ type: 'turn.failed', error: { message: messageOf(error) } })
  }

  /** Includes the turn's id: without it, text that comes too late would begin another turn. */
  readonly steer: Steer = async (text) => {
    await this.#started.promise
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
    // Refused only if the turn is over anyway.
    if (this.#address) this.rpc.request('turn/interrupt', this.#address).catch(() => {})
  }

  /** Undefined if it is not about a tool, or the turn needs no approvals. */
  async ask(method: string, params: JsonObject): Promise<ApprovalAnswer | undefined> {
    const request = requestOf(method, params, this.#items)
    if (!this.approve || !request || this.isInterrupted) return undefined
    const answer = await this.approve(request, this.over.signal)
    if (!answer.isAllowed) this.#denials.set(String(params['itemId']), answer.message)
    return answer
  }

  warn(message: string): void {
    this.translation.accept({ type: 'item.completed', item: { id: '', type: 'error', message } })
  }

  /** `total` is the thread's usage so far, if known. */
  receive(method: string, params: Notification, total: JsonObject | undefined): void {
    const { threadId = '', turn, turnId = turn?.id, item } = params
    if (turnId === undefined) return
    if (method === 'turn/started' && !this.#address) {
      this.#address = { threadId, turnId }
      this.#totalBefore = total
      this.#started.resolve()
      if (this.isInterrupted) this.stop()
    }
    if (turnId !== this.#address?.turnId) return
    this.translation.accept(lineOf(method, this.#withDenial(params), this.#totalBefore))
    if (item && method === 'item/started') this.#items.set(item.id, item)
    if (item?.type === 'commandExecution') {
      if (method === 'item/started') this.#openCommands.add(item.id)
      else this.#openCommands.delete(item.id)
    }
    if (method === 'turn/completed') {
      if (this.approve) this.over.abort()
      this.#completed.resolve()
    }
  }

  /** Adds the reason for a denial, which Codex does not repeat. */
  #withDenial(params: Notification): Notification {
    const { item } = params
    const aggregatedOutput = item?.status === 'declined' ? this.#denials.get(item.id) : undefined
    return item && aggregatedOutput !== undefined ? { ...params, item: { ...item, aggregatedOutput } } : params
  }
}

/** With full access, `untrusted` asks about every command and every file change. `user` overrides operator settings that
 *  let an agent review in place of a person. */
function approval({ isAsking }: Turn): JsonObject {
  return isAsking ? { approvalPolicy: 'untrusted', approvalsReviewer: 'user' } : { approvalPolicy: 'never' }
}

function inputOf(text: string): JsonObject[] {
  return [{ type: 'text', text, text_elements: [] }]
}

/** Notifications that grow with command output and files, or say nothing about a turn. */
const UNWANTED = [
  ...['item/commandExecution/outputDelta', 'item/fileChange/outputDelta', 'item/fileChange/patchUpdated'],
  ...['turn/diff/updated', 'account/rateLimits/updated', 'remoteControl/status/changed'],
  ...['thread/started', 'thread/status/changed', 'thread/readState/changed'],
]
