import type { MarkdownConfig, MarkdownFileName } from './markdown-config-loader.js'

export interface PromptContext {
  /** What the agent is called for. */
  kind: 'message' | 'heartbeat' | 'cron' | 'hook' | 'webhook'
}

/** Makes one system prompt of the prompt files. Contract: the same files and context give the same text. */
export class SystemPromptAssembler {
  assemble(markdown: MarkdownConfig, { kind }: PromptContext): string {
    const file = (heading: string, name: MarkdownFileName) => section(`# ${heading}`, markdown[name] ?? '')
    const skills = markdown.skills.map(({ name, text }) => section(`## ${name}`, text))
    return join([
      file('Identity', 'identity'),
      file('Soul', 'soul'),
      file('User', 'user'),
      file('Agents', 'agents'),
      file('Tools', 'tools'),
      section('# Skills', join(skills)),
      // What changes most often stands last: providers cache a prompt up to its first change.
      file('Memory', 'memory'),
      kind === 'heartbeat' ? file('Heartbeat', 'heartbeat') : '',
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
