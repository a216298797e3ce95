import type { CliBackend, ReadOutput } from '../../backends/engine/cli-backend.js'
import { readMediaTokens } from '../../media/media-tokens.js'

/** What an agent told beside its answer. */
export type AgentMeta = Omit<ReadOutput, 'text'>

export interface ParsedReply {
  /** Absent when the agent did not say how it ended. */
  text?: string
  /** Files and addresses that the answer names to be sent with it; nothing about them has been checked. */
  mediaUrls?: string[]
  meta?: AgentMeta
}

/** Contract: pure. Reads what the command line of an agent has printed as a run of it would. */
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
