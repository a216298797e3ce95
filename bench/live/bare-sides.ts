/**
 * Minimal clients for each warm CLI's protocol: the cost that nothing built on it can avoid. They look only at the text
 * and the end of a turn.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { startOpenCodeServe } from '../../conformance/server/opencode-serve.js'
import type { BackendName } from '../../src/backends/types.js'
import { SYSTEM_PROMPT } from './script.js'
import { type Conversation, type OpenSide, type SidePlace, type SpokenTurn, TurnClock } from './side.js'

type Json = Record<string, unknown>

export const bareSides: Record<BackendName, OpenSide> = {
  claude: (place) => sideOfProcesses(place, claudeConversation),
  codex: openCodex,
  gemini: openGemini,
  opencode: openOpenCode,
  pi: (place) => sideOfProcesses(place, piConversation),
}

/** A process that talks in lines of JSON. */
class LineProcess {
  onMessage = (_message: Json): void => {}
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  #rest = ''

  constructor({ installation, sandbox }: SidePlace, args: string[], environment: Record<string, string> = {}) {
    const env = { ...sandbox.environment, ...environment }
    const stdio = ['pipe', 'pipe', 'ignore'] as ['pipe', 'pipe', 'ignore']
    // In its own session, like ours: Linux divides CPU time among sessions.
    this.#child = spawn(installation.cliPath, args, { cwd: sandbox.workspace, env, stdio, detached: true })
    this.#child.stdin.on('error', () => {}) // `until` reports its end.
    this.#child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
  }

  send(message: Json): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  /** Settles with the first result of `read` that is not undefined; rejects if the process ends first. */
  async until<T>(read: (message: Json) => T | undefined): Promise<T> {
    const ended = new AbortController()
    const gone = once(this.#child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error(`${this.#child.spawnfile} ended in the middle of a turn`)
    })
    gone.catch(() => {})
    const found = new Promise<T>((resolve) => {
      this.onMessage = (message) => {
        const value = read(message)
        if (value !== undefined) resolve(value)
      }
    })
    try {
      return await Promise.race([found, gone])
    } finally {
      ended.abort()
    }
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') this.onMessage(JSON.parse(line) as Json)
  }
}

/** For protocols with one conversation per process. */
async function sideOfProcesses(
  place: SidePlace,
  begin: (place: SidePlace) => { process: LineProcess; conversation: Conversation },
) {
  const processes: LineProcess[] = []
  return {
    async open() {
      const { process, conversation } = begin(place)
      processes.push(process)
      return conversation
    },
    async close() {
      await Promise.all(processes.map((process) => process.end()))
    },
  }
}

function claudeConversation(place: SidePlace) {
  const process = new LineProcess(place, [
    ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose', '-p'],
    ...['--include-partial-messages', '--dangerously-skip-permissions', '--model', place.agent.model],
    ...['--append-system-prompt', SYSTEM_PROMPT],
  ])
  const say = (prompt: string): Promise<SpokenTurn> => {
    const clock = new TurnClock()
    const turn = process.until(({ type, event }) => {
      const { delta } = (event ?? {}) as { delta?: { text?: string } }
      if (delta?.text !== undefined) clock.heard(delta.text)
      return type === 'result' ? clock.end() : undefined
    })
    process.send({ type: 'user', message: { role: 'user', content: prompt } })
    return turn
  }
  return { process, conversation: { say } }
}

function piConversation(place: SidePlace) {
  const process = new LineProcess(place, [
    ...['--mode', 'rpc', '--model', place.agent.model, '--append-system-prompt', SYSTEM_PROMPT],
  ])
  const say = (prompt: string): Promise<SpokenTurn> => {
    const clock = new TurnClock()
    const turn = process.until(({ type, assistantMessageEvent }) => {
      const event = (assistantMessageEvent ?? {}) as { type?: string; delta?: string }
      if (event.type === 'text_delta') clock.heard(event.delta ?? '')
      return type === 'agent_end' ? clock.end() : undefined
    })
    process.send({ type: 'prompt', message: prompt })
    return turn
  }
  return { process, conversation: { say } }
}

/** Requests, answers, and notifications per conversation over one process. */
class RpcProcess {
  readonly #process: LineProcess
  readonly #answers = new Map<unknown, (message: Json) => void>()
  readonly #listeners = new Map<unknown, (params: Json, method: unknown) => void>()
  #requestCount = 0

  constructor(process: LineProcess, idName: 'threadId' | 'sessionId') {
    this.#process = process
    process.onMessage = ({ id, method, params, ...answer }) => {
      if (method === undefined) this.#answers.get(id)?.(answer)
      else this.#listeners.get((params as Json)[idName])?.(params as Json, method)
    }
  }

  async request(method: string, params: Json): Promise<Json> {
    this.#requestCount += 1
    const id = this.#requestCount
    const answered = new Promise<Json>((resolve) => this.#answers.set(id, resolve))
    this.#process.send({ jsonrpc: '2.0', id, method, params })
    const { result, error } = await answered
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
    return result as Json
  }

  listen(id: unknown, listener: (params: Json, method: unknown) => void): void {
    this.#listeners.set(id, listener)
  }

  end(): Promise<void> {
    return this.#process.end()
  }
}

async function openCodex(place: SidePlace) {
  const rpc = new RpcProcess(new LineProcess(place, ['app-server']), 'threadId')
  const clientInfo = { name: 'bench', title: null, version: '0' }
  await rpc.request('initialize', { clientInfo, capabilities: null })
  return {
    async open(): Promise<Conversation> {
      const { thread } = await rpc.request('thread/start', {
        cwd: place.sandbox.workspace,
        approvalPolicy: 'never',
        sandbox: 'danger-full-access',
        model: place.agent.model,
        developerInstructions: SYSTEM_PROMPT,
      })
      const { id: threadId } = thread as { id: string }
      return {
        async say(prompt) {
          const clock = new TurnClock()
          const turn = new Promise<SpokenTurn>((resolve) =>
            rpc.listen(threadId, ({ delta }, method) => {
              if (method === 'item/agentMessage/delta') clock.heard(delta as string)
              if (method === 'turn/completed') resolve(clock.end())
            }),
          )
          await rpc.request('turn/start', { threadId, input: [{ type: 'text', text: prompt }] })
          return turn
        },
      }
    },
    close: () => rpc.end(),
  }
}

async function openGemini(place: SidePlace) {
  const environment = { GEMINI_CLI_NO_RELAUNCH: 'true', GEMINI_CLI_TRUST_WORKSPACE: 'true' }
  const rpc = new RpcProcess(new LineProcess(place, ['--acp', '--approval-mode', 'yolo'], environment), 'sessionId')
  const fs = { readTextFile: false, writeTextFile: false }
  await rpc.request('initialize', { protocolVersion: 1, clientCapabilities: { fs, terminal: false } })
  return {
    async open(): Promise<Conversation> {
      const { sessionId } = await rpc.request('session/new', { cwd: place.sandbox.workspace, mcpServers: [] })
      await rpc.request('session/set_model', { sessionId, modelId: place.agent.model })
      return {
        async say(prompt) {
          const clock = new TurnClock()
          rpc.listen(sessionId, ({ update }) => {
            const { sessionUpdate, content } = update as { sessionUpdate: string; content: { text: string } }
            if (sessionUpdate === 'agent_message_chunk') clock.heard(content.text)
          })
          await rpc.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: prompt }] })
          return clock.end()
        },
      }
    },
    close: () => rpc.end(),
  }
}

async function openOpenCode({ agent, installation, sandbox, signal }: SidePlace) {
  const { endpoint, kill } = await startOpenCodeServe(installation.cliPath, sandbox)
  const [providerID, modelID] = agent.model.split('/')
  const { url, username, password } = endpoint
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const headers = { 'content-type': 'application/json', authorization }
  const query = new URLSearchParams({ directory: sandbox.workspace }).toString()
  const listeners = new Map<string, (delta: string) => void>()
  const closing = new AbortController()
  const events = await fetch(`${url}/global/event`, { headers, signal: closing.signal })
  const following = follow(events, listeners).catch((error: unknown) => {
    if (!closing.signal.aborted) throw error
  })

  async function post(path: string, body: object): Promise<Json> {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal })
    if (response.status !== 200) throw new Error(`${path}: status ${response.status}`)
    return (await response.json()) as Json
  }

  return {
    async open(): Promise<Conversation> {
      const { id } = (await post(`/session?${query}`, { title: 'Bench' })) as { id: string }
      return {
        async say(prompt) {
          const clock = new TurnClock()
          listeners.set(id, (delta) => clock.heard(delta))
          const message = { parts: [{ type: 'text', text: prompt }], system: SYSTEM_PROMPT }
          const { parts } = await post(`/session/${id}/message`, { ...message, model: { providerID, modelID } })
          return clock.end((parts as Array<{ text?: string }>).map(({ text = '' }) => text).join(''))
        },
      }
    },
    endpoint,
    async close() {
      closing.abort()
      await following
      await kill()
    },
  }
}

async function follow(events: Response, listeners: Map<string, (delta: string) => void>): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of events.body ?? []) {
    const messages = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = messages.pop() ?? ''
    for (const message of messages) {
      const { payload } = JSON.parse(message.replace(/^data: /, '')) as { payload: { type: string; properties?: Json } }
      const { sessionID, delta } = payload.properties ?? {}
      if (payload.type === 'message.part.delta') listeners.get(sessionID as string)?.(delta as string)
    }
  }
}
