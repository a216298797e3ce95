import { type LabelledPod, type PodAddress, PodError, type Pods } from '../../src/kubernetes/types.js'

/** A cluster in which runs are only names. */
export class FakePods implements Pods {
  /** Whether it can be reached. */
  answers = true
  labels: LabelledPod[] = []
  told: string[] = []
  readonly asked: unknown[] = []
  readonly ended: Array<[PodAddress, string]> = []

  async open(address: PodAddress): Promise<never> {
    this.asked.push(address)
    throw new PodError('pod_not_found', 'Pod not found. Check its name.')
  }

  async endRun(address: PodAddress, runId: string): Promise<boolean> {
    if (this.answers) this.ended.push([address, runId])
    return this.answers
  }

  async labelled(label: string, where: { context?: string; namespace?: string }): Promise<LabelledPod[]> {
    this.asked.push([label, where])
    if (this.answers) return this.labels
    throw new PodError('unreachable', 'The cluster does not answer. Check the context.')
  }

  async problems(): Promise<string[]> {
    return this.told
  }
}
