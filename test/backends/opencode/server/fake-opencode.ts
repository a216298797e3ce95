// A fake `opencode serve` on a real socket. The prompt determines what its agent does: a script of the contract, whose
// processes are children of this one, or a list of actions.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises'
import type { OpenCodeEndpoint } from '../../../../src/backends/opencode/server/servers.js'

/** The agent's next action; also what a script prints, one per line. */
export type Action =
  /** Calls the model. */
  | { do: 'start' }
  | { do: 'say'; texts: string[]; isUnfinished?: boolean }
  | { do: 'think'; text: string }
  | { do: 'tool'; id: string; command: string }
  | { do: 'tool-end'; id: string; output: string; isError: boolean }
  | { do: 'step'; reason: string }
  | { do: 'error'; error: object }
  /** Asks, and continues after the answer. */
  | { do: 'ask'; permission: string; patterns: string[]; metadata?: object; inChild?: boolean; inSession?: string }
  | { do: 'question'; question: string }
  | { do: 'retry'; attempt: number; message: string }
  /** A raw event. */
  | { do: 'raw'; type: string; properties: object }
  /** All connections for events break. */
  | { do: 'cut'; untilBack: boolean }
  /** Sends no more events. */
  | { do: 'mute' }
  /** Continues when a client has asked for the sessions' status. */
  | { do: 'await-look' }
  | { do: 'idle' }
  /** Like a restarted server: connections break, and all work is gone. */
  | { do: 'forget' }
  | { do: 'hang' }
  | { do: 'quit' }

interface Info {
  id: string
  role: string
  time: { created: number; completed?: number }
  [name: string]: unknown
}

export interface Message {
  info: Info
  parts: Array<Record<string, unknown> & { id: string }>
}

interface FakeSession {
  id: string
  directory: string
  parentID?: string
  permission?: unknown
  messages: Message[]
  /** Stops the agent. */
  abort?: () => Promise<void>
  /** The second of two prompts is answered after the first. */
  turns: Promise<void>
}

interface Pending {
  kind: 'permission' | 'question'
  request: { id: string; sessionID: string }
  directory: string
  answer(reply: string): void
}

export interface Received {
  method: string
  path: string
  directory: string | undefined
  body: Record<string, unknown>
}

const PASSWORD = 'open sesame'
export const PROMPT_PREFIX = 'do '
/** The prompt for a session that the server does not know. */
export const UNKNOWN = 'exit 44'

/** The prompt that makes the agent do this. */
export function promptOf(...actions: Action[]): string {
  return PROMPT_PREFIX + JSON.stringify(actions)
}

export class FakeOpenCode {
  readonly received: Received[] = []
  /** How the permissions and questions were answered. */
  readonly answers: string[] = []
  readonly sessions = new Map<string, FakeSession>()
  version = '1.18.33'
  /** Requests that are never answered. */
  isDeafTo: (path: string) => boolean = () => false
  /** Requests that are answered with 500. */
  isBrokenFor: (path: string, method: string) => boolean = () => false
  /** Breaks the event connection after this many events. */
  cutAfter: number[] = []
  /** Whether the agent waits until a client listens again. */
  waitsForListeners = false
  /** The `session.error` to send for each prompt instead of beginning with it. */
  refusal: object | undefined
  /** The error message that rejects each prompt. */
  problem: string | undefined
  /** Delays accepting a prompt. */
  mayTakePrompts = Promise.resolve()
  /** Delays the summary of a session. */
  maySummarize = Promise.resolve()
  /** Why there is none. */
  summaryError: object | undefined
  /** Delays `idle` after the last message. */
  mayBecomeIdle = Promise.resolve()
  /** Changes the response to a prompt; an error becomes a server error, undefined breaks the connection. */
  answerOf: (message: Message) => unknown = (message) => message
  /** Whether to send no events. */
  isMute = false
  /** Whether unfinished messages can be read too. */
  showsUnfinished = false
  readonly #server: Server
  readonly #streams = new Set<ServerResponse>()
  readonly #pending = new Map<string, Pending>()
  #count = 0
  #sent = 0
  #newSessions = 0

  private constructor(
    private readonly environment: NodeJS.ProcessEnv,
    /** The directory of the sessions that existed before. */
    private readonly directory: string,
  ) {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error))
    })
  }

  static async start(directory: string, environment: NodeJS.ProcessEnv = {}): Promise<FakeOpenCode> {
    const fake = new FakeOpenCode(environment, directory)
    // Closing an idle connection just as it is reused is not tested here.
    fake.#server.keepAliveTimeout = 60_000
    fake.#server.listen(0, '127.0.0.1')
    await once(fake.#server, 'listening')
    return fake
  }

  get endpoint(): OpenCodeEndpoint & { password: string } {
    const { port } = this.#server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}`, username: 'opencode', password: PASSWORD }
  }

  /** How many clients listen to the events. */
  get listeners(): number {
    return this.#streams.size
  }

  /** As if it were killed. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    for (const { abort } of this.sessions.values()) await abort?.()
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  cut(): void {
    for (const stream of this.#streams) stream.destroy()
    this.#streams.clear()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
    const directory = url.searchParams.get('directory') ?? undefined
    this.received.push({ method: request.method ?? '', path: url.pathname, directory, body })
    if (this.isDeafTo(url.pathname)) return
    const credentials = Buffer.from(`opencode:${PASSWORD}`).toString('base64')
    if (request.headers.authorization !== `Basic ${credentials}`) {
      response.writeHead(401).end()
      return
    }
    if (url.pathname === '/global/event') {
      this.#subscribe(response)
      return
    }
    if (this.isBrokenFor(url.pathname, request.method ?? '')) {
      response.writeHead(500).end()
      return
    }
    const { status, value } = await this.#answer(request.method ?? '', url, body, directory)
    if (value === undefined) response.destroy()
    else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }

  #subscribe(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ payload: { type: 'server.connected', properties: {} } })}\n\n`)
    this.#streams.add(response)
    response.on('close', () => this.#streams.delete(response))
  }

  async #answer(
    method: string,
    url: URL,
    body: Record<string, unknown>,
    directory = this.directory,
  ): Promise<{ status: number; value: unknown }> {
    const ok = (value: unknown) => ({ status: 200, value })
    const [, first, id = '', action] = url.pathname.split('/')
    const route = `${method} /${first}/${action ?? ''}`
    if (url.pathname === '/global/health') return ok({ healthy: true, version: this.version })
    if (url.pathname === '/session/status') return ok(this.#statuses(directory))
    if (route === 'POST /session/' && id === '') return ok(view(this.#newSession(directory, body)))
    if (url.pathname === '/permission') return ok(this.#requests('permission', directory))
    if (url.pathname === '/question') return ok(this.#requests('question', directory))
    if (first === 'permission') return this.#reply(id, directory, body['reply'] as string)
    if (first === 'question') return this.#reply(id, directory, 'reject')

    const isUnknown = JSON.stringify(body).includes(UNKNOWN) || id === 'ses_unknown'
    if (isUnknown)
      return { status: 404, value: { name: 'NotFoundError', data: { message: `Session not found: ${id}` } } }
    const session = this.#session(id, directory)
    switch (route) {
      case 'GET /session/':
        return ok(view(session))
      case 'PATCH /session/':
        session.permission = [...((session.permission as unknown[]) ?? []), ...(body['permission'] as unknown[])]
        return ok(view(session))
      case 'GET /session/message':
        return ok(session.messages.slice(-Number(url.searchParams.get('limit'))).map((message) => this.#read(message)))
      case 'POST /session/abort':
        await session.abort?.()
        this.#becomesIdle(session)
        return ok(true)
      case 'POST /session/message':
        if (this.problem !== undefined) return { status: 500, value: { data: { message: this.problem } } }
        await this.mayTakePrompts
        await this.#prompt(session, body)
        if (this.refusal) return { status: 500, value: { data: { message: 'Unexpected server error.' } } }
        return this.#answered(this.answerOf(session.messages.at(-1) as Message))
      case 'POST /session/summarize':
        await this.#summarize(session, body)
        return ok(true)
      case 'POST /session/prompt_async':
        void this.#prompt(session, body)
        return { status: 204, value: null }
      default:
        return { status: 404, value: {} }
    }
  }

  #answered(value: unknown): { status: number; value: unknown } {
    return value instanceof Error
      ? { status: 500, value: { data: { message: value.message } } }
      : { status: 200, value }
  }

  #newSession(directory: string, { permission }: Record<string, unknown>): FakeSession {
    this.#newSessions += 1
    const session = this.#session(`ses_${String(this.#newSessions).repeat(16)}`, directory)
    session.permission = permission
    this.#send(session, 'session.created', { sessionID: session.id, info: view(session) })
    return session
  }

  /** Any requested session is treated as existing. */
  #session(id: string, directory: string): FakeSession {
    const known = this.sessions.get(id)
    if (known) return known
    const session: FakeSession = { id, directory, messages: [], turns: Promise.resolve() }
    this.sessions.set(id, session)
    return session
  }

  #statuses(directory: string): Record<string, unknown> {
    const busy = [...this.sessions.values()].filter((session) => session.directory === directory && session.abort)
    return Object.fromEntries(busy.map(({ id }) => [id, { type: 'busy' }]))
  }

  #requests(kind: Pending['kind'], directory: string): unknown[] {
    const pending = [...this.#pending.values()].filter((one) => one.kind === kind && one.directory === directory)
    return pending.map(({ request }) => request)
  }

  #reply(id: string, directory: string, reply: string): { status: number; value: unknown } {
    const pending = this.#pending.get(id)
    if (pending?.directory !== directory) return { status: 404, value: { message: `Not found: ${id}` } }
    this.#pending.delete(id)
    this.answers.push(reply)
    pending.answer(reply)
    return { status: 200, value: true }
  }

  #read(message: Message): Message {
    const parts = message.parts.map((part) => {
      const isUnfinished = 'text' in part && part['time'] !== undefined && !(part['time'] as { end?: number }).end
      return isUnfinished && !this.showsUnfinished ? { ...part, text: '' } : part
    })
    return { info: message.info, parts }
  }

  /** Settles when the answer is complete. */
  #prompt(session: FakeSession, body: Record<string, unknown>): Promise<void> {
    return new Promise((resolve) => {
      session.turns = session.turns.then(() => this.#turn(session, body, resolve)).finally(resolve)
    })
  }

  async #turn(session: FakeSession, body: Record<string, unknown>, onAnswer: () => void): Promise<void> {
    const [part] = body['parts'] as [{ id?: string; text: string }]
    if (this.refusal) return this.#send(session, 'session.error', { error: this.refusal })
    if (body['tools']) {
      session.permission = Object.entries(body['tools']).map(([permission, isAllowed]) => ({
        permission,
        pattern: '*',
        action: isAllowed ? 'allow' : 'deny',
      }))
    }
    const turn = new FakeTurn(this, session, (type, properties) => this.#send(session, type, properties))
    session.abort = () => {
      this.#send(session, 'session.error', { error: ABORTED })
      this.#becomesIdle(session)
      return turn.abort()
    }
    turn.begin(part, body)
    try {
      await turn.play(part.text, this.environment)
    } finally {
      delete session.abort
      turn.complete()
      onAnswer()
      await this.mayBecomeIdle
      this.#becomesIdle(session)
      this.#becomesIdle(session)
    }
  }

  /** Adds a request for a summary and the summary. */
  async #summarize(session: FakeSession, model: Record<string, unknown>): Promise<void> {
    const turn = new FakeTurn(this, session, (type, properties) => this.#send(session, type, properties))
    const aborted = new Promise<void>((resolve) => {
      session.abort = async () => resolve()
    })
    this.#send(session, 'session.status', { status: { type: 'busy' } })
    await Promise.race([this.maySummarize, aborted])
    delete session.abort
    turn.summarize(model, this.summaryError)
    this.#becomesIdle(session)
  }

  #becomesIdle(session: FakeSession): void {
    this.#send(session, 'session.status', { status: { type: 'idle' } })
    this.#send(session, 'session.idle', {})
  }

  /** Settles with the reply. */
  ask(session: FakeSession, kind: Pending['kind'], details: object): Promise<string> {
    const id = `${kind.slice(0, 3)}_${this.nextId()}`
    const request = { id, sessionID: session.id, ...details }
    return new Promise((answer) => {
      this.#pending.set(id, { kind, request, directory: session.directory, answer })
      this.#send(session, `${kind}.asked`, request)
    })
  }

  /** A session from before, which is not announced. */
  addSession(id: string, parentID?: string): void {
    const session = this.#session(id, this.directory)
    if (parentID !== undefined) session.parentID = parentID
  }

  /** A subagent's session. */
  child(parent: FakeSession): FakeSession {
    const session = this.#session(`ses_child${this.nextId()}`, parent.directory)
    session.parentID = parent.id
    this.#send(session, 'session.created', { info: view(session) })
    return session
  }

  /** Increasing. */
  nextId(): number {
    this.#count += 1
    return this.#count
  }

  #send(session: FakeSession, type: string, properties: object): void {
    const payload = { id: `evt_${this.nextId()}`, type, properties: { sessionID: session.id, ...properties } }
    const text = `data: ${JSON.stringify({ directory: session.directory, project: 'global', payload })}\n\n`
    if (!this.isMute) for (const stream of this.#streams) stream.write(text)
    this.#sent += 1
    if (this.cutAfter.includes(this.#sent)) this.cut()
  }
}

class FakeTurn {
  #promptMessageId = ''
  #message: Message | undefined
  #process: ChildProcess | undefined
  readonly #marker: string
  #acted = Promise.resolve()
  #isAborted = false
  #stop = () => {}
  readonly #stopped = new Promise<void>((resolve) => {
    this.#stop = resolve
  })

  constructor(
    private readonly server: FakeOpenCode,
    private readonly session: FakeSession,
    private readonly send: (type: string, properties: object) => void,
  ) {
    this.#marker = `FAKE_TURN=${server.endpoint.url}#${server.nextId()}`
  }

  begin({ id = 'prt_user', text }: { id?: string; text: string }, { model }: Record<string, unknown>): void {
    const message = this.#newMessage('user', { model: model ?? { providerID: 'fake', modelID: 'model' } })
    const part = { id, type: 'text', text, messageID: message.info.id, sessionID: this.session.id }
    this.#promptMessageId = message.info.id
    message.parts.push(part)
    this.send('message.part.updated', { part })
    this.send('session.status', { status: { type: 'busy' } })
  }

  summarize(model: Record<string, unknown>, error: object | undefined): void {
    this.#newMessage('user', { model })
    this.#message = this.#newMessage('assistant', { summary: true, ...(error && { error }) })
    if (!error) this.#part({ type: 'step-finish', reason: 'stop', tokens: TOKENS, cost: 0 })
    this.complete()
  }

  async play(prompt: string, environment: NodeJS.ProcessEnv): Promise<void> {
    if (prompt.startsWith('set -e\n')) return await this.#script(prompt, environment)
    const isKnown = prompt.startsWith(PROMPT_PREFIX)
    const actions = isKnown ? (JSON.parse(prompt.slice(PROMPT_PREFIX.length)) as Action[]) : NODS
    for (const action of actions) {
      await nextTick()
      if (!this.#isAborted) await Promise.race([this.#act(action), this.#stopped])
    }
  }

  complete(): void {
    if (!this.#message) return
    this.#message.info.time.completed = this.server.nextId()
    if (this.#isAborted) this.#message.info['error'] = ABORTED
    this.send('message.updated', { info: this.#message.info })
  }

  async abort(): Promise<void> {
    this.#isAborted = true
    const { pid } = this.#process ?? {}
    if (pid !== undefined) await endProcesses(pid, this.#marker)
    for (const part of this.#message?.parts ?? []) {
      if (part['type'] === 'tool' && (part['state'] as { status: string }).status === 'running') {
        this.#toolEnd(part, 'Tool execution aborted', true)
      }
    }
    this.#stop()
    await this.session.turns
  }

  async #script(prompt: string, environment: NodeJS.ProcessEnv): Promise<void> {
    const [name = '', value] = this.#marker.split('=')
    const child = spawn('/bin/sh', ['-c', prompt], {
      cwd: this.session.directory,
      env: { ...environment, [name]: value },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    this.#process = child
    // Not node:readline, which treats U+2028 as a line break since Node 24.
    const decoder = new StringDecoder('utf8')
    let rest = ''
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = `${rest}${decoder.write(chunk)}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('{') && line.endsWith('}'))
          this.#acted = this.#acted.then(() => this.#act(JSON.parse(line)))
      }
    })
    const isRead = once(child.stdout, 'end')
    const onData = (chunk: Buffer): void => {
      if (!chunk.includes(0)) return
      child.stdout.removeAllListeners('data').resume()
      this.#part({ type: 'text', text: 'x'.repeat(100 * 1024 * 1024) })
    }
    child.stdout.on('data', onData)
    await Promise.race([once(child, 'exit'), this.#stopped])
    // Its remaining output must still be read, but a leftover process may keep the pipe open.
    if (!this.#isAborted) await Promise.race([isRead, sleep(200)])
    await Promise.race([this.#acted, this.#stopped])
    child.stdout.destroy()
  }

  async #act(action: Action): Promise<void> {
    switch (action.do) {
      case 'start':
        this.complete()
        this.#message = this.#newMessage('assistant', { parentID: this.#promptMessageId })
        this.#part({ type: 'step-start' })
        return
      case 'say':
        return this.#write('text', action.texts, action.isUnfinished)
      case 'think':
        return this.#write('reasoning', [action.text])
      case 'tool': {
        const part = { type: 'tool', tool: 'bash', callID: action.id, state: { status: 'pending', input: {} } }
        const input = { command: action.command }
        return this.#update(this.#part(part), { state: { status: 'running', input } })
      }
      case 'tool-end': {
        const part = this.#message?.parts.find(({ callID }) => callID === action.id)
        if (part) this.#toolEnd(part, action.output, action.isError)
        return
      }
      case 'step':
        this.#part({ type: 'step-finish', reason: action.reason, tokens: TOKENS, cost: 0 })
        if (this.#message) this.#message.info['finish'] = action.reason
        if (action.reason === 'tool-calls') await this.#act({ do: 'start' })
        return
      case 'error':
        if (this.#message) this.#message.info['error'] = action.error
        return this.send('session.error', { error: action.error })
      case 'ask': {
        const { inSession = '' } = action
        const known = this.server.sessions.get(inSession) ?? this.session
        const session = action.inChild ? this.server.child(this.session) : known
        const { permission, patterns, metadata = {} } = action
        await this.server.ask(session, 'permission', { permission, patterns, metadata, always: [] })
        return
      }
      case 'question':
        await this.server.ask(this.session, 'question', { questions: [{ question: action.question, options: [] }] })
        return
      case 'retry':
        return this.send('session.status', {
          status: { type: 'retry', attempt: action.attempt, message: action.message },
        })
      case 'raw':
        return this.send(action.type, action.properties)
      case 'cut':
        this.server.cut()
        while (action.untilBack && this.server.listeners === 0) await sleep(1)
        return
      case 'mute':
        this.server.isMute = true
        return
      case 'await-look':
        while (!this.server.received.some(({ path }) => path === '/session/status')) await sleep(1)
        return
      case 'idle':
        this.send('session.status', { status: { type: 'idle' } })
        return this.send('session.idle', {})
      case 'forget':
        delete this.session.abort
        return this.server.cut()
      case 'hang':
        return await this.#stopped
      case 'quit':
        void this.server.close()
        return await this.#stopped
    }
  }

  /** First empty, then in pieces, then in full. */
  async #write(type: 'text' | 'reasoning', texts: string[], isUnfinished = false): Promise<void> {
    const part = this.#part({ type, text: '', time: { start: this.server.nextId() } })
    for (const delta of texts) {
      while (this.server.waitsForListeners && this.server.listeners === 0) await sleep(1)
      if (this.#isAborted) return
      part['text'] = String(part['text']) + delta
      this.send('message.part.delta', { messageID: part['messageID'], partID: part.id, field: 'text', delta })
    }
    if (!isUnfinished) this.#update(part, { time: { start: 0, end: this.server.nextId() } })
  }

  #toolEnd(part: Message['parts'][number], output: string, isError: boolean): void {
    const { input } = part['state'] as { input: object }
    this.#update(part, { state: { status: 'completed', input, output, metadata: { exit: isError ? 1 : 0 } } })
  }

  #newMessage(role: string, fields: object): Message {
    const created = this.server.nextId()
    const info = { id: `msg_${created}`, role, sessionID: this.session.id, time: { created }, ...fields }
    const message: Message = { info, parts: [] }
    this.session.messages.push(message)
    this.send('message.updated', { info })
    return message
  }

  #part(fields: Record<string, unknown>): Message['parts'][number] {
    this.#message ??= this.#newMessage('assistant', { parentID: this.#promptMessageId })
    const id = `prt_${this.server.nextId()}`
    const part = { ...fields, id, messageID: this.#message.info.id, sessionID: this.session.id }
    this.#message.parts.push(part)
    this.send('message.part.updated', { part })
    return part
  }

  #update(part: Message['parts'][number], fields: object): void {
    Object.assign(part, fields)
    this.send('message.part.updated', { part })
  }
}

/** The answer to a prompt without a script. */
const NODS: Action[] = [
  { do: 'say', texts: ['Well.'] },
  { do: 'step', reason: 'stop' },
]

const ABORTED = { name: 'MessageAbortedError', data: { message: 'Aborted' } }

const TOKENS = { input: 70, output: 12, reasoning: 0, cache: { read: 30, write: 0 } }

function view({ id, directory, parentID, permission }: FakeSession): object {
  return { id, directory, ...(parentID !== undefined && { parentID }), ...(permission !== undefined && { permission }) }
}

/** Signals the group, then kills descendants and marked processes. */
async function endProcesses(pid: number, marker: string): Promise<void> {
  const below = descendantsOf(pid)
  signal(-pid, 'SIGTERM')
  await sleep(100)
  const isMarked = (one: number): boolean => {
    try {
      return readFileSync(`/proc/${one}/environ`, 'utf8').includes(marker)
    } catch {
      return false // It has ended.
    }
  }
  for (const one of below) signal(one, 'SIGKILL')
  signal(-pid, 'SIGKILL')
  // A killed process takes a moment to disappear.
  for (let left = processes().filter(isMarked); left.length > 0; left = processes().filter(isMarked)) {
    for (const one of left) signal(one, 'SIGKILL')
    await sleep(10)
  }
}

function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function descendantsOf(pid: number): number[] {
  const parentOf = (one: number): number => {
    try {
      return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${one}/status`, 'utf8'))?.[1])
    } catch {
      return 0 // It has ended.
    }
  }
  const children = processes().filter((one) => parentOf(one) === pid)
  return [...children, ...children.flatMap(descendantsOf)]
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}
