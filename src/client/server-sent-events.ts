// Reads server-sent events as the HTML standard says, from chunks that end anywhere.

export interface ServerSentEvent {
  id: string
  name: string
  data: string
}

export interface ServerSentEventsListener {
  onEvent(event: ServerSentEvent): void
  /** How long the server wants its clients to wait before they come back. */
  onRetry(delayMs: number): void
}

export class ServerSentEventsReader {
  readonly #decoder = new TextDecoder()
  /** The pieces of a line that has not ended: joined once, however long it gets. */
  #pieces: string[] = []
  #endedWithReturn = false
  #id = ''
  #name = ''
  #data: string[] = []

  constructor(private readonly listener: ServerSentEventsListener) {}

  push(chunk: Uint8Array): void {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (text === '') return
    // A line end of two characters may come in two chunks.
    if (this.#endedWithReturn && text.startsWith('\n')) text = text.slice(1)
    this.#endedWithReturn = text === '' ? false : text.endsWith('\r')
    const [first = '', ...lines] = text.split(/\r\n|\r|\n/)
    this.#pieces.push(first)
    for (const next of lines) {
      this.#takeLine(this.#pieces.join(''))
      this.#pieces = [next]
    }
  }

  #takeLine(line: string): void {
    if (line === '') {
      this.#dispatch()
      return
    }
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#name = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.listener.onRetry(Number(value))
  }

  #dispatch(): void {
    const event = { id: this.#id, name: this.#name, data: this.#data.join('\n') }
    const isEvent = this.#data.length > 0
    this.#name = ''
    this.#data = []
    if (isEvent) this.listener.onEvent(event)
  }
}
