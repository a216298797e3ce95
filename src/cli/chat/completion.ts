// Completions for the word before the cursor: a command, its argument, or a file of the project.

import type { CommandDescription, Suggestion } from '../../channels/types.js'
import { filesBelow, matchingFiles } from '../../projects/file-names.js'
import { mention } from './attachments.js'
import { charactersOf, type EditorState, typedText } from './editor.js'

export interface Candidate {
  label: string
  /** A short description. */
  hint: string
  /** Replaces the units from `start` to the cursor. */
  text: string
}

export interface Completion {
  start: number
  candidates: Candidate[]
}

export interface CompletionSources {
  commands: readonly CommandDescription[]
  suggest(command: string, typed: string): Promise<Suggestion[]>
  /** Where the agent works, if that is on this machine. */
  directory: string | undefined
}

const MAX_CANDIDATES = 50

/** Contract: undefined if there is nothing to offer. */
export async function complete(state: EditorState, sources: CompletionSources): Promise<Completion | undefined> {
  const before = state.units.slice(0, state.cursor)
  const text = typedText(before)
  const command = /^\/([a-z]*)$/i.exec(text)?.[1]
  if (command !== undefined) return offered(0, commandCandidates(command, sources.commands))
  const [, name, typed] = /^\/([a-z]+) (\S*)$/i.exec(text) ?? []
  if (name !== undefined && typed !== undefined) {
    const start = before.length - charactersOf(typed).length
    const isKnown = sources.commands.some((one) => one.name === name && one.argument?.hasSuggestions)
    const found = isKnown ? await sources.suggest(name, typed) : []
    return offered(
      start,
      found.map(({ label, value }) => ({
        label: value,
        hint: label === value ? '' : withoutValue(label, value),
        text: value,
      })),
    )
  }
  const path = /(?<![^\s(])@"?([^\s"]*)$/.exec(text)
  if (!path || sources.directory === undefined) return undefined
  const start = before.length - charactersOf(path[0]).length
  return offered(start, await fileCandidates(path[1] ?? '', sources.directory))
}

/** The text with the candidate in place of what was typed. */
export function accept(state: EditorState, { start }: Completion, { text }: Candidate): EditorState {
  const units = charactersOf(text)
  const next = [...state.units.slice(0, start), ...units, ...state.units.slice(state.cursor)]
  return { ...state, units: next, cursor: start + units.length }
}

function offered(start: number, candidates: Candidate[]): Completion | undefined {
  return candidates.length === 0 ? undefined : { start, candidates: candidates.slice(0, MAX_CANDIDATES) }
}

function commandCandidates(typed: string, commands: readonly CommandDescription[]): Candidate[] {
  return commands
    .filter(({ name }) => name.startsWith(typed.toLowerCase()))
    .map(({ name, meaning, argument }) => ({
      label: `/${name}`,
      hint: meaning,
      text: `/${name}${argument ? ' ' : ''}`,
    }))
}

function withoutValue(label: string, value: string): string {
  return label.startsWith(`${value}: `) ? label.slice(value.length + 2) : label
}

async function fileCandidates(typed: string, directory: string): Promise<Candidate[]> {
  // Skip hidden files unless the typed path names one.
  const paths = await filesBelow(directory, /(?:^|\/)\.[^./]/.test(typed))
  return matchingFiles(paths, typed).map((path) => ({
    label: path,
    hint: '',
    text: `${mention(path)}${path.endsWith('/') ? '' : ' '}`,
  }))
}
