import type { Reply } from '../../channels/types.js'
import type { ReplyConfig } from '../../config/inbound.js'

/** Adds the prefix, unless the agent wrote it itself, and the configured file. */
export function finishReply(reply: Reply, config: Pick<ReplyConfig, 'responsePrefix' | 'mediaUrl'>): Reply {
  const { responsePrefix: prefix = '', mediaUrl } = config
  const hasPrefix = prefix === '' || reply.text === '' || reply.text.startsWith(prefix.trimEnd())
  const gap = /\s$/.test(prefix) ? '' : ' '
  return {
    ...reply,
    text: hasPrefix ? reply.text : prefix + gap + reply.text,
    ...(mediaUrl !== undefined && !reply.files?.length && { files: [{ url: mediaUrl }] }),
  }
}
