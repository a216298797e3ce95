import type { Readable, Writable } from 'node:stream'
import * as clack from '@clack/prompts'
import { defined } from '../core/defined.js'
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

/** More would not fit on a small terminal; the arrow keys reach the rest. */
const MAX_CHOICES_SHOWN = 12
const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

/**
 * Questions to a person at a terminal.
 *
 * Contract: throws if a question is cancelled or the input ends. Callers write nothing before the last answer.
 */
export class Prompts {
  readonly #ended = new AbortController()

  constructor(
    private readonly input: Readable,
    private readonly output: Writable & { columns?: number; rows?: number },
    /** What to do after a cancelled question. */
    private readonly advice = '',
  ) {
    // Some terminals report no size; Clack would then write one character per line.
    if (output.columns === 0) output.columns = DEFAULT_COLUMNS
    if (output.rows === 0) output.rows = DEFAULT_ROWS
    // Clack waits forever when its input ends.
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

  cancel(message: string): void {
    clack.cancel(message, { output: this.output })
  }

  say(message: string): void {
    clack.log.info(message, { output: this.output })
  }

  success(message: string): void {
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

  /** Like `select`, but ends early if something else happens first. */
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
    const options = { message, options: choices, maxItems: MAX_CHOICES_SHOWN, ...defined({ initialValue }) }
    return clack.select<string>({ ...options, ...common }) as Promise<Value | symbol>
  }

  /** Each question gets its own signal: Clack never removes its listener. */
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
      if (typeof answer === 'symbol') {
        throw new GatewayError('request_invalid', `Cancelled: nothing was written. ${this.advice}`.trimEnd())
      }
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
