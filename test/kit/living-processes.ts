import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The processes, except zombies, that run in `path` or have it in their environment. */
export function livingProcesses(path: string): Array<{ pid: number; command: string }> {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return []
    try {
      const isThere = readlinkSync(`/proc/${pid}/cwd`).startsWith(path)
      if (!isThere && !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(path)) return []
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }]
    } catch {
      return [] // It has ended since, or is a zombie.
    }
  })
}

/** For clean-up: even a failed test leaves nothing behind. */
export function endLivingProcesses(path: string): void {
  for (const { pid } of livingProcesses(path)) endNow(pid)
}

/** Returns whether it was still running. */
export function endNow(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false // It has ended since it was found.
  }
}
