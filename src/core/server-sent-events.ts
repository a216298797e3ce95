// Parses server-sent events as the HTML standard defines them, from chunks split anywhere.

export interface ServerSentEvent {
  id: string
  name: string
  data: string
}

export interface ServerSentEventsListener {
  onEvent(event: ServerSentEvent): void
  /** How long the server wants clients to wait before they reconnect. */
  onRetry?(delayMs: number): void
  /** Replaces an event that is too long; `beginning` is the start of the line that exceeded the limit. */
  onTooLong?(beginning: string): void
}

const BEGINNING_CHARACTERS = 2_000

export class ServerSentEventsReader {
  readonly #decoder = new TextDecoder()
  /** Pieces of an unfinished line, joined only once however long it gets. */
  #pieces: string[] = []
  /** Length of the unfinished line, and of the event so far. */
  #lineCharacters = 0
  #eventCharacters = 0
  #isTooLong = false
  #endedWithReturn = false
  #id = ''
  #name = ''
  #data: string[] = []

  constructor(
    private readonly listener: ServerSentEventsListener,
    private readonly maxCharacters = Infinity,
  ) {}

  push(chunk: Uint8Array): void {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (text === '') return
    // CRLF may be split over two chunks.
    if (this.#endedWithReturn && text.startsWith('\n')) text = text.slice(1)
    this.#endedWithReturn = text === '' ? false : text.endsWith('\r')
    const [first = '', ...lines] = text.split(/\r\n|\r|\n/)
    this.#keep(first)
    for (const next of lines) {
      this.#takeLine()
      this.#keep(next)
    }
  }

  #keep(piece: string): void {
    this.#lineCharacters += piece.length
    this.#eventCharacters += piece.length
    if (this.#isTooLong) return
    this.#pieces.push(piece)
    if (this.#eventCharacters <= this.maxCharacters) return
    this.#isTooLong = true
    this.listener.onTooLong?.(this.#pieces.join('').slice(0, BEGINNING_CHARACTERS))
    this.#pieces = []
    this.#data = []
  }

  #takeLine(): void {
    const line = this.#pieces.join('')
    const isEmpty = this.#lineCharacters === 0
    this.#pieces = []
    this.#lineCharacters = 0
    if (isEmpty) this.#dispatch()
    else if (!this.#isTooLong) this.#takeField(line)
  }

  #takeField(line: string): void {
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#name = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.listener.onRetry?.(Number(value))
  }

  #dispatch(): void {
    const event = { id: this.#id, name: this.#name, data: this.#data.join('\n') }
    const isEvent = this.#data.length > 0
    this.#isTooLong = false
    this.#eventCharacters = 0
    this.#name = ''
    this.#data = []
    if (isEvent) this.listener.onEvent(event)
  }
}
