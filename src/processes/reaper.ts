// Ends what a dead gateway left, from what it had put on record.
//
// A record is old by nature: its pid may be another process by now. So nothing is ended for its pid, only for the
// marker of the run in its environment, or for descending from such a process.

import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { RUN_MARKER } from './process-owner.js'
import { findProcess, readProcessTable } from './process-table.js'
import { collectTree, endLeftovers, NO_PID, type RunRoot } from './process-tree.js'

/** Where a pid means something. */
export interface HostIdentity {
  host: string
  /** Empty where it cannot be told. */
  bootId: string
}

/** One process, and no later one with the same pid. */
export interface ProcessIdentity extends HostIdentity {
  pid: number
  /** 0 where it is not known. */
  startTime: number
}

/** A process on record that is not known to have ended. */
export interface LedgerEntry extends ProcessIdentity {
  runId: string
  ownerId: string
  /** As in `StartedProcess`. */
  pod?: string
}

export function hostIdentity(): HostIdentity {
  return { host: `${hostname()}${containerSuffix()}`, bootId: readBootId() }
}

export function thisProcess(): ProcessIdentity {
  return { ...hostIdentity(), pid: process.pid, startTime: findProcess(process.pid)?.startTime ?? 0 }
}

export function isProcessAlive(identity: ProcessIdentity): 'alive' | 'dead' | 'elsewhere' {
  const here = hostIdentity()
  if (identity.host !== here.host) return 'elsewhere'
  if (isOfAnotherBoot(identity, here)) return 'dead'
  const found = findProcess(identity.pid)
  if (found === undefined) return 'dead'
  return identity.startTime === 0 || identity.startTime === found.startTime ? 'alive' : 'dead'
}

/**
 * Ends what is alive of these runs.
 *
 * Contract: to be called with runs whose owner is dead. Never rejects. Returns those of which nothing is alive that
 * could be ended, to be taken off the record; runs of other hosts are left to these.
 */
export async function endOrphans(entries: LedgerEntry[], log: Log): Promise<LedgerEntry[]> {
  const here = hostIdentity()
  const ours = entries.filter(({ host }) => host === here.host)
  const settled = await Promise.all(ours.map(async (entry) => isOfAnotherBoot(entry, here) || endOrphan(entry, log)))
  return ours.filter((_, index) => settled[index])
}

async function endOrphan({ runId, startTime }: LedgerEntry, log: Log): Promise<boolean> {
  const root: RunRoot = { pid: NO_PID, startTime, marker: `${RUN_MARKER}=${runId}`, hasExited: () => true }
  try {
    const found = collectTree(root, readProcessTable())
    if (found.length === 0) return true
    await endLeftovers(root, found)
    const left = collectTree(root, readProcessTable())
    log.warn('orphan.ended', { runId, processes: found.length })
    // Of another user, or already killed and held by the kernel: nothing more can be done.
    if (left.length > 0) log.warn('orphan.left', { runId, pids: left.map(({ pid }) => pid) })
    return true
  } catch (error) {
    log.warn('orphan.unknown', { runId, error: messageOf(error) })
    return false
  }
}

function isOfAnotherBoot({ bootId }: HostIdentity, here: HostIdentity): boolean {
  return bootId !== '' && here.bootId !== '' && bootId !== here.bootId
}

const FIRST_PID_NAMESPACE = 'pid:[4026531836]'

/** Containers may share the name of their host, and each counts its pids from 1. */
function containerSuffix(): string {
  if (process.platform !== 'linux') return ''
  const namespace = readlinkSync('/proc/self/ns/pid')
  return namespace === FIRST_PID_NAMESPACE ? '' : `/${namespace}`
}

function readBootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform !== 'darwin') return ''
    // Not kern.boottime, which moves when the clock is set.
    return execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return '' // Then marker and start time alone decide.
  }
}
