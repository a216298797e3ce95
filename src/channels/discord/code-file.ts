/** Reads the language and a file name from the info string of a fence. */

export interface CodeFile {
  name: string
  content: string
}

/** Extensions that also serve as language names in an info string. */
const EXTENSIONS = new Set(
  [
    'bat c cc clj cpp cs css csv dart diff ex exs go graphql gql h hpp hs html ini java jl js json json5 jsonl jsx kt',
    'less log lua md mdx mjs cjs mts cts nim patch php pl proto ps1 py r rb rs scala scss sh sol sql svelte svg swift',
    'tex tf toml ts tsv tsx txt vue xml yaml yml zig',
  ]
    .join(' ')
    .split(' '),
)

const LANGUAGES = new Map(
  Object.entries({
    bash: 'sh',
    'c#': 'cs',
    'c++': 'cpp',
    clojure: 'clj',
    console: 'sh',
    csharp: 'cs',
    elixir: 'ex',
    golang: 'go',
    haskell: 'hs',
    javascript: 'js',
    julia: 'jl',
    kotlin: 'kt',
    latex: 'tex',
    markdown: 'md',
    perl: 'pl',
    powershell: 'ps1',
    protobuf: 'proto',
    python: 'py',
    ruby: 'rb',
    rust: 'rs',
    shell: 'sh',
    solidity: 'sol',
    terraform: 'tf',
    typescript: 'ts',
    zsh: 'sh',
  }),
)

const NAMED = /(?:^|[\s{,])(?:title|filename|file|name)[=:](?:"([^"]*)"|'([^']*)'|([^\s"'},]+))/i
/** One plain path segment, with nothing that a shell or a file system treats specially. */
const SAFE_NAME = /^(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9_](?:[a-z0-9_-]|\.(?=[a-z0-9_-])){0,62}$/i

/** A name that is unique among the message's files. */
export function nameCodeFile(info: string, others: CodeFile[]): string {
  const isTaken = (name: string) => others.some((other) => other.name.toLowerCase() === name.toLowerCase())
  const wanted = fileNameIn(info)
  if (wanted !== undefined && SAFE_NAME.test(wanted) && !isTaken(wanted)) return wanted

  const language = languageIn(info).toLowerCase()
  const known = EXTENSIONS.has(language) ? language : LANGUAGES.get(language)
  const extension = known ?? (wanted === undefined ? undefined : knownExtensionOf(wanted)) ?? 'txt'
  let number = others.length + 1
  while (isTaken(`code-${number}.${extension}`)) number += 1
  return `code-${number}.${extension}`
}

/** In Discord's spelling, or an empty string. */
export function languageIn(info: string): string {
  const [word = ''] = info.split(/\s/, 1)
  if (/^[^.{].*[./]/.test(word)) return knownExtensionOf(word) ?? ''
  return /^[{.]*([a-z][\w+#-]*)(?![\w+#=-])/i.exec(word)?.[1] ?? ''
}

/** Unchecked: it may be a path, or worse. */
function fileNameIn(info: string): string | undefined {
  const [, ...values] = NAMED.exec(info) ?? []
  const named = values.find((value) => value !== undefined)
  return named ?? info.split(/[\s:]+/).find((word) => knownExtensionOf(word) !== undefined)
}

function knownExtensionOf(name: string): string | undefined {
  const extension = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  return name.includes('.') && EXTENSIONS.has(extension) ? extension : undefined
}
