const NAMED: Partial<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  rarr: '→',
  larr: '←',
  copy: '©',
  times: '×',
}

const LAST_CODE_POINT = 0x10ffff

/** Decodes HTML entities as Markdown does. Unknown ones are left unchanged. */
export function decodeEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]{1,8}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[String(name)] ?? whole
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal)
    return code > 0 && code <= LAST_CODE_POINT ? String.fromCodePoint(code) : '\uFFFD'
  })
}
