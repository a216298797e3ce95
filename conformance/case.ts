import type { Agent } from './agents.js'
import type { Expectation } from './expectations.js'
import type { OpenPlace } from './place.js'
import type { Script } from './scripted-model.js'
import type { Stage } from './stage.js'

export interface Scene {
  agent: Agent
  expected: Expectation
  /** In the place of the column, unless the case has one of its own. */
  open(script: Script, openPlace?: OpenPlace): Promise<Stage>
}

/** A case that holds returns, in one line, what was seen; one that does not throws. */
export interface Case {
  name: string
  title: string
  /** Where it needs longer than others. */
  deadlineMs?: number
  run(scene: Scene): Promise<string>
}

/** Begins what was seen where the agent is known not to be able to do it. */
export const cannot = 'cannot: '
