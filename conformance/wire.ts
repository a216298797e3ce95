/**
 * What is seen on the wire of each column: the kinds of messages its agent sends, and those we do not understand. Of a
 * server, whose events come over HTTP, only the latter.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject, JsonReader } from '../src/backends/engine/jsonl.js'
import type { AgentEvent } from '../src/backends/types.js'

export class Seen {
  readonly kinds = new Set<string>()
  readonly notUnderstood = new Set<string>()
}

/** Of a message that no agent sends. */
export const madeUpKind = 'made-up'

const seenNow = new AsyncLocalStorage<Seen>()

/** Contract: what is started meanwhile is noted in `seen` as long as it lives. */
export function watching<Result>(seen: Seen, run: () => Result): Result {
  return seenNow.run(seen, run)
}

/** Longer lines are texts; their kinds are known from shorter ones. */
const longestLine = 65_536

// The one place through which the output of every command line goes, in all modes.
const { line: readLine } = JsonReader.prototype
JsonReader.prototype.line = function (this: JsonReader, line: string): void {
  const kind = line.length > longestLine ? undefined : kindOf(line)
  if (kind !== undefined && kind !== madeUpKind) seenNow.getStore()?.kinds.add(kind)
  readLine.call(this, line)
}

const complaint = /^(?:The agent sent an event of an unknown kind|Not understood): (.*)$/s

export function noteEvent(event: AgentEvent): void {
  const [, what] = event.type === 'notice' ? (complaint.exec(event.content) ?? []) : []
  if (what !== undefined && what !== madeUpKind) seenNow.getStore()?.notUnderstood.add(what)
}

/** Where in the messages of the five it says of which kind they are, the coarser first. */
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

/** Such as `item.completed agent_message`; undefined for what has no kind, such as an answer to a request. */
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
