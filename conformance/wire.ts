/**
 * What each column shows on the wire: the kinds of messages its agent sends, and those we do not understand. For a
 * server, whose events come over HTTP, only the latter.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject, JsonReader } from '../src/backends/engine/jsonl.js'
import type { AgentEvent } from '../src/backends/types.js'

export class Seen {
  readonly kinds = new Set<string>()
  readonly notUnderstood = new Set<string>()
}

/** The kind of a message that no agent sends. */
export const madeUpKind = 'made-up'

const seenNow = new AsyncLocalStorage<Seen>()

/** Contract: kinds from processes started meanwhile are added to `seen` for as long as they live. */
export function watching<Result>(seen: Seen, run: () => Result): Result {
  return seenNow.run(seen, run)
}

/** Longer lines are text; their kinds are known from shorter ones. */
const longestLine = 65_536

// Every CLI's output passes through here, in all modes.
const { line: readLine } = JsonReader.prototype
JsonReader.prototype.line = function (this: JsonReader, line: string): void {
  const kind = line.length > longestLine ? undefined : kindOf(line)
  if (kind !== undefined && kind !== madeUpKind) seenNow.getStore()?.kinds.add(kind)
  readLine.call(this, line)
}

const complaint = /^The agent sent an (?:(?:unknown|invalid) event: |invalid message )(.*)$/s

export function noteEvent(event: AgentEvent): void {
  const [, what] = event.type === 'notice' ? (complaint.exec(event.content) ?? []) : []
  if (what !== undefined && what !== madeUpKind) seenNow.getStore()?.notUnderstood.add(what)
}

/** The fields that give a message's kind in the five wire formats, coarser first. */
const discriminators = [
  ['type'],
  ['method'],
  ['subtype'],
  ['command'],
  ['event', 'type'],
  ['event', 'delta', 'type'],
  ['assistantMessageEvent', 'type'],
  ['item', 'type'],
  ['part', 'type'],
  ['params', 'item', 'type'],
  ['params', 'update', 'sessionUpdate'],
]

/** Such as `item.completed agent_message`; undefined if it has no kind, as an answer to a request. */
export function kindOf(line: string): string | undefined {
  const message = parse(line)
  const words = discriminators.map((path) =>
    path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), message),
  )
  return words.filter((word) => typeof word === 'string').join(' ') || undefined
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined // Not every line is a message.
  }
}
