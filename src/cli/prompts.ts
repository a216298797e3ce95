import type { Readable, Writable } from 'node:stream'
import * as clack from '@clack/prompts'
import { GatewayError } from '../errors.js'

interface Key {
  name?: string
  ctrl?: boolean
}

export interface Choice<Value extends string> {
  value: Value
  label: string
  hint?: string
}

/** More would scroll away on a small terminal; the rest is reached with the arrows. */
const MAX_CHOICES_SHOWN = 12
const USUAL_COLUMNS = 80
const USUAL_ROWS = 24

/**
 * Questions to a person at a terminal.
 *
 * Contract: a question that is cancelled, or that nobody is left to answer, throws. Nothing may be written before.
 */
export class Prompts {
  readonly #ended = new AbortController()

  constructor(
    private readonly input: Readable,
    private readonly output: Writable & { columns?: number; rows?: number },
  ) {
    // Some terminals do not know how large they are; Clack would write one character to a line.
    if (output.columns === 0) output.columns = USUAL_COLUMNS
    if (output.rows === 0) output.rows = USUAL_ROWS
    // Clack waits for ever when its input ends.
    input.once('end', this.#onEnd).once('close', this.#onEnd).on('keypress', this.#onKey)
  }

  close(): void {
    this.input.off('end', this.#onEnd).off('close', this.#onEnd).off('keypress', this.#onKey)
  }

  begin(title: string): void {
    clack.intro(title, { output: this.output })
  }

  end(message: string): void {
    clack.outro(message, { output: this.output })
  }

  giveUp(message: string): void {
    clack.cancel(message, { output: this.output })
  }

  say(message: string): void {
    clack.log.info(message, { output: this.output })
  }

  praise(message: string): void {
    clack.log.success(message, { output: this.output })
  }

  warn(message: string): void {
    clack.log.warn(message, { output: this.output })
  }

  text(options: {
    message: string
    initialValue?: string
    placeholder?: string
    problemOf: (value: string) => string | undefined
  }): Promise<string> {
    const { problemOf, ...shown } = options
    return this.#ask<string>((common) =>
      clack.text({ ...shown, ...common, validate: (value = '') => problemOf(value.trim()) }),
    )
  }

  secret(options: { message: string; problemOf: (value: string) => string | undefined }): Promise<string> {
    const { message, problemOf } = options
    return this.#ask<string>((common) =>
      clack.password({ message, ...common, clearOnError: true, validate: (value = '') => problemOf(value.trim()) }),
    )
  }

  confirm(message: string, initialValue: boolean): Promise<boolean> {
    return this.#ask<boolean>((common) => clack.confirm({ message, initialValue, ...common }))
  }

  select<Value extends string>(message: string, choices: Choice<Value>[], initialValue?: Value): Promise<Value> {
    return this.#ask((common) => this.#select(message, choices, common, initialValue))
  }

  /** The same, until something else has come meanwhile: then that. */
  async selectUnless<Value extends string, Event>(
    message: string,
    choices: Choice<Value>[],
    happens: (signal: AbortSignal) => Promise<Event>,
  ): Promise<{ chosen: Value } | { happened: Event }> {
    const over = new AbortController()
    const event = happens(over.signal).then((happened) => ({ happened }))
    try {
      const chosen = this.#ask((common) => this.#select(message, choices, common), over.signal)
      return await Promise.race([event, chosen.then((value) => ({ chosen: value }))])
    } finally {
      over.abort()
    }
  }

  #select<Value extends string>(
    message: string,
    choices: Choice<Value>[],
    common: clack.CommonOptions,
    initialValue?: Value,
  ): Promise<Value | symbol> {
    return clack.select<string>({
      message,
      options: choices,
      maxItems: MAX_CHOICES_SHOWN,
      ...(initialValue !== undefined && { initialValue }),
      ...common,
    }) as Promise<Value | symbol>
  }

  /** Each question has a signal of its own: Clack goes on listening to it after the answer. */
  async #ask<Value>(
    ask: (common: clack.CommonOptions) => Promise<Value | symbol>,
    unless?: AbortSignal,
  ): Promise<Value> {
    const stop = new AbortController()
    const onStop = (): void => stop.abort()
    const reasons = [this.#ended.signal, ...(unless ? [unless] : [])]
    for (const reason of reasons) {
      if (reason.aborted) onStop()
      reason.addEventListener('abort', onStop)
    }
    try {
      const answer = await ask({ input: this.input, output: this.output, signal: stop.signal })
      if (typeof answer === 'symbol') throw new GatewayError('request_invalid', 'Cancelled: nothing was written.')
      return typeof answer === 'string' ? (answer.trim() as Value) : answer
    } finally {
      for (const reason of reasons) reason.removeEventListener('abort', onStop)
    }
  }

  readonly #onEnd = (): void => this.#ended.abort()

  readonly #onKey = (_text: string | undefined, key: Key | undefined): void => {
    if (key?.ctrl && key.name === 'd') this.#ended.abort()
  }
}
