import type { GatewayConfig } from '../config.js'
import type { Store } from '../store/store.js'

/** Makes the store match the projects of the configuration file, and removes those no longer in it. */
export async function syncConfiguredProjects(
  { projects }: Pick<GatewayConfig, 'projects'>,
  store: Pick<Store, 'projects'>,
  now: number,
): Promise<void> {
  for (const project of projects) await store.projects.put(project, 'file', now)
  for (const { id, source } of await store.projects.list()) {
    if (source === 'file' && !projects.some((project) => project.id === id)) await store.projects.remove(id)
  }
}
