import type { AgentEvent } from '../backends/types.js'
import { MARK, type Piece, type Scrubber, StreamedText } from './scrubber.js'

type TextEvent = Extract<AgentEvent, { type: 'output' | 'thinking' }>
type CompleteEvent = Extract<AgentEvent, { type: 'complete' }>

/** The text of one kind on one stream, which may continue. */
interface OpenText {
  type: TextEvent['type']
  stream: unknown
  text: StreamedText<TextEvent>
}

/** Fields with words and objects of the contract. All other fields hold an agent's text. */
const OUR_WORDS = new Set(['type', 'stream', 'reason'])
const OUR_OBJECTS = new Set(['result', 'failure', 'usage', 'sessionUsage'])

/**
 * Removes known secrets from the events of one run.
 *
 * Contract: the output obeys the contract of `run`. Text that may be the beginning of a secret is held back until the
 * next event of its kind and stream, or until an event of another kind; then a long beginning is hidden as well. A
 * notice does not count: it is not the agent's, whose text goes on after it. An event that is not text comes last in
 * the returned list.
 */
export class EventScrubber {
  readonly #texts: OpenText[] = []

  constructor(private readonly scrubber: Scrubber) {}

  scrub(event: AgentEvent): AgentEvent[] {
    if (event.type === 'complete') {
      const texts = toEvents(this.#texts.flatMap(({ text }) => text.end()))
      return [...texts, this.#hideRemainders(this.#scrubFields(event))]
    }
    if (event.type === 'notice') return [this.#scrubFields(event)]
    if (event.type !== 'output' && event.type !== 'thinking') {
      return [...toEvents(this.#texts.flatMap(({ text }) => text.flush())), this.#scrubFields(event)]
    }
    const others = this.#texts.filter(({ type }) => type !== event.type)
    const own = this.#textOf(event)
    const { content, ...rest } = event
    // Without metadata, as in nearly every event, there is nothing to scrub.
    const owner = { ...(rest.metadata ? this.#scrubFields(rest) : rest), content: '' }
    const events = toEvents([...others.flatMap(({ text }) => text.flush()), ...own.push(content, owner)])
    // An empty text would otherwise be lost.
    return content === '' ? [...events, owner] : events
  }

  /** Per stream: a command prints on two at once, and output on one must not split a secret on the other. */
  #textOf({ type, metadata }: TextEvent): StreamedText<TextEvent> {
    const stream = metadata?.['stream']
    const known = this.#texts.find((open) => open.type === type && open.stream === stream)
    if (known) return known.text
    const text = new StreamedText<TextEvent>(this.scrubber)
    this.#texts.push({ type, stream, text })
    return text
  }

  /** The final answer often starts after the last tool, so it may contain only the remainder of a secret. */
  #hideRemainders(event: CompleteEvent): CompleteEvent {
    const { finalOutput } = event.result
    if (finalOutput === undefined) return event
    const remainders = this.#texts.flatMap(({ text }) => [...text.remainders])
    const hidden = remainders.reduce((text, remainder) => text.replaceAll(remainder, MARK), finalOutput)
    return { ...event, result: { ...event.result, finalOutput: hidden } }
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
      // Nested too deeply to be stored, and it must not pass unchecked.
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
