// The connection to a warm process, without the process: records what is sent, and makes up what is received.

import { setImmediate } from 'node:timers/promises'
import type { JsonObject } from '../../../../src/backends/engine/jsonl.js'
import type { Translation } from '../../../../src/backends/engine/translation.js'
import type { WarmTurn } from '../../../../src/backends/engine/warm/types.js'
import type { AgentEventBody, AgentRequest, BackendName } from '../../../../src/backends/types.js'
import { createFakeBackend, createStage } from '../../fake-cli.js'
import { createPlace } from './warm-stage.js'

export interface Talk {
  /** The operator's home. */
  home: string
  /** The directory with the files of the launch. */
  directory: string
  /** The messages sent since the last call. */
  said(): Promise<JsonObject[]>
  hear(...messages: JsonObject[]): Promise<void>
  begin(prompt: string, request?: Partial<AgentRequest>): Begun
}

export interface Begun {
  events: AgentEventBody[]
  translation: Translation
  live: WarmTurn
  isDone(): Promise<boolean>
}

/** Contract: called in a test. */
export function openTalk(name: BackendName, variables: Record<string, string> = {}): Talk {
  const stage = createStage()
  const backend = createFakeBackend(name, 'unused', stage)
  const place = createPlace(stage.home)
  let said: JsonObject[] = []
  const connection = backend.cli.definition.driver?.connect((message) => said.push(message), place, variables)
  if (!connection) throw new Error(`${name} is not kept alive`)
  return {
    home: stage.home,
    directory: place.files.path,
    async said() {
      await setImmediate()
      return said.splice(0)
    },
    async hear(...messages) {
      // Never answers before the request.
      await setImmediate()
      for (const message of messages) connection.receive(message)
      await setImmediate()
    },
    begin(prompt, request = {}) {
      const events: AgentEventBody[] = []
      const turn = backend.cli.turnOf({ prompt, ...request }, true)
      const translation = backend.cli.definition.translation((event) => events.push(event), turn)
      const live = connection.begin(turn, translation, request.approve)
      let isDone = false
      void live.done.then(() => {
        isDone = true
      })
      return {
        events,
        translation,
        live,
        async isDone() {
          await setImmediate()
          return isDone
        },
      }
    },
  }
}
