/** Variables that mark every process of a run and of an owner. Tools inherit them, whatever their parent is later. */
export const RUN_MARKER = 'AETHEEL_RUN_ID'
export const OWNER_MARKER = 'AETHEEL_OWNER_ID'

export interface StartedProcess {
  runId: string
  pid: number
  /** As in the process table; 0 if unknown. */
  startTime: number
  /** The pod's address as JSON, if the run itself is in a pod and this process only leads there. */
  pod?: string
}

/** Responsible for the processes started in its name. */
export interface ProcessOwner {
  /** In the environment of every process (AETHEEL_OWNER_ID), so that they can be found after the owner has died. */
  id: string
  /**
   * Contract: settles when the process is on record; only then does it get its input. A rejection ends the run with
   * reason 'spawn'.
   */
  started(process: StartedProcess): Promise<void>
  /**
   * Contract: never rejects. Called once for every `started`, when nothing of the run is alive. It does not wait for a
   * `started` that hangs, which may leave a record of a dead process behind.
   */
  ended(runId: string): Promise<void>
}
