// Reads the input of the five agents' tools. The names of its fields differ; their meanings do not.

type Input = Record<string, unknown>

export type FileChange = { path: string } & (
  | { kind: 'edit'; before: string; after: string }
  /** Lines with + and -, as the agent wrote them. */
  | { kind: 'patch'; patch: string }
)

const PATHS = ['file_path', 'filePath', 'path', 'absolute_path', 'notebook_path']
const BEFORE = ['old_string', 'oldString', 'oldText']
const AFTER = ['new_string', 'newString', 'newText', 'new_source']
const PATCHES = ['patch', 'patchText', 'diff']
/** Tools that write a whole file. Others use `content` for something else. */
const WRITES = /^(write|write_file|create|create_file)$/i
const SUBJECTS = ['command', 'cmd', ...PATHS, 'pattern', 'query', 'url', 'description', 'prompt']

/** What a tool changes in files; empty if nothing. */
export function fileChangesOf(tool: string, input: Input): FileChange[] {
  const path = textOf(input, PATHS) ?? ''
  const whole = changeIn(path, input)
  if (whole?.kind === 'patch' && path === '') return filesIn(whole.patch)
  if (whole) return [whole]
  const { content } = input
  if (WRITES.test(tool) && typeof content === 'string') return [{ kind: 'edit', path, before: '', after: content }]
  return [...recordsIn(input, 'edits'), ...recordsIn(input, 'changes')].flatMap(
    (part) => changeIn(textOf(part, PATHS) ?? path, part) ?? [],
  )
}

/** Like `fileChangesOf`, plus the files for which a tool reports only that they have changed. */
export function changedFilesOf(tool: string, input: Input): (FileChange | { path: string; kind: 'unknown' })[] {
  const changes = fileChangesOf(tool, input)
  const named = recordsIn(input, 'changes').flatMap((part) => textOf(part, PATHS) ?? [])
  const untold = named.filter((path) => !changes.some((change) => change.path === path))
  return [...changes, ...untold.map((path) => ({ path, kind: 'unknown' as const }))]
}

function changeIn(path: string, input: Input): FileChange | undefined {
  const patch = textOf(input, PATCHES)
  if (patch !== undefined) return { kind: 'patch', path, patch }
  const after = textOf(input, AFTER)
  return after === undefined ? undefined : { kind: 'edit', path, before: textOf(input, BEFORE) ?? '', after }
}

/** Splits a patch that names its files itself. */
function filesIn(patch: string): FileChange[] {
  const parts = patch.split(/^(?=\*\*\* (?:Add|Update|Delete) File: )/m).flatMap((part): FileChange[] => {
    const [, path] = /^\*\*\* \w+ File: (.+)/.exec(part) ?? []
    return path === undefined
      ? []
      : [{ kind: 'patch', path: path.trim(), patch: part.replace(/\*\*\* End Patch\s*$/, '') }]
  })
  return parts.length > 0 ? parts : [{ kind: 'patch', path: '', patch }]
}

/** One line that says what a call is about: the command, the file, or other short text. */
export function subjectOf(input: Input): string {
  const [change] = recordsIn(input, 'changes')
  const text =
    textOf(input, SUBJECTS) ??
    textOf(change ?? {}, PATHS) ??
    Object.values(input).find((value) => typeof value === 'string')
  return typeof text === 'string' ? (text.trim().split('\n', 1)[0] ?? '').slice(0, 200) : ''
}

function textOf(input: Input, names: string[]): string | undefined {
  const name = names.find((candidate) => typeof input[candidate] === 'string')
  return name === undefined ? undefined : String(input[name])
}

function recordsIn(input: Input, name: string): Input[] {
  const list = input[name]
  return Array.isArray(list)
    ? list.filter((entry): entry is Input => typeof entry === 'object' && entry !== null && !Array.isArray(entry))
    : []
}
