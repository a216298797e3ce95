import { Lexer, type Token } from 'marked'

/** Deeper ones are nobody's text, and would exhaust the stack. */
export const DEEPEST = 24
/** In longer ones emphasis is not looked for, which takes the square of the time. */
const LONGEST_PARAGRAPH = 3_000

/** Contract: takes a time that grows with the length alone, however the text is made. */
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
