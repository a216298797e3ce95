/** The variables that mark every process of a run and of an owner: tools inherit them, wherever they hang later. */
export const RUN_MARKER = 'AETHEEL_RUN_ID'
export const OWNER_MARKER = 'AETHEEL_OWNER_ID'

export interface StartedProcess {
  runId: string
  pid: number
  /** As in the process table; 0 where that is not known. */
  startTime: number
  /** It only leads to a pod, where the run itself is. The address as JSON. */
  pod?: string
}

/** Who answers for the processes that are started. */
export interface ProcessOwner {
  /** In the environment of every process (AETHEEL_OWNER_ID), so that they are found when the owner itself has died. */
  id: string
  /**
   * Contract: settles when the process is on record; only then does it get its input. A rejection ends the run as
   * reason 'spawn'.
   */
  started(process: StartedProcess): Promise<void>
  /**
   * Contract: never rejects. Called once for every `started`, when nothing of the run is alive. A `started` that hangs
   * is not waited for: it may leave a record behind, which names nothing that lives.
   */
  ended(runId: string): Promise<void>
}
