// What Codex gets in addition to the prompt: the trust level of a project, and the system prompt.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { JsonObject } from '../engine/jsonl.js'
import type { RunFiles } from '../engine/place.js'

/**
 * Codex ignores settings, hooks and MCP servers of an untrusted directory, but not AGENTS.md and skills. AGENTS.md is
 * disabled by its size limit, and skills altogether, including the operator's.
 */
export function untrustedArgs(workingDir: string): string[] {
  const projects = withParents(workingDir).map((path) => `${JSON.stringify(path)}={trust_level="untrusted"}`)
  return [
    ...['-c', `projects={${projects.join(',')}}`],
    ...['-c', 'project_doc_max_bytes=0'],
    ...['-c', 'skills.include_instructions=false'],
    '--ignore-rules',
  ]
}

/**
 * Nobody could answer whether the directory is trusted, but the operator already has. Not `--trust`, which persists the
 * choice, and fails if the settings of Codex disagree.
 */
export function trustedArgs(workingDir: string): string[] {
  return ['-c', `projects={${JSON.stringify(workingDir)}={trust_level="trusted"}}`]
}

/** Same as `untrustedArgs`, for a thread of `codex app-server`, which ignores rules of an untrusted directory anyway. */
export function untrustedConfig(workingDir: string): JsonObject {
  const projects = withParents(workingDir).map((path) => [path, { trust_level: 'untrusted' }])
  return {
    projects: Object.fromEntries(projects),
    project_doc_max_bytes: 0,
    'skills.include_instructions': false,
  }
}

/** The directory and its ancestors: the operator may trust any of them. */
function withParents(directory: string): string[] {
  const parent = dirname(directory)
  return parent === directory ? [directory] : [directory, ...withParents(parent)]
}

// How the system prompt reaches the model. `developer_instructions` only applies to the first turn, and the other
// settings replace Codex' own prompt. A SessionStart hook runs on every start and adds a developer message. To avoid
// repeating it every turn, the hook adds nothing while the last message it added is the same.
const DIRECTORY = 'AETHEEL_INSTRUCTIONS'
const OPENING = '<gateway_instructions>'
const HOOK_COMMAND = [
  `cd "$${DIRECTORY}" && cat > event && : > delivered`,
  `transcript=$(sed -n 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/p' event)`,
  `{ grep -q '"source":"resume"' event && grep -F '${OPENING}' "$transcript" 2>/dev/null | tail -n 1 | grep -qF -f known; } || cat answer`,
].join('; ')
const HOOK = {
  additionalContextLimit: 200_000,
  async: false,
  command: HOOK_COMMAND,
  timeout: 600,
  type: 'command',
}
/** Codex runs a hook only if its hash is trusted: sha-256 of its JSON with sorted keys. */
const HOOK_HASH = createHash('sha256')
  .update(JSON.stringify({ event_name: 'session_start', hooks: [HOOK] }))
  .digest('hex')

/** The file that the hook leaves behind. */
export const DELIVERED = {
  file: 'delivered',
  otherwise: 'This version of Codex ignored the system prompt and used only its own.',
}

/** The developer message that carries a system prompt. */
export function gatewayInstructions(systemPrompt: string): string {
  return `${OPENING}\n${systemPrompt}\n</gateway_instructions>`
}

/** Whether the last system prompt in a thread's record is this one, and has not been compacted away. */
export async function areLastInstructions(systemPrompt: string, recordPath: string): Promise<boolean> {
  let record: string
  try {
    record = await readFile(recordPath, 'utf8')
  } catch {
    return false // Then the model gets it once more.
  }
  const start = record.lastIndexOf(OPENING)
  if (start === -1 || record.includes('"type":"compacted"', start)) return false
  return record.startsWith(asRecorded(gatewayInstructions(systemPrompt)), start)
}

/** As it appears inside a JSON string. */
function asRecorded(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

export function instructionsHook(systemPrompt: string, files: RunFiles) {
  const additionalContext = gatewayInstructions(systemPrompt)
  const answer = { hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext } }
  files.write('answer', JSON.stringify(answer))
  files.write('known', asRecorded(additionalContext))
  const hook = `type="command",command=${JSON.stringify(HOOK.command)},additionalContextLimit=${HOOK.additionalContextLimit}`
  const trust = `{"/<session-flags>/config.toml:session_start:0:0"={trusted_hash="sha256:${HOOK_HASH}"}}`
  return {
    args: [
      ...['--enable', 'hooks'],
      ...['-c', `hooks.SessionStart=[{hooks=[{${hook}}]}]`],
      ...['-c', `hooks.state=${trust}`],
    ],
    environment: { [DIRECTORY]: files.path },
  }
}
