// The forms a secret takes in text: literal, and as programs encode it in JSON, URLs, HTML, shell, base64 and hex.

/** Anything shorter occurs too often by chance to be hidden. */
export const SHORTEST_SECRET = 6

/** A line of a key or certificate: long, and without the punctuation of prose or settings. */
const KEY_LINE = /^[\w+/=-]{32,}$/
/** Where programs wrap base64: MIME and coreutils, PEM. */
const BASE64_COLUMNS = [76, 64]

/** Contract: every form has at least `SHORTEST_SECRET` characters; shorter values have none. */
export function formsOf(value: string): Set<string> {
  // A key file is rarely printed verbatim: the last newline may be missing, or each line may be numbered.
  const texts = new Set([value, value.trim(), ...value.split(/\r?\n/).filter((line) => KEY_LINE.test(line))])
  const forms = new Set<string>()
  for (const text of texts) {
    if (text.length < SHORTEST_SECRET) continue
    const inWords = [...jsonForms(text), ...urlForms(text), ...htmlForms(text), ...shellForms(text)]
    for (const form of [text, ...inWords, ...base64Forms(text), ...hexForms(text)]) forms.add(form)
  }
  return forms
}

function jsonForms(text: string): string[] {
  const once = escapeJson(text)
  return [
    once,
    // JSON inside a JSON string.
    escapeJson(once),
    // As Python and as Go escape it.
    once.replace(/[\u0080-\uFFFF]/g, escapeCharacter),
    once.replace(/[<>&\u2028\u2029]/g, escapeCharacter),
  ]
}

function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function urlForms(text: string): string[] {
  // A lone surrogate has no encoding.
  const wellFormed = Buffer.from(text).toString()
  const component = encodeURIComponent(wellFormed)
  const encodings = [
    component,
    component.replaceAll('%20', '+'),
    component.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`),
    new URLSearchParams([['', wellFormed]]).toString().slice(1),
    encodeURI(wellFormed),
  ]
  return encodings.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())])
}

/** Libraries escape quotes differently. */
function htmlForms(text: string): string[] {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return ["'", '&#39;', '&#x27;', '&apos;'].flatMap((single) =>
    ['"', '&quot;', '&#34;'].map((double) => escaped.replaceAll('"', double).replaceAll("'", single)),
  )
}

/** Inside shell quotes, and as `printf %q` prints it. */
function shellForms(text: string): string[] {
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll("'", `'"'"'`),
    text.replaceAll(/["$`\\]/g, String.raw`\$&`),
    text.replaceAll(/[^\w@%+=:,./\u0080-\uFFFF-]/g, String.raw`\$&`),
  ]
}

/** As `xxd -p`, `od` and most languages print it. */
function hexForms(text: string): string[] {
  const hex = Buffer.from(text).toString('hex')
  const spaced = hex.replaceAll(/..(?=.)/g, '$& ')
  return [hex, spaced].flatMap((form) => [form, form.toUpperCase()])
}

function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text)
  const whole = bytes.toString('base64')
  const pieces = [0, 1, 2].map((offset) => base64Within(bytes, offset))
  const broken = BASE64_COLUMNS.flatMap((columns) =>
    [whole, pieces[0] ?? ''].map((form) => form.replace(new RegExp(`.{${columns}}(?=.)`, 'g'), '$&\n')),
  )
  const forms = [whole, ...pieces, ...broken]
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))]
}

/** The characters that depend only on these bytes, if `before` bytes of an incomplete group of three precede them. */
function base64Within(bytes: Buffer, before: number): string {
  const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
}
