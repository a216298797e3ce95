import type { Agent } from './agents.js'
import type { Expectation } from './expectations.js'
import type { Script } from './scripted-model.js'
import type { Stage } from './stage.js'

export interface Scene {
  agent: Agent
  expected: Expectation
  open(script: Script): Promise<Stage>
}

/** A case that holds returns, in one line, what was seen; one that does not throws. */
export interface Case {
  name: string
  title: string
  run(scene: Scene): Promise<string>
}
