// Messages an agent receives in addition to the one that began its turn.

import type { Steer } from '../types.js'

/** The prompt for an agent that answers several messages of a conversation at once. */
export function joinedPrompt(prompt: string, others: string[]): string {
  return [prompt, ...others.map((text) => `[Another message of this conversation:]\n\n${text}`)].join('\n\n')
}

/** Records what the agent takes. If the turn starts over, it becomes part of the prompt. */
export function recordTaken(steer: Steer, taken: string[]): Steer {
  return async (text) => {
    const isTaken = await steer(text)
    if (isTaken) taken.push(text)
    return isTaken
  }
}
