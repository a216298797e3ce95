import { api } from './api.js'
import { lastDays } from './usage-model.js'
import type { SetupState } from './setup-steps.js'
import { type Resource, useResource } from './use-resource.js'

const LONG_AGO_DAYS = 366

/** The state of the gateway's setup. */
export function useSetup(): Resource<SetupState> {
  return useResource(async () => {
    const [agents, projects, { channels }, { total }] = await Promise.all([
      api.agents.list(),
      api.projects.list(),
      api.health(),
      api.figures(lastDays(LONG_AGO_DAYS, Date.now())),
    ])
    return { agents, projects, channels, answered: total.answered }
  }, [])
}
