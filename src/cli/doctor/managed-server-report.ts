import type { OpenCodeServers } from '../../backends/opencode/server/servers.js'
import { messageOf } from '../../errors.js'
import { bad, type DoctorReport, good, renderFindings } from './findings.js'

/**
 * The part of `aetheel doctor` about the OpenCode server that the gateway starts itself.
 *
 * Contract: never rejects. Undefined if OpenCode is not installed, which is reported with the agents.
 */
export async function managedServerReport(servers: OpenCodeServers): Promise<DoctorReport | undefined> {
  if (!(await servers.isFound())) return undefined
  const needs = { environment: {}, secretFiles: [], isUntrusted: false }
  try {
    const { endpoint, release } = await servers.acquire(needs, new AbortController().signal)
    await release('nothing')
    return renderFindings('OpenCode server', [good(`it starts, and was ready at ${endpoint.url}`)])
  } catch (error) {
    const advice = 'Until it does, set OPENCODE_ENABLED=false: then each turn has a process of its own.'
    return renderFindings('OpenCode server', [bad(messageOf(error), advice)])
  }
}
