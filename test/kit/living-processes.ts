import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The processes, but for those that only wait to be collected, that run in `path` or were told of it. */
export function livingProcesses(path: string): Array<{ pid: number; command: string }> {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return []
    try {
      const isThere = readlinkSync(`/proc/${pid}/cwd`).startsWith(path)
      if (!isThere && !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(path)) return []
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }]
    } catch {
      return [] // It ended while it was looked at, or has ended and waits to be collected.
    }
  })
}

/** So that a test that fails leaves nothing behind either. */
export function endLivingProcesses(path: string): void {
  for (const { pid } of livingProcesses(path)) endNow(pid)
}

/** Whether it was still there. */
export function endNow(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false // It has ended since it was found.
  }
}
