import { randomUUID } from 'node:crypto'
import { type ContainerOptions, type ContainerProcess, FakeContainer } from './fake-container.js'
import type { FakeExec } from './fake-exec.js'

export interface PodOptions extends ContainerOptions {
  name: string
  namespace?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  /** By their names; they share everything here. */
  containers?: string[]
  state?: PodState
}

/**
 * - `unscheduled`: on no node yet
 * - `creating`: on a node, its containers are being created
 * - `crashing`: its containers end as soon as they are started
 * - `ending`: told to end, and still there
 */
export type PodState = 'running' | 'unscheduled' | 'creating' | 'crashing' | 'ending' | 'evicted' | 'completed'

export class FakePod {
  readonly name: string
  readonly namespace: string
  readonly labels: Record<string, string>
  readonly containers: string[]
  /** The network fails so that the node does not notice that a client is gone, and its input stays open. */
  isHalfOpen = false
  state: PodState
  readonly execs = new Set<FakeExec>()
  readonly #uid = randomUUID()
  #restarts = 0
  #startedAt = new Date()

  private constructor(
    private readonly options: PodOptions,
    public container: FakeContainer,
  ) {
    this.name = options.name
    this.namespace = options.namespace ?? 'default'
    this.labels = options.labels ?? {}
    this.containers = options.containers ?? ['main']
    this.state = options.state ?? 'running'
  }

  static async start(options: PodOptions): Promise<FakePod> {
    return new FakePod(options, await FakeContainer.start(options))
  }

  processes(): Promise<ContainerProcess[]> {
    return this.container.processes()
  }

  drop(how: 'closed' | 'cut'): void {
    for (const exec of this.execs) exec.drop(how)
  }

  freeze(): void {
    for (const exec of this.execs) exec.freeze()
  }

  /** What the node does when it runs out of memory or disk. The API server learns of it later. */
  async evict(toldAfterMs = 0): Promise<void> {
    await this.container.kill()
    setTimeout(() => {
      this.state = 'evicted'
    }, toldAfterMs)
  }

  canExec(): boolean {
    return (this.state === 'running' || this.state === 'ending') && this.container.isAlive()
  }

  /** Its containers end and are recreated, empty. */
  async restart(): Promise<void> {
    await this.container.remove()
    this.container = await FakeContainer.start(this.options)
    this.#restarts++
    this.#startedAt = new Date()
  }

  remove(): Promise<void> {
    return this.container.remove()
  }

  /** As `kubectl get -o json` shows it. */
  toJSON(): Record<string, unknown> {
    const isRunning = this.state === 'running' || this.state === 'ending'
    return {
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: {
        name: this.name,
        namespace: this.namespace,
        uid: this.#uid,
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: this.labels,
        annotations: this.options.annotations ?? {},
        ...(this.state === 'ending' && { deletionTimestamp: '2026-01-01T01:00:00Z', deletionGracePeriodSeconds: 30 }),
      },
      spec: {
        containers: this.containers.map((name) => ({ name, image: 'example.com/agent:1' })),
        ...(this.state !== 'unscheduled' && { nodeName: 'node-1' }),
      },
      status: {
        phase: phases[this.state],
        ...(this.state === 'evicted' && { reason: 'Evicted', message: 'The node was low on resource: memory. ' }),
        conditions: [
          { type: 'PodScheduled', status: this.state === 'unscheduled' ? 'False' : 'True' },
          { type: 'Ready', status: isRunning ? 'True' : 'False' },
        ],
        ...(this.state !== 'unscheduled' &&
          this.state !== 'evicted' && {
            containerStatuses: this.containers.map((name) => ({
              name,
              ready: isRunning,
              started: isRunning,
              restartCount: this.#restarts,
              containerID: `containerd://${this.#uid}-${this.#restarts}`,
              image: 'example.com/agent:1',
              imageID: '',
              state: this.#containerState(),
            })),
          }),
      },
    }
  }

  #containerState(): Record<string, unknown> {
    if (this.state === 'creating') return { waiting: { reason: 'ContainerCreating' } }
    if (this.state === 'completed') return { terminated: { reason: 'Completed', exitCode: 0 } }
    if (this.state === 'crashing') {
      const message = `back-off 5m0s restarting failed container=main pod=${this.name}_${this.namespace}`
      return { waiting: { reason: 'CrashLoopBackOff', message } }
    }
    return { running: { startedAt: this.#startedAt.toISOString() } }
  }
}

const phases: Record<PodState, string> = {
  running: 'Running',
  unscheduled: 'Pending',
  creating: 'Pending',
  crashing: 'Running',
  ending: 'Running',
  evicted: 'Failed',
  completed: 'Succeeded',
}
