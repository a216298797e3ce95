import { Lexer, type Token } from 'marked'

/** Nobody nests blocks deeper than this, and it would exhaust the stack. */
export const DEEPEST = 24
/** Longer ones are not searched for emphasis, which takes quadratic time. */
const LONGEST_PARAGRAPH = 3_000

/** Contract: the time it takes grows only with the length of the text, whatever is in it. */
export class BoundedLexer extends Lexer {
  #depth = 0

  constructor() {
    super({ gfm: true, breaks: true })
  }

  override blockTokens<List extends Token[]>(text: string, tokens?: List, isClipped?: boolean): List {
    if (this.#depth > DEEPEST) return asWritten(text, tokens) as List
    this.#depth += 1
    const found = super.blockTokens(text, tokens, isClipped)
    this.#depth -= 1
    return found as List
  }

  override inlineTokens(text: string, tokens?: Token[]): Token[] {
    return text.length > LONGEST_PARAGRAPH ? asWritten(text, tokens) : super.inlineTokens(text, tokens)
  }
}

function asWritten(text: string, tokens: Token[] = []): Token[] {
  tokens.push({ type: 'text', raw: text, text })
  return tokens
}
