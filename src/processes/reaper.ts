// Ends what a dead gateway left behind, using its ledger.
//
// A ledger entry is stale by nature: its pid may have been reused. So processes are never ended because of their pid,
// only because they, or an ancestor, have the run's marker in their environment.

import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { RUN_MARKER } from './process-owner.js'
import { findProcess, readProcessTable } from './process-table.js'
import { collectTree, endLeftovers, NO_PID, type RunRoot } from './process-tree.js'

/** The machine and boot in which a pid is meaningful. */
export interface HostIdentity {
  host: string
  /** Empty if unknown. */
  bootId: string
}

/** One process, as opposed to a later one with the same pid. */
export interface ProcessIdentity extends HostIdentity {
  pid: number
  /** 0 if unknown. */
  startTime: number
}

/** A recorded process that is not known to have ended. */
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
 * Ends the surviving processes of these runs.
 *
 * Contract: the owners of these runs are dead. Never rejects. Returns the entries that can be deleted, because nothing
 * is left of them to end. Runs on other hosts are left to those hosts.
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
    // Another user's, or killed but held by the kernel: nothing more can be done.
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

/** Containers may share their host's name, and each has its own pids. */
function containerSuffix(): string {
  if (process.platform !== 'linux') return ''
  const namespace = readlinkSync('/proc/self/ns/pid')
  return namespace === FIRST_PID_NAMESPACE ? '' : `/${namespace}`
}

function readBootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform !== 'darwin') return ''
    // Not kern.boottime, which changes when the clock is set.
    return execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return '' // Then only marker and start time decide.
  }
}
