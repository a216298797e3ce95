import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ServerSentEvent, ServerSentEventsReader } from '../../src/core/server-sent-events.js'
import { formatFrame } from '../../src/service/sse.js'

it('reads what the gateway writes, wherever its chunks end and whatever its lines end with', () => {
  const event = fc.record({ id: fc.nat().map(String), name: fc.constantFrom('output', 'complete'), data: fc.string() })
  const property = fc.property(
    fc.array(fc.record({ event, lineEnd: fc.constantFrom('\n', '\r\n', '\r') }), { minLength: 1, maxLength: 5 }),
    fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }),
    (list, sizes) => {
      // A line end within the data is one of the frame.
      const events = list.map(({ event: given }) => ({ ...given, data: `é${given.data}`.replaceAll(/\r\n|\r/g, '\n') }))
      const frames = events.map(({ id, name, data }, index) =>
        formatFrame(id, name, data).replaceAll('\n', list[index]?.lineEnd ?? '\n'),
      )
      expect(read(chunksOf(Buffer.from(frames.join('')), sizes)).events).toEqual(events)
    },
  )
  fc.assert(property, { numRuns: 500 })
})

it('takes a wish for a delay, and leaves out comments, unknown fields and events without data', () => {
  const text =
    '\uFEFF: hello\nretry: 250\nretry: soon\nevent: empty\n\ncolor: red\nid: 7\ndata\n\ndata:  x\n\n:\n\ndata: cut'
  expect(read([Buffer.from(text)])).toEqual({
    events: [
      { id: '7', name: '', data: '' },
      { id: '7', name: '', data: ' x' },
    ],
    delays: [250],
  })
})

it('skips an event that is too long, and reports its beginning', () => {
  const long = `data: {"session":"one",${'x'.repeat(300)}`
  const text = `data: a\n\n${long}\nid: 3\n\ndata: b\n\n${'data: short\n'.repeat(50)}\ndata: c\n\n`
  const chunks = chunksOf(Buffer.from(text), [7])
  const events: string[] = []
  const beginnings: string[] = []
  const listener = {
    onEvent: ({ data }: ServerSentEvent) => events.push(data),
    onTooLong: (beginning: string) => beginnings.push(beginning.slice(0, 22)),
  }
  const reader = new ServerSentEventsReader(listener, 100)
  for (const chunk of chunks) reader.push(chunk)
  expect({ events, beginnings }).toEqual({
    events: ['a', 'b', 'c'],
    beginnings: ['data: {"session":"one"', expect.stringMatching(/^d/)],
  })
})

function read(chunks: Uint8Array[]): { events: ServerSentEvent[]; delays: number[] } {
  const events: ServerSentEvent[] = []
  const delays: number[] = []
  const reader = new ServerSentEventsReader({
    onEvent: (event) => events.push(event),
    onRetry: (delayMs) => delays.push(delayMs),
  })
  for (const chunk of chunks) reader.push(chunk)
  return { events, delays }
}

function chunksOf(bytes: Buffer, sizes: number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}
