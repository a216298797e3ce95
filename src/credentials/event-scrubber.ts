import type { AgentEvent, AgentResult } from '../backends/types.js'
import { MARK, type Scrubber } from './scrubber.js'
import { type Piece, StreamedText } from './streamed-text.js'

type TextEvent = Extract<AgentEvent, { type: 'output' | 'thinking' }>

/** Fields that hold words and objects of the contract. What stands in all others came from an agent. */
const OUR_WORDS = new Set(['type', 'stream', 'reason'])
const OUR_OBJECTS = new Set(['result', 'failure', 'usage', 'sessionUsage'])

/**
 * Takes known secrets out of the events of one run.
 *
 * Contract: the events that come out keep the contract of `run`. Text that may be the beginning of a secret waits for the
 * next event of its kind, and at the longest until any other event; then a long beginning is hidden, too. An event that
 * is no text comes out as the last one of its answer.
 */
export class EventScrubber {
  readonly #output: StreamedText<TextEvent>
  readonly #thinking: StreamedText<TextEvent>

  constructor(private readonly scrubber: Scrubber) {
    this.#output = new StreamedText(scrubber)
    this.#thinking = new StreamedText(scrubber)
  }

  scrub(event: AgentEvent): AgentEvent[] {
    if (event.type === 'complete') {
      return [...toEvents([...this.#output.end(), ...this.#thinking.end()]), this.#scrubFields(event)]
    }
    if (event.type !== 'output' && event.type !== 'thinking') {
      return [...toEvents([...this.#output.flush(), ...this.#thinking.flush()]), this.#scrubFields(event)]
    }
    const [own, other] = event.type === 'output' ? [this.#output, this.#thinking] : [this.#thinking, this.#output]
    const { content, ...rest } = event
    const owner = { ...this.#scrubFields(rest), content: '' }
    const events = toEvents([...other.flush(), ...own.push(content, owner)])
    // It has no text that could come out with it.
    return content === '' ? [...events, owner] : events
  }

  /** For a result that comes beside its event. */
  scrubResult(result: AgentResult): AgentResult {
    return this.#scrubFields(result)
  }

  #scrubFields<Fields extends object>(fields: Fields): Fields {
    const entries = Object.entries(fields).map(([name, value]) => [name, this.#scrubField(name, value)])
    return Object.fromEntries(entries) as Fields
  }

  #scrubField(name: string, value: unknown): unknown {
    if (typeof value === 'string') return OUR_WORDS.has(name) ? value : this.scrubber.scrub(value)
    if (typeof value !== 'object' || value === null) return value
    return OUR_OBJECTS.has(name) ? this.#scrubFields(value) : this.#scrubObject(value)
  }

  #scrubObject(value: object): unknown {
    let json: string
    try {
      json = JSON.stringify(value)
    } catch {
      // Nested so deeply that it could not be written down either; and it must not pass without a look.
      return { [MARK]: 'nested too deeply' }
    }
    const scrubbed = this.scrubber.scrubJson(json)
    return scrubbed === json ? value : JSON.parse(scrubbed)
  }
}

function toEvents(pieces: Piece<TextEvent>[]): AgentEvent[] {
  const events: TextEvent[] = []
  for (const { owner, text } of pieces) {
    const last = events.at(-1)
    if (last && isContinuedBy(last, owner)) events[events.length - 1] = { ...owner, content: last.content + text }
    else events.push({ ...owner, content: text })
  }
  return events
}

function isContinuedBy(earlier: TextEvent, later: TextEvent): boolean {
  if (earlier.metadata || later.metadata) return false
  if (earlier.type === 'output' && later.type === 'output') return earlier.stream === later.stream
  return earlier.type === later.type
}
