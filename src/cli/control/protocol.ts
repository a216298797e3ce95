// The protocol between commands and a running gateway: one JSON object per line, over a Unix socket that only its owner
// may open.
//
//   → {"id":1,"method":"chat.send","params":{…}}
//   ← {"id":1,"result":{…}}   or   {"id":1,"error":{"code":"not_found","message":"…"}}
//   ← {"push":{"kind":"event",…}}   to attached clients
//
// The two ends may have different versions: each ignores or rejects what it does not know.

import { REMEMBERED } from '../../approvals/answer-approval.js'
import { join } from 'node:path'
import { z } from 'zod'
import {
  type Acceptance,
  EVENT_KINDS,
  type LiveEvent,
  type NextAttempt,
  type OutgoingReply,
  type Question,
  type Suggestion,
} from '../../channels/types.js'
import type { BeatResult } from '../../schedule/heartbeat.js'
import type { LoginLink } from '../../service/server.js'
import type { MessageState } from '../../store/schema.js'

const name = () =>
  z
    .string()
    .max(500)
    .regex(/^\P{Cc}+$/u, { error: 'must be a name, without control characters' })

/** The methods and their parameters. */
export const PARAMETERS = {
  status: z.object({}),
  'dashboard.link': z.object({}),
  'chat.attach': z.object({ address: name(), projectId: name().exactOptional() }),
  'chat.history': z.object({ address: name(), afterSeq: z.int().min(0), limit: z.int().min(1).max(500) }),
  'chat.send': z.object({
    address: name(),
    platformId: name(),
    author: name(),
    text: z.string(),
    /** Absolute paths on this machine. */
    files: z.array(z.string().max(4_096).startsWith('/')).max(50).exactOptional(),
  }),
  'chat.place': z.object({ address: name() }),
  'chat.questions': z.object({ address: name() }),
  'chat.suggest': z.object({ address: name(), command: name(), typed: z.string().max(1_000) }),
  'chat.command': z.object({ address: name(), author: name(), line: z.string() }),
  'event.send': z.object({ kind: z.enum(EVENT_KINDS), text: z.string() }),
  'queue.retry': z.object({ id: name() }),
  'queue.drop': z.object({ id: name() }),
  'approvals.answer': z.object({
    id: name(),
    decision: z.enum(['allow', 'deny']),
    remember: z.enum(REMEMBERED).exactOptional(),
    message: z.string().max(2_000).exactOptional(),
  }),
  'approvals.forget': z.object({ id: name() }),
  'sessions.reset': z.object({ conversation: name() }),
  'heartbeat.run': z.object({ isForced: z.boolean() }),
  'cron.add': z.object({
    name: name(),
    schedule: name(),
    timeZone: name().exactOptional(),
    prompt: z.string().exactOptional(),
    command: z.array(z.string()).exactOptional(),
    to: name(),
    projectId: name().exactOptional(),
    session: z.enum(['own', 'shared']).exactOptional(),
    catchUp: z.enum(['once', 'skip']).exactOptional(),
  }),
  'cron.run': z.object({ job: name() }),
  'cron.rm': z.object({ job: name() }),
  send: z.object({ to: name(), text: z.string() }),
}

export type MethodName = keyof typeof PARAMETERS
export type ParametersOf<M extends MethodName> = z.output<(typeof PARAMETERS)[M]>
export type ResultOf<M extends MethodName> = Results[M]

interface Results {
  status: GatewayStatus
  'dashboard.link': LoginLink
  /** Pushes events and replies of this conversation from now on. */
  'chat.attach': Record<string, never>
  /** The latest `limit` entries after `afterSeq`, oldest first. */
  'chat.history': { entries: HistoryEntry[] }
  'chat.send': Acceptance
  'chat.place': ChatPlace
  /** All open questions, oldest first. */
  'chat.questions': { questions: OpenQuestion[] }
  'chat.suggest': { suggestions: Suggestion[] }
  /** `messageId`: of a message that the command has sent for the person. */
  'chat.command': { answer: string; messageId?: string }
  'event.send': Acceptance
  /** With the full id. */
  'queue.retry': { id: string; kind: 'message' | 'reply' }
  'queue.drop': { id: string }
  'approvals.answer': { summary: string }
  'approvals.forget': { toolName: string }
  'sessions.reset': { channel: string; address: string }
  'heartbeat.run': BeatResult
  'cron.add': { name: string; timeZone: string; nextAt: number }
  /** With the job's name. */
  'cron.run': { job: string; messageId: string }
  'cron.rm': { job: string }
  send: { channel: string; address: string }
}

export interface GatewayStatus {
  id: string
  pid: number
  startedAt: number
  backend: string
  /** Absent without the HTTP API, and from an older gateway. */
  dashboardUrl?: string
}

/** Which agent answers in a conversation, and where. */
export interface ChatPlace {
  backend: string
  /** Whether the demo agent replaces it. */
  isDemo: boolean
  /** Absent if it is the agent's own choice. */
  model?: string
  projectId?: string
  /** Where the agent works, in words. */
  workplace: string
  /** The same, if it is on this machine. */
  directory?: string
}

/** What an agent asks permission for. */
export interface OpenQuestion {
  id: string
  messageId: string
  backend: string
  toolName: string
  /** Tool and input on one line. */
  summary: string
  /** The input. Truncated text says so. */
  request: string
  /** What "always" would allow, if it can be offered: anything done to the file, or exactly this call. */
  remembers?: 'file' | 'call'
  deadline: number
}

/** `seq` orders messages and replies of one conversation. */
export type HistoryEntry =
  /** Long texts are truncated. */
  | { kind: 'message'; seq: number; id: string; at: number; author: string; text: string; state: MessageState }
  | ({ kind: 'reply'; seq: number; at: number } & ShownReply)

export interface ShownReply {
  id: string
  messageId?: string
  text: string
  notes: string[]
  isError: boolean
  /** Set if this is not an answer, but says how long the message waits. */
  waitsUntil?: number
  shownFiles?: ShownFile[]
  question?: Question
}

/** A file named in an answer: its path or URL, or why it is withheld. */
export type ShownFile = { place: string } | { problem: string }

export type Push =
  | ({ kind: 'event' } & LiveEvent)
  | ({ kind: 'retry' } & NextAttempt)
  /** `isLast`: the message gets no further reply. */
  | ({ kind: 'reply'; isLast: boolean; shownFiles?: ShownFile[] } & Omit<OutgoingReply, 'files'>)

/** The calling client, while it is connected. */
export interface Peer {
  push(push: Push): void
  onClose(listener: () => void): void
}

/** Contract: a `GatewayError` is reported to the caller; anything else is our bug. */
export type Handlers = {
  [M in MethodName]: (parameters: ParametersOf<M>, peer: Peer) => Promise<ResultOf<M>>
}

/** A running gateway, over its socket, or one in this process. */
export interface Control {
  /** Contract: rejects with `gateway_unavailable` if the gateway ends before it answers. */
  call<M extends MethodName>(method: M, parameters: ParametersOf<M>): Promise<ResultOf<M>>
  /** Settles when the gateway is gone, or after `close`. */
  closed: Promise<void>
  close(): Promise<void>
}

/** A message may have a million characters of three bytes each. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024

export const requestSchema = z.object({
  id: z.union([z.int(), z.string().max(100)]),
  method: z.string().max(100),
  params: z.unknown().optional(),
})

export const answerSchema = z.union([
  z.object({ push: z.custom<Push>((value) => typeof value === 'object' && value !== null) }),
  z.object({
    id: z.union([z.int(), z.string(), z.null()]),
    error: z.object({ code: z.string(), message: z.string() }),
  }),
  z.object({ id: z.int(), result: z.unknown() }),
])

/** Undefined if it is not JSON, which every schema rejects. */
export function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

export function socketPath(home: string): string {
  return join(home, 'gateway.sock')
}
