import type { CliBackend, ReadOutput } from '../../backends/engine/cli-backend.js'
import { readMediaTokens } from '../../media/media-tokens.js'

/** What an agent reported besides its answer. */
export type AgentMeta = Omit<ReadOutput, 'text'>

export interface ParsedReply {
  /** Absent if the agent did not report how it ended. */
  text?: string
  /** Files and URLs that the answer asks to send along; unchecked. */
  mediaUrls?: string[]
  meta?: AgentMeta
}

/** Reads an agent's printed output as a run would. Contract: pure. */
export function parseReply(
  backend: Pick<CliBackend, 'readOutput'>,
  stdout: string,
  format?: 'text' | 'json',
): ParsedReply {
  const { text: output, ...meta } = backend.readOutput(stdout, format)
  if (output === undefined) return { meta }
  const { text, media } = readMediaTokens(output)
  return { text, ...(media.length > 0 && { mediaUrls: media }), meta }
}
