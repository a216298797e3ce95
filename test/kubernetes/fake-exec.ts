// One `exec` over WebSocket, as an API server, kubelet and container runtime implement it together (v5.channel.k8s.io):
// the first byte of a frame is its channel, 0 to 2 are stdin, stdout and stderr, 3 is the status, 255 closes another.

import type { Socket } from 'node:net'
import { finished } from 'node:stream/promises'
import type { WebSocket } from 'ws'
import type { ContainerExec } from './fake-container.js'
import { exitStatus, internalError, type Status } from './status.js'

const [STDIN, STDOUT, STDERR, STATUS, CLOSE] = [0, 1, 2, 3, 255] as const

/** How that program begins. */
const complaint = Buffer.from('setsid: ')

export class FakeExec {
  #isOver = false
  #isFrozen = false

  /** `keepsStdin`: the end of the connection is not noticed, so that even the input stays open. */
  constructor(
    private readonly socket: WebSocket,
    private readonly process: ContainerExec,
    keepsStdin: () => boolean,
  ) {
    // An empty frame on the lowest channel says that the connection is up.
    this.#send(STDOUT, Buffer.alloc(0))
    // Without a reader the process blocks at some point. It is not notified, and nobody ends it.
    socket.on('close', () => {
      this.#isOver = true
      for (const stream of [process.stdout, process.stderr]) stream.pause()
      if (!keepsStdin()) process.stdin.end()
    })
    socket.on('error', () => {})
    socket.on('message', (frame: Buffer) => {
      if (frame[0] === STDIN) process.stdin.write(frame.subarray(1))
      if (frame[0] === CLOSE && frame[1] === STDIN) process.stdin.end()
    })
    process.stdin.on('error', () => {})
    void this.#play()
  }

  /** The final status of a command, or why there is none. */
  static conclude(socket: WebSocket, status: Status): void {
    socket.send(Buffer.concat([Buffer.of(STATUS), Buffer.from(JSON.stringify(status))]))
    socket.close(1000)
  }

  /** Does not report how it ended: with a close frame, or without one. */
  drop(how: 'closed' | 'cut'): void {
    if (how === 'closed') this.socket.close(1000)
    else this.socket.terminate()
  }

  /** Nothing passes any longer, in either direction, but the connection stays open. */
  freeze(): void {
    this.#isFrozen = true
    this.socket.pause()
    for (const stream of [this.process.stdout, this.process.stderr]) stream.pause()
  }

  async #play(): Promise<void> {
    const [exitCode, complaint] = await Promise.all([
      this.process.exited,
      this.#forward(STDERR, this.process.stderr),
      // Whatever still holds the output keeps the stream open.
      this.#forward(STDOUT, this.process.stdout),
    ])
    const [, executable] = /^setsid: failed to execute (.*): No such file/.exec(complaint.toString()) ?? []
    if (executable === undefined) this.#send(STDERR, complaint)
    this.#finish(executable === undefined ? exitStatus(exitCode) : notStarted(executable))
  }

  /** Output held back: that of the program that should have become the command. */
  async #forward(channel: number, stream: Socket): Promise<Buffer> {
    let held = Buffer.alloc(0)
    let isBegun = channel !== STDERR
    stream.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      isBegun ||= !held.subarray(0, complaint.length).equals(complaint.subarray(0, held.length))
      if (!isBegun) return
      stream.pause()
      this.#send(channel, held, () => {
        if (!this.#isOver && !this.#isFrozen) stream.resume()
      })
      held = Buffer.alloc(0)
    })
    await finished(stream)
    return held
  }

  #send(channel: number, data: Buffer, sent: () => void = () => {}): void {
    if (!this.#isOver) this.socket.send(Buffer.concat([Buffer.of(channel), data]), sent)
  }

  #finish(status: Status): void {
    if (this.#isFrozen) return
    if (!this.#isOver) FakeExec.conclude(this.socket, status)
  }
}

function notStarted(executable: string): Status {
  return internalError(
    'error executing command in container: failed to exec in container: failed to start exec "0a1b": OCI runtime exec ' +
      `failed: exec failed: unable to start container process: exec: "${executable}": executable file not found in $PATH: unknown`,
  )
}
