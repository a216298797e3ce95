// What is told to an agent beside the message that began its turn.

import type { Steer } from '../types.js'

/** The prompt for an agent that answers several messages of a conversation at once. */
export function joinedPrompt(prompt: string, others: string[]): string {
  return [prompt, ...others.map((text) => `[Another message of this conversation:]\n\n${text}`)].join('\n\n')
}

/** Keeps what the agent takes: should the turn begin anew, it is part of the prompt. */
export function noting(steer: Steer, taken: string[]): Steer {
  return async (text) => {
    const isTaken = await steer(text)
    if (isTaken) taken.push(text)
    return isTaken
  }
}
