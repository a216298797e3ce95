// Finds the captures in test/fixtures, and defines the notation for their outcome.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type {
  AgentEvent,
  AgentRequest,
  AgentResult,
  BackendName,
  FailureReason,
  TokenUsage,
} from '../../../src/backends/types.js'
import type { Printed } from '../fake-cli.js'

/** The expected outcome of one capture. */
export interface Expected {
  /** The request, where it matters. */
  request?: Partial<AgentRequest>
  /** Every event except `complete`; see `inWords`. */
  events: string[]
  session?: string
  answer?: string
  failure?: ExpectedFailure
  /** `11 in + 7 out + 5 read + 3 written = 26` */
  usage?: string
  sessionUsage?: string
  costUsd?: number
  /** The result of `parseOutput`, where it differs because it sees neither stderr nor the exit code. */
  parsed?: string
  /** As `parsed`, for the session. */
  parsedSession?: string
}

interface ExpectedFailure {
  reason: FailureReason
  message: string
  /** The text after `<Label> CLI error (exit <code>): `; if left out, the report is the message itself. */
  report?: 'stderr' | 'message' | { text: string } | { whole: string }
  retryAt?: number
}

export type ExpectedCaptures = Record<string, Expected>

const FIXTURES = join(import.meta.dirname, '../../fixtures')

/** The names of single-turn captures: one per file of the CLI's stdout, or of its stderr alone. */
export function findCaptures(backend: BackendName): string[] {
  return readdirSync(join(FIXTURES, backend)).filter(
    (name) => name !== 'INDEX.md' && !/^(?:live|login)-|^models\.|\.meta\.json$|\.stderr(?:\.txt)?$/.test(name),
  )
}

export function readCapture(backend: BackendName, name: string): Required<Printed> {
  const text = (file: string) => readFileSync(join(FIXTURES, backend, file), 'utf8')
  if (name.startsWith('stderr-')) return { stdout: '', stderr: text(name), exit: exitOf(backend, name) }
  const stderr = [`${name}.stderr`, `${stem(name)}.stderr.txt`].find((file) =>
    existsSync(join(FIXTURES, backend, file)),
  )
  return { stdout: text(name), stderr: stderr === undefined ? '' : text(stderr), exit: exitOf(backend, name) }
}

/** From the capture's own record, or from the folder's index. */
function exitOf(backend: BackendName, name: string): number {
  const record = join(FIXTURES, backend, `${stem(name)}.meta.json`)
  if (existsSync(record)) {
    const { exitCode, signal } = JSON.parse(readFileSync(record, 'utf8')) as { exitCode: number | null; signal: string }
    if (exitCode === null && signal !== 'SIGKILL') throw new Error(`${name} ended by ${signal}`)
    return exitCode ?? -9
  }
  for (const line of readFileSync(join(FIXTURES, backend, 'INDEX.md'), 'utf8').split('\n')) {
    const [, file, , exit] = line.split('|').map((cell) => cell.trim())
    if (file === name) return Number(exit)
  }
  throw new Error(`It is written nowhere how ${backend}/${name} exited`)
}

function stem(name: string): string {
  return name.replace(/(?:\.stdout)?\.(?:jsonl|json)$/, '')
}

/** One line per event; consecutive texts are joined. */
export function inWords(events: AgentEvent[], result: AgentResult): string[] {
  const lines: string[] = []
  const toolIds: string[] = []
  const tool = ({ toolId, toolName }: { toolId: string; toolName: string }) => {
    if (!toolIds.includes(toolId)) toolIds.push(toolId)
    return `#${toolIds.indexOf(toolId) + 1} ${toolName}`
  }
  const append = (kind: string, text: string) => {
    const last = lines.at(-1)
    const earlier = last?.startsWith(`${kind} `) ? (JSON.parse(last.slice(kind.length)) as string) : undefined
    if (earlier !== undefined) lines.pop()
    lines.push(`${kind} ${JSON.stringify(`${earlier ?? ''}${text}`)}`)
  }
  for (const event of events) {
    switch (event.type) {
      case 'started':
        lines.push(['started', sessionIn(event.sessionId, result), event.model].filter(Boolean).join(' '))
        break
      case 'output':
      case 'thinking':
        append(event.type, event.content)
        break
      case 'tool_use':
        lines.push(`tool_use ${tool(event)} ${JSON.stringify(event.toolInput)}`)
        break
      case 'tool_result':
        lines.push(`tool_result ${tool(event)} ${outcomeOf(event)} ${JSON.stringify(event.content)}`)
        break
      case 'notice':
        lines.push(`notice ${event.content}`)
        break
      case 'error':
        lines.push(event.content === result.failure?.message ? `error ${event.reason}` : `error ${event.content}`)
        break
      case 'complete':
        lines.push('complete')
        break
    }
  }
  return lines
}

function outcomeOf({ isError, metadata }: { isError: boolean; metadata?: Record<string, unknown> }): string {
  return `${isError ? 'failed' : 'ok'}${metadata ? ` ${JSON.stringify(metadata)}` : ''}`
}

function sessionIn(id: string | undefined, result: AgentResult): string | undefined {
  return id !== undefined && id === result.sessionId ? '<session>' : id
}

export function usageInWords(usage: TokenUsage | undefined): string | undefined {
  if (!usage) return undefined
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, totalTokens } = usage
  const reasoning = reasoningTokens === 0 ? '' : ` (${reasoningTokens} reasoning)`
  return `${inputTokens} in + ${outputTokens} out${reasoning} + ${cacheReadTokens} read + ${cacheWriteTokens} written = ${totalTokens}`
}
