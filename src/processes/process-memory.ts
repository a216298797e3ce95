import { readFileSync } from 'node:fs'
import { readProcessTable } from './process-table.js'
import { withDescendants } from './process-tree.js'

/** The resident memory of each process with its descendants, in bytes. Undefined where the platform cannot tell. */
export function memoryOfTrees(pids: number[], platform: NodeJS.Platform = process.platform): number[] | undefined {
  if (platform !== 'linux') return undefined
  const table = readProcessTable()
  return pids.map((pid) =>
    [...withDescendants(new Set([pid]), table)].reduce((sum, one) => sum + residentBytes(one), 0),
  )
}

function residentBytes(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kilobytes ?? 0) * 1024
  } catch {
    return 0 // It has ended.
  }
}
