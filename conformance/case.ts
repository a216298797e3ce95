import type { Agent } from './agents.js'
import type { Expectation } from './expectations.js'
import type { OpenPlace } from './place.js'
import type { Script } from './scripted-model.js'
import type { Stage } from './stage.js'

export interface Scene {
  agent: Agent
  expected: Expectation
  /** In the column's place, unless the case has its own. */
  open(script: Script, openPlace?: OpenPlace): Promise<Stage>
}

/** A passing case returns what was seen, in one line; a failing one throws. */
export interface Case {
  name: string
  title: string
  /** For a case that needs longer than others. */
  deadlineMs?: number
  run(scene: Scene): Promise<string>
}

/** Prefix of the result if the agent is known to lack the ability. */
export const cannot = 'cannot: '
