// Ends everything a run started.
//
// Agents start tools in sessions of their own, so a signal to the process group misses them; and a tool whose parent has
// died is reparented to pid 1, so walking down from the agent misses it too. Therefore:
// - the tree is collected before the first signal, while the parents are still alive;
// - any process with the run's marker in its environment belongs to the run, whatever its parent is now;
// - a pid is signalled only while it is still the process that was collected (same start time).

import { wait } from '../core/async.js'
import { type ProcessEntry, readProcessTable } from './process-table.js'

export interface RunRoot {
  /** Also its process group. `NO_PID` to find the run's processes only by marker. */
  pid: number
  /** No process of the run is older. */
  startTime: number
  /** `NAME=value`, in the environment of every process of the run. */
  marker: string
  hasExited(): boolean
}

/** Matches no process and no group. */
export const NO_PID = -1

const TERM_AFTER_MS = 2_000
const KILL_AFTER_MS = 1_000
const TOOL_KILL_AFTER_MS = 500
/** Claude Code ends its tool a moment after it has reported the end of the turn. */
const TOOL_END_MS = 500
const MAX_SWEEPS = 20

/** Ends the agent with its preferred signal, then with stronger ones, then whatever it left behind. */
export async function endTree(root: RunRoot, stopSignal: NodeJS.Signals): Promise<void> {
  const collected = collectTree(root, readProcessTable())
  if (!root.hasExited()) {
    signalGroup(root.pid, stopSignal)
    await waitUntil(root.hasExited, TERM_AFTER_MS)
  }
  if (!root.hasExited() && stopSignal !== 'SIGTERM') {
    signalGroup(root.pid, 'SIGTERM')
    await waitUntil(root.hasExited, KILL_AFTER_MS)
  }
  if (!root.hasExited()) signalGroup(root.pid, 'SIGKILL')
  await endLeftovers(root, collected)
}

/** Ends what a run left behind after its agent exited. */
export async function endLeftovers(root: RunRoot, collected: ProcessEntry[] = []): Promise<void> {
  await endAll((table) => collectTree(root, table), collected)
}

/** What a warm agent keeps, such as its MCP servers: its process group, or all its descendants. */
export type Spared = 'group' | 'descendants'

/** Ends what a warm agent has started, such as tools, except what is spared. */
export async function endStrays(root: RunRoot, spared: Spared): Promise<void> {
  await endAll((table) => {
    const descendants = withDescendants(new Set([root.pid]), table)
    const isSpared = ({ pid, groupId }: ProcessEntry) =>
      spared === 'group' ? groupId === root.pid : descendants.has(pid)
    return collectTree(root, table).filter((entry) => !isSpared(entry))
  }, [])
}

/**
 * The running tools of a warm agent. Agents start each tool in its own session; their MCP servers are in the agent's
 * session, Codex's in groups of their own.
 */
export function toolsBelow(root: RunRoot, table = readProcessTable()): ProcessEntry[] {
  const inSession = new Set([root.pid])
  // As in `withDescendants`.
  for (let size = -1; size !== inSession.size;) {
    size = inSession.size
    for (const { pid, parentPid, leadsSession } of table) {
      if (inSession.has(parentPid) && !leadsSession) inSession.add(pid)
    }
  }
  return table.filter(
    ({ pid, parentPid, leadsSession, isZombie }) =>
      inSession.has(parentPid) && !inSession.has(pid) && leadsSession && !isZombie,
  )
}

/** Ends tools and their descendants, after giving the agent a moment to end them itself. */
export async function endTools(tools: ProcessEntry[]): Promise<void> {
  const collect = (table: ProcessEntry[]): ProcessEntry[] => {
    const members = withDescendants(new Set(stillAlive(tools, table).map(({ pid }) => pid)), table)
    return table.filter(({ pid, isZombie }) => members.has(pid) && !isZombie)
  }
  const known = collect(readProcessTable())
  await waitUntil(() => stillAlive(known, readProcessTable()).length === 0, TOOL_END_MS)
  await endAll(collect, known)
}

async function endAll(collect: (table: ProcessEntry[]) => ProcessEntry[], alreadyKnown: ProcessEntry[]): Promise<void> {
  let known = alreadyKnown
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep += 1) {
    const table = readProcessTable()
    known = stillAlive([...known, ...collect(table)], table)
    if (known.length === 0) return
    const signal = sweep === 0 ? 'SIGTERM' : 'SIGKILL'
    const waitedFor = known.filter(({ pid }) => signalProcess(pid, signal))
    if (waitedFor.length === 0) return
    const ended = () => stillAlive(waitedFor, readProcessTable()).length === 0
    await waitUntil(ended, sweep === 0 ? TOOL_KILL_AFTER_MS : KILL_AFTER_MS)
  }
}

export function collectTree(root: RunRoot, table: ProcessEntry[]): ProcessEntry[] {
  const candidates = table.filter(({ pid, startTime }) => pid !== process.pid && startTime >= root.startTime)
  const marked = candidates.filter(
    (entry) => (root.pid > 0 && entry.groupId === root.pid) || entry.hasVariable(root.marker),
  )
  const members = withDescendants(new Set(marked.map(({ pid }) => pid)), candidates)
  return candidates.filter(({ pid, isZombie }) => members.has(pid) && !isZombie)
}

/** The processes and all their descendants. */
export function withDescendants(pids: Set<number>, table: ProcessEntry[]): Set<number> {
  const members = new Set(pids)
  // Children may come before their parents in the table: repeat until a pass finds nothing new.
  for (let size = -1; size !== members.size;) {
    size = members.size
    for (const { pid, parentPid } of table) if (members.has(parentPid)) members.add(pid)
  }
  return members
}

function stillAlive(entries: ProcessEntry[], table: ProcessEntry[]): ProcessEntry[] {
  const wanted = new Map(entries.map((entry) => [entry.pid, entry.startTime]))
  return table.filter((entry) => !entry.isZombie && wanted.get(entry.pid) === entry.startTime)
}

/** The group, not the child: the CLI may be a wrapper whose real process would outlive it. */
function signalGroup(pid: number, signal: NodeJS.Signals): void {
  signalProcess(-pid, signal)
}

/** Whether the process gets it. One that changed its user, as with `sudo`, is out of reach. */
function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH' || code === 'EPERM') return false
    throw error
  }
}

async function waitUntil(isTrue: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs
  for (let pauseMs = 2; !isTrue() && Date.now() < deadline; pauseMs = Math.min(pauseMs * 2, 50)) await wait(pauseMs)
}
