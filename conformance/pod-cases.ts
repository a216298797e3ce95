/** Failures that only occur between the gateway and a pod. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PodProblem } from '../src/kubernetes/types.js'
import type { Case } from './case.js'
import { continuationOf, quote } from './checks.js'
import { callShell, say } from './model-replies.js'
import { openPod, type PodPlace } from './pod-place.js'
import { Sleeper } from './sleeper.js'

const prompt = 'Please say something.'
const answer = 'Something, said by the scripted model.'

interface Mishap {
  name: string
  title: string
  happen(place: PodPlace): Promise<void> | void
  problem: PodProblem
}

const mishaps: Mishap[] = [
  {
    name: 'client-killed',
    title: 'kubectl killed during a tool',
    happen: killClients,
    problem: 'stream_lost',
  },
  {
    name: 'stream-closed',
    title: 'Stream closed without a status',
    happen: ({ pod }) => pod.drop('closed'),
    problem: 'stream_lost',
  },
  {
    name: 'stream-cut',
    title: 'Stream cut off',
    happen: ({ pod }) => pod.drop('cut'),
    problem: 'stream_lost',
  },
  {
    name: 'pod-evicted',
    title: 'Pod evicted during a tool',
    happen: ({ pod }) => pod.evict(),
    problem: 'pod_gone',
  },
  {
    name: 'pod-deleted',
    title: 'Pod deleted during a tool',
    happen: ({ cluster, pod }) => cluster.deletePod(pod),
    problem: 'pod_gone',
  },
]

const mishapCases: Case[] = mishaps.map(({ name, title, happen, problem }) => ({
  name,
  title,
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    let place: PodPlace | undefined
    const stage = await open(
      (_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(answer)),
      async (options) => (place = await openPod(options)),
    )
    assert.ok(place)
    const over = new AbortController()
    const asked = stage.ask({ prompt }).finally(() => over.abort())
    while (!over.signal.aborted && !(await sleeper.isRunning())) await sleep(50)
    await happen(place)
    const turn = await asked
    const { isError, failure } = turn.result
    assert.deepEqual([isError, failure?.podProblem], [true, problem], failure?.message)
    assert.deepEqual(
      [await place.sandbox.processes(), await sleeper.isRunning()],
      [[], false],
      'nothing of the run is left',
    )
    if (problem === 'pod_gone') return `${problem}: ${quote(failure?.message ?? '')}`

    const next = await stage.ask({ prompt: 'Go on.', ...continuationOf(turn) })
    assert.equal(next.result.finalOutput, answer, next.result.failure?.message)
    return `${problem}; nothing left, and the session goes on`
  },
}))

const unnoticedCrash: Case = {
  name: 'gateway-crash-unnoticed',
  title: 'Gateway killed, and the pod does not notice',
  async run({ agent, open }) {
    const sleeper = new Sleeper()
    let place: PodPlace | undefined
    const { gateway } = await open(
      (_request, index) => (index === 0 ? callShell(agent, sleeper.command) : say(answer)),
      async (options) => (place = await openPod(options)),
    )
    assert.ok(place)
    await gateway.start()
    gateway.say(prompt)
    await gateway.until('the tool runs', () => sleeper.isRunning())
    place.pod.isHalfOpen = true
    place.pod.freeze()
    await gateway.kill()
    await gateway.start()
    // Sooner than the run in the pod would end itself for lack of heartbeats.
    await gateway.until('the next gateway ends it', async () => !(await sleeper.isRunning()), 20_000)
    await gateway.untilReplies(1)
    assert.deepEqual(gateway.replies(), [{ text: answer, notes: [], isError: false }])
    await gateway.stop()
    return 'the next gateway ends the run, and answers'
  },
}

export const podCases: Case[] = [...mishapCases, unnoticedCrash]

async function killClients({ sandbox }: PodPlace): Promise<void> {
  const clients = (await sandbox.processes()).filter(({ command }) => /kubectl\S* exec /.test(command))
  assert.ok(clients.length > 0, 'kubectl runs')
  for (const { pid } of clients) process.kill(pid, 'SIGKILL')
}
