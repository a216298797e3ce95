// The processes that exist now: from /proc on Linux, which takes a few milliseconds, otherwise from `ps`.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessEntry {
  pid: number
  parentPid: number
  groupId: number
  /** True for an agent's tools and for daemons. */
  leadsSession: boolean
  /** In a unit of the platform. Distinguishes a process from a later one with the same pid. */
  startTime: number
  /** It has ended and waits for its parent to reap it. */
  isZombie: boolean
  /** Whether `NAME=value` is in the environment it was started with. */
  hasVariable(assignment: string): boolean
}

export function readProcessTable(platform: NodeJS.Platform = process.platform): ProcessEntry[] {
  return platform === 'linux' ? readProc() : parsePs(runPs(platform))
}

/** Undefined if no such process is alive. */
export function findProcess(pid: number, platform: NodeJS.Platform = process.platform): ProcessEntry | undefined {
  if (platform !== 'linux') return readProcessTable(platform).find((entry) => entry.pid === pid && !entry.isZombie)
  const stat = readOrUndefined(`/proc/${pid}/stat`)
  const entry = stat === undefined ? undefined : parseStat(pid, stat)
  return entry?.isZombie ? undefined : entry
}

/** Cheaper than `findProcess`, which starts `ps` on platforms other than Linux. */
export function isRunning(pid: number, platform: NodeJS.Platform = process.platform): boolean {
  if (platform === 'linux') return findProcess(pid) !== undefined
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** 0 on platforms where finding out would mean starting `ps`. */
export function startTimeOf(pid: number, platform: NodeJS.Platform = process.platform): number {
  const stat = platform === 'linux' ? readOrUndefined(`/proc/${pid}/stat`) : undefined
  return stat === undefined ? 0 : parseStat(pid, stat).startTime
}

function readProc(): ProcessEntry[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    const stat = readOrUndefined(`/proc/${name}/stat`)
    return stat === undefined ? [] : [parseStat(Number(name), stat)]
  })
}

function parseStat(pid: number, stat: string): ProcessEntry {
  // The name in parentheses may itself contain spaces and parentheses: the fields begin after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parentPid: Number(fields[1]),
    groupId: Number(fields[2]),
    leadsSession: Number(fields[3]) === pid,
    startTime: Number(fields[19]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
    hasVariable: (assignment) => `\0${readOrUndefined(`/proc/${pid}/environ`) ?? ''}\0`.includes(`\0${assignment}\0`),
  }
}

function readOrUndefined(path: string): string | undefined {
  try {
    // Twice as fast as any other encoding: only for this one does Node.js read files of unknown size natively.
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // The process has ended, or belongs to another user.
  }
}

function runPs(platform: NodeJS.Platform): string {
  const showEnvironment = platform === 'darwin' ? '-axEww' : 'axeww'
  const columns = 'pid=,ppid=,pgid=,stat=,lstart=,command='
  // A fixed locale, in which `lstart` is five words, and a fixed zone, because the machine's may change.
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  return execFileSync('ps', [showEnvironment, '-o', columns], { encoding: 'latin1', maxBuffer: 256 * 1024 * 1024, env })
}

const PS_LINE = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s(.*)$/

function parsePs(output: string): ProcessEntry[] {
  return output.split('\n').flatMap((line) => {
    const match = PS_LINE.exec(line)
    if (!match) return []
    const [, pid, parentPid, groupId, state = '', startTime = '', command = ''] = match
    return [
      {
        pid: Number(pid),
        parentPid: Number(parentPid),
        groupId: Number(groupId),
        leadsSession: state.includes('s'),
        startTime: Date.parse(`${startTime} UTC`),
        isZombie: state.startsWith('Z'),
        hasVariable: (assignment: string) => ` ${command} `.includes(` ${assignment} `),
      },
    ]
  })
}
