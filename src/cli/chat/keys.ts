// Decodes what a terminal sends into keys, typed text and pastes.
//
// Not node:readline: it takes some sequences that today's terminals send, such as `ESC [ 99 ; 69 u`, for text.

export type Input =
  | { kind: 'text'; text: string }
  /** Line ends are `\n`. */
  | { kind: 'paste'; text: string }
  /** Such as `enter`, `newline`, `ctrl-a`, `alt-left`. */
  | { kind: 'key'; name: string }

const ESC = '\u001B'
const PASTE_END = `${ESC}[201~`
const SEQUENCE = new RegExp(String.raw`${ESC}\[(?:\[.|([<=>?]?[\d;:]*)[ -/]*([@-~]))`, 'y')
const INCOMPLETE = new RegExp(String.raw`^${ESC}(?:${ESC}?\[\[?[\d;:<=>?]*[ -/]*|${ESC}?O?)?$`)
const ALT_SEQUENCE = new RegExp(String.raw`^${ESC}${ESC}[[O]`)
const LETTERS: Record<string, string> = {
  ...{ A: 'up', B: 'down', C: 'right', D: 'left', H: 'home', F: 'end', M: 'enter' },
}
const NUMBERS: Record<number, string> = {
  ...{ 1: 'home', 3: 'delete', 4: 'end', 5: 'page-up', 6: 'page-down', 7: 'home', 8: 'end' },
}
/** Keys that have their own character. */
const CHARACTERS: Record<number, string> = {
  8: 'backspace',
  9: 'tab',
  10: 'newline',
  13: 'enter',
  27: 'escape',
  127: 'backspace',
}
/** Keypad codes, from terminals that report keypad keys separately. */
const KEYPAD_START = 57_399
const KEYPAD = '0123456789./*-+'
const KEYPAD_ENTER = 57_414

/** Contract: the keys do not depend on how the text is chunked, except at the end of a paste and for `flush`. */
export class KeyDecoder {
  #rest = ''
  #pasted: string[] | undefined

  /** The input so far may be incomplete: call `flush` if nothing follows. */
  get isWaiting(): boolean {
    return this.#rest !== '' && this.#pasted === undefined
  }

  push(chunk: string): Input[] {
    this.#rest += chunk
    const inputs: Input[] = []
    while (this.#rest !== '') {
      const before = this.#rest.length
      const input = this.#pasted ? this.#paste(this.#pasted) : this.#next()
      if (input) inputs.push(input)
      else if (this.#rest.length === before) break
    }
    return inputs
  }

  /** Nothing more came: what looked like a sequence was the Escape key. */
  flush(): Input[] {
    if (!this.isWaiting) return []
    const rest = this.#rest.slice(1)
    this.#rest = ''
    return [key('escape'), ...this.push(rest)]
  }

  #paste(pasted: string[]): Input | undefined {
    const end = this.#rest.indexOf(PASTE_END)
    if (end === -1) {
      // Part of the end marker may have arrived.
      const keep = Math.max(0, this.#rest.length - PASTE_END.length + 1)
      pasted.push(this.#rest.slice(0, keep))
      this.#rest = this.#rest.slice(keep)
      return undefined
    }
    const text = pasted.join('') + this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(end + PASTE_END.length)
    this.#pasted = undefined
    return { kind: 'paste', text: withPlainLineEnds(text) }
  }

  #next(): Input | undefined {
    const text = /^[^\p{Cc}]+/u.exec(this.#rest)?.[0]
    if (text !== undefined) {
      this.#rest = this.#rest.slice(text.length)
      return { kind: 'text', text }
    }
    if (!this.#rest.startsWith(ESC)) {
      const code = this.#rest.charCodeAt(0)
      this.#rest = this.#rest.slice(1)
      return CHARACTERS[code] === undefined ? key(`ctrl-${String.fromCharCode(code + 96)}`) : key(CHARACTERS[code])
    }
    return INCOMPLETE.test(this.#rest) ? undefined : this.#escape()
  }

  #escape(): Input | undefined {
    // Some terminals put a second Escape before a sequence for Alt.
    const isAlt = ALT_SEQUENCE.test(this.#rest)
    if (isAlt) this.#rest = this.#rest.slice(1)
    SEQUENCE.lastIndex = 0
    const [sequence, parameters = '', final] = SEQUENCE.exec(this.#rest) ?? []
    if (sequence !== undefined) {
      this.#rest = this.#rest.slice(sequence.length)
      return final === undefined ? undefined : this.#sequence(parameters, final, isAlt)
    }
    if (this.#rest.startsWith(`${ESC}O`)) {
      const name = LETTERS[this.#rest[2] ?? '']
      this.#rest = this.#rest.slice(3)
      return name === undefined ? undefined : named(name, isAlt ? 2 : 0)
    }
    const [character = ''] = this.#rest.slice(1)
    this.#rest = this.#rest.slice(1 + character.length)
    return ofCharacter(character.codePointAt(0) ?? 0, 2)
  }

  #sequence(parameters: string, final: string, isAlt: boolean): Input | undefined {
    const numbers = parameters.split(';').map((one) => Number.parseInt(one, 10))
    const [first = 0, second = 1, third = 0] = numbers
    const modifiers = (((second || 1) - 1) & 7) | (isAlt ? 2 : 0)
    if (final === 'u') return ofCharacter(first, modifiers)
    if (final === 'Z') return key('shift-tab')
    if (final !== '~') return LETTERS[final] === undefined ? undefined : named(LETTERS[final], modifiers)
    if (first === 200) {
      this.#pasted = []
      return undefined
    }
    if (first === 27) return ofCharacter(third, modifiers)
    return NUMBERS[first] === undefined ? undefined : named(NUMBERS[first], modifiers)
  }
}

export function withPlainLineEnds(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n')
}

function ofCharacter(code: number, modifiers: number): Input | undefined {
  const known = CHARACTERS[code]
  if (code === KEYPAD_ENTER) return named('enter', modifiers)
  if (known === 'enter') return modifiers === 0 ? key('enter') : key('newline')
  if (known !== undefined) return named(known, modifiers)
  const typed = KEYPAD[code - KEYPAD_START] ?? (isText(code) ? String.fromCodePoint(code) : undefined)
  if (typed === undefined) return undefined
  if (modifiers < 2) return { kind: 'text', text: typed }
  if (modifiers === 4 && (typed === 'j' || typed === 'h')) return key(typed === 'j' ? 'newline' : 'backspace')
  return named(typed.toLowerCase(), modifiers & 6)
}

/** Other keys, such as those for the volume, have numbers in the private use area. */
function isText(code: number): boolean {
  return code >= 32 && code < 0x11_00_00 && (code < 0xd8_00 || code >= 0xf9_00)
}

function named(name: string, modifiers: number): Input {
  const [shift, alt, ctrl] = [modifiers & 1 ? 'shift-' : '', modifiers & 2 ? 'alt-' : '', modifiers & 4 ? 'ctrl-' : '']
  return key(`${ctrl}${alt}${shift}${name}`)
}

function key(name: string): Input {
  return { kind: 'key', name }
}
