import type { GatewayConfig } from '../../config.js'
import type { ProjectRecord } from '../../store/projects.js'
import { missingDirectories } from '../missing-directories.js'
import { bad, type DoctorReport, good, renderFindings } from './findings.js'

/** The part of `aetheel doctor` about the directories that agents work in. Contract: never rejects. */
export async function directoriesReport(
  config: Pick<GatewayConfig, 'workingDir' | 'projects'>,
  listProjects: () => Promise<ProjectRecord[]>,
): Promise<DoctorReport> {
  // The database part reports an unreadable database.
  const listed = await listProjects().catch(() => [])
  const made = listed.filter(({ id, source }) => source !== 'file' && !config.projects.some((one) => one.id === id))
  const projects = [...config.projects, ...made]
  // The WhatsApp part reports the one in inbound.reply.
  const missing = missingDirectories({ workingDir: config.workingDir }, projects)
  const findings = missing.map(({ setting, problem, fix }) => bad(`${setting}: ${problem}`, fix))
  const count = 1 + projects.filter(({ pod }) => !pod).length
  const all = count === 1 ? 'the working directory exists' : `all ${count} exist`
  return renderFindings('Directories', findings.length > 0 ? findings : [good(all)])
}
