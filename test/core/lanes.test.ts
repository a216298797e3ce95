import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Lanes } from '../../src/core/async.js'

/** A task that begins when it is its turn and ends when told to. */
function piece(name: string, steps: string[]) {
  let finish: (failure?: Error) => void = () => {}
  const ended = new Promise<void>((resolve, reject) => {
    finish = (failure) => (failure ? reject(failure) : resolve())
  })
  const work = async (): Promise<void> => {
    steps.push(`${name} begins`)
    await ended
    steps.push(`${name} ends`)
  }
  return { work, finish: (failure?: Error) => finish(failure) }
}

function setup() {
  const steps: string[] = []
  return { steps, lanes: new Lanes(), piece: (name: string) => piece(name, steps) }
}

it('runs the tasks of one key one after the other', async () => {
  const { steps, lanes, piece } = setup()
  const [one, two, three] = [piece('one'), piece('two'), piece('three')]
  const done = [one, two, three].map(({ work }) => lanes.run('a', work))
  // The later ones could end at once.
  for (const { finish } of [three, two, one]) finish()
  await Promise.all(done)
  expect(steps).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
})

it('keeps the order of requests while other work goes on', async () => {
  const { steps, lanes, piece } = setup()
  const [one, two, three] = [piece('one'), piece('two'), piece('three')]
  const first = lanes.run('a', one.work)
  const second = lanes.run('a', two.work)
  one.finish()
  await first
  const third = lanes.run('a', three.work)
  three.finish()
  await new Promise(setImmediate)
  two.finish()
  await Promise.all([second, third])
  expect(steps).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
})

it('does what belongs to different keys side by side', async () => {
  const { steps, lanes, piece } = setup()
  const [one, two] = [piece('one'), piece('two')]
  const first = lanes.run('a', one.work)
  const second = lanes.run('b', two.work)
  two.finish()
  await second
  one.finish()
  await first
  expect(steps).toEqual(['one begins', 'two begins', 'two ends', 'one ends'])
})

it('continues after a failure, which its caller gets', async () => {
  const { steps, lanes, piece } = setup()
  const [one, two] = [piece('one'), piece('two')]
  const failure = new Error('No')
  const done = [lanes.run('a', one.work), lanes.run('a', two.work)]
  one.finish(failure)
  two.finish()
  expect([await Promise.allSettled(done), steps]).toEqual([
    [
      { status: 'rejected', reason: failure },
      { status: 'fulfilled', value: undefined },
    ],
    ['one begins', 'two begins', 'two ends'],
  ])
})

it('takes a throw before the first wait for a failure, too', async () => {
  const { lanes } = setup()
  const failure = new Error('No')
  const done = lanes.run('a', () => {
    throw failure
  })
  await expect(done).rejects.toBe(failure)
  await expect(lanes.run('a', () => 'goes on')).resolves.toBe('goes on')
})

it('lets whoever stops waiting go, and nobody else pass', async () => {
  const { lanes } = setup()
  const order: string[] = []
  const stopped = new AbortController()
  const leaveFirst = await lanes.enter('a')
  const second = lanes.enter('a', stopped.signal)
  const third = lanes.run('a', () => order.push('third'))
  stopped.abort()
  const leaveSecond = await second
  order.push('second gave up')
  leaveSecond()
  await new Promise(setImmediate)
  order.push('first ends')
  leaveFirst()
  await third
  expect(order).toEqual(['second gave up', 'first ends', 'third'])
})

it('is idle when all that was begun and all that waits is done', async () => {
  const { steps, lanes, piece } = setup()
  const pieces = ['one', 'two', 'three'].map((name) => piece(name))
  for (const [index, { work }] of pieces.entries()) void lanes.run(index === 2 ? 'b' : 'a', work)
  let isIdle = false
  const idle = lanes.idle().then(() => {
    isIdle = true
  })
  for (const { finish } of pieces.slice(1)) finish()
  await new Promise(setImmediate)
  const before = isIdle
  pieces[0]?.finish()
  await idle
  expect([before, isIdle, steps.filter((step) => step.endsWith('ends')).length]).toEqual([false, true, 3])
})

it('is idle at once when nothing was asked for', async () => {
  await expect(setup().lanes.idle()).resolves.toBeUndefined()
})

it('keeps the order of every key, whatever fails and however long each takes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), turns: fc.nat(5), fails: fc.boolean() }), {
        maxLength: 30,
      }),
      async (works) => {
        const { lanes } = setup()
        let failures = 0
        const done: Record<string, number[]> = {}
        const running = new Map<string, number>()
        let most = 0
        for (const [index, { key, turns, fails }] of works.entries()) {
          const work = async (): Promise<void> => {
            running.set(key, (running.get(key) ?? 0) + 1)
            most = Math.max(most, running.get(key) ?? 0)
            for (let turn = 0; turn < turns; turn++) await Promise.resolve()
            running.set(key, (running.get(key) ?? 0) - 1)
            ;(done[key] ??= []).push(index)
            if (fails) throw new Error(`${index}`)
          }
          lanes.run(key, work).catch(() => (failures += 1))
        }
        await lanes.idle()
        // The caller is notified a moment later.
        await new Promise(setImmediate)
        const expected = Object.fromEntries(
          [...new Set(works.map(({ key }) => key))].map((key) => [
            key,
            works.flatMap((work, index) => (work.key === key ? [index] : [])),
          ]),
        )
        expect([done, most <= 1, failures]).toEqual([expected, true, works.filter(({ fails }) => fails).length])
      },
    ),
    { numRuns: 200 },
  )
})
