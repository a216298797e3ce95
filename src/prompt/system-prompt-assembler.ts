import { HEARTBEAT_CONTRACT } from './heartbeat.js'
import type { MarkdownConfig, MarkdownFileName } from './markdown-config-loader.js'

export interface PromptContext {
  /** What started the turn. */
  kind: 'message' | 'heartbeat' | 'cron' | 'hook' | 'webhook'
  /** Whether files named in its answer are sent. */
  canSendFiles?: boolean
}

/** Must match what `readMediaTokens` parses. */
const SENDING_FILES = `You can send files to the person. For each file, write a line of its own into your answer:

MEDIA:<path>

The path is absolute or relative to your working directory; the address of a file on the public web, with http:// or
https://, may stand in its place. Nothing else stands on the line. The line is taken out of your answer, and the person
gets the file with it, or is told where it is. Inside a code block the line stays text. Only regular files under your
working directory are sent, or under others that the operator allows, and none that usually hold secrets, such as
\`.env\`, private keys or \`.git\`. Do not send a file unless it is asked for or is part of the answer.`

/** Combines the prompt files into one system prompt. Contract: deterministic for the same files and context. */
export class SystemPromptAssembler {
  assemble(markdown: MarkdownConfig, { kind, canSendFiles = false }: PromptContext): string {
    const file = (heading: string, name: MarkdownFileName) => section(`# ${heading}`, markdown[name] ?? '')
    const skills = markdown.skills.map(({ name, text }) => section(`## ${name}`, text))
    return join([
      file('Identity', 'identity'),
      file('Soul', 'soul'),
      file('User', 'user'),
      file('Agents', 'agents'),
      file('Tools', 'tools'),
      section('# Skills', join(skills)),
      canSendFiles ? section('# Files', SENDING_FILES) : '',
      // What changes most often comes last: providers cache a prompt up to its first change.
      file('Memory', 'memory'),
      kind === 'heartbeat' ? section('# Heartbeat', `${HEARTBEAT_CONTRACT}\n\n${markdown.heartbeat ?? ''}`) : '',
    ])
  }
}

function section(heading: string, text: string): string {
  const trimmed = text.trim()
  return trimmed === '' ? '' : `${heading}\n\n${trimmed}`
}

function join(parts: string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}
