import { dispatch } from './dispatch.js'
import type { Control, Handlers, MethodName, ParametersOf, Push, ResultOf } from './protocol.js'

/** Calls the handlers in process, for a command that does the work itself. */
export class LocalControl implements Control {
  readonly closed: Promise<void>
  readonly #onClose: Array<() => void> = []
  #closing: Promise<void> | undefined

  constructor(
    private readonly handlers: Partial<Handlers>,
    private readonly release: () => Promise<void>,
    private readonly onPush: (push: Push) => void = () => {},
  ) {
    this.closed = new Promise((resolve) => this.#onClose.push(resolve))
  }

  async call<M extends MethodName>(method: M, parameters: ParametersOf<M>): Promise<ResultOf<M>> {
    const peer = { push: this.onPush, onClose: (listener: () => void) => void this.#onClose.push(listener) }
    return (await dispatch(this.handlers, method, parameters, peer)) as ResultOf<M>
  }

  close(): Promise<void> {
    this.#closing ??= this.release().finally(() => {
      for (const listener of this.#onClose) listener()
    })
    return this.#closing
  }
}
