import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Channel } from '../../src/channels/types.js'
import { MAX_OPEN_QUESTIONS } from '../../src/approvals/approval-service.js'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { until } from '../kit/waiting.js'
import { BASH, createStage, SECRET, START, TIMEOUT_MS } from './stage.js'

const LATE = 'Nobody answered within 10 min, so it was denied: Bash: npm install'

describeEngines('what an agent asks', (engine) => {
  it('waits on record, is told in its run and asked in its conversation', async () => {
    const { store, work, told, ask, service, clock, run } = await createStage(await engine.createStore())
    const { approval, answer } = await ask()
    const question = await store.outbox.get(approval.id)
    await until(() => told.length > 0, 'the notice')
    const noticed = [...told]
    clock.now += 5
    await service.answer(approval.id, { decision: 'allow', by: 'ben' })
    const short = approval.id.slice(0, 8)
    expect([approval, question, noticed, await answer, told, await store.approvals.get(approval.id)]).toEqual([
      {
        id: expect.any(String),
        messageId: work.message.id,
        runId: run.id,
        conversationId: work.conversation.id,
        backend: 'claude',
        ...BASH,
        summary: 'Bash: npm install',
        subject: 'npm install',
        state: 'asked',
        askedAt: START,
        deadline: START + TIMEOUT_MS,
      },
      expect.objectContaining({
        address: 'a',
        state: 'pending',
        expiresAt: START + TIMEOUT_MS,
        reply: {
          text: [
            '🔐 claude wants to use Bash:',
            '```',
            'command: npm install',
            'description: Installs',
            '```',
            `Allow it with /approve ${short}, or deny it with /deny ${short}. /approve ${short} always allows exactly this from now on. It is denied if nobody answers within 10 min.`,
          ].join('\n'),
          notes: [],
          isError: false,
          question: { id: approval.id, canRemember: true },
          author: 'ann',
        },
      }),
      [`Waits for an answer (${short}): Bash: npm install`],
      { isAllowed: true },
      [...noticed, 'Allowed by ben: Bash: npm install'],
      { ...approval, state: 'allowed', answeredAt: START + 5, answeredBy: 'ben' },
    ])
  })

  it('is asked by the demo agent under its own name', async () => {
    const { store, openService, run, ask, abort } = await createStage(await engine.createStore())
    const config = { approvalTimeoutMs: TIMEOUT_MS, agentBackend: 'claude', isDemoAgent: true } as const
    const { approval, answer } = await ask(
      BASH,
      openService({ config }).approverFor(run, () => {}),
    )
    const question = await store.outbox.get(approval.id)
    abort.abort()
    await answer
    expect([approval.backend, question?.reply.text.split('\n')[0]]).toEqual(['claude', '🔐 demo wants to use Bash:'])
  })

  it('names no commands where the channel offers the answers, but what is more than it shows', async () => {
    const { store, openService, run, ask, abort } = await createStage(await engine.createStore())
    const channel = { name: 'test', offersAnswers: true } as Channel
    const asking = openService({ channels: [channel] }).approverFor(run, () => {})
    const asked = [
      await ask(BASH, asking),
      await ask({ toolName: 'Edit', toolInput: { file_path: '/srv/a', new_string: 'b' } }, asking),
    ]
    const questions = await Promise.all(asked.map(({ approval }) => store.outbox.get(approval.id)))
    abort.abort()
    await Promise.all(asked.map(({ answer }) => answer))
    expect(questions.map((question) => question?.reply.text)).toEqual([
      expect.stringMatching(/\nIt is denied if nobody answers within 10 min\.$/),
      expect.stringMatching(
        /\n"Always" allows anything it does to this file\. It is denied if nobody answers within 10 min\.$/,
      ),
    ])
  })

  it('is refused with the reason of the person who refuses it', async () => {
    const { service, ask, told } = await createStage(await engine.createStore())
    const first = await ask()
    await service.answer(first.approval.id, { decision: 'deny', by: 'ben', message: 'Use pnpm.' })
    const second = await ask()
    await service.answer(second.approval.id, { decision: 'deny', by: 'ben' })
    expect([await first.answer, await second.answer, told[1]]).toEqual([
      { isAllowed: false, message: 'Use pnpm.' },
      { isAllowed: false, message: 'The person who was asked denied this.' },
      'Denied by ben: Bash: npm install',
    ])
  })

  it('is answered once: a second answer is told who was first', async () => {
    const { service, ask, store } = await createStage(await engine.createStore())
    const { approval, answer } = await ask()
    await service.answer(approval.id, { decision: 'allow', by: 'ben' })
    const late = service.answer(approval.id, { decision: 'deny', remember: 'tool', by: 'cleo' })
    await expect(late).rejects.toMatchObject({ code: 'request_invalid' })
    const later = service.answer(approval.id, { decision: 'deny', by: 'cleo' })
    await expect(later).rejects.toMatchObject({
      code: 'conflict',
      message: 'Too late. Allowed by ben: Bash: npm install',
    })
    await expect(service.answer('none', { decision: 'deny', by: 'cleo' })).rejects.toMatchObject({ code: 'not_found' })
    expect([await answer, await store.approvalRules.list({}, 9)]).toEqual([{ isAllowed: true }, []])
  })

  it('is refused at its deadline, and agent and person are notified', async () => {
    const { ask, clock, notes, told, store } = await createStage(await engine.createStore())
    const { approval, answer } = await ask()
    clock.now += TIMEOUT_MS
    expect([await answer, notes, told.at(-1), (await store.approvals.get(approval.id))?.state]).toEqual([
      {
        isAllowed: false,
        message:
          'Nobody answered within 10 min, so it was denied. Go on without it, or end with what you would do and why.',
      },
      [`${LATE}.`],
      LATE,
      'expired',
    ])
  })

  it('is withdrawn with its unsent question when the agent no longer waits', async () => {
    const { ask, abort, store } = await createStage(await engine.createStore())
    const { approval, answer } = await ask()
    abort.abort()
    expect([
      await answer,
      (await store.approvals.get(approval.id))?.state,
      (await store.outbox.get(approval.id))?.state,
    ]).toEqual([{ isAllowed: false, message: expect.any(String) }, 'withdrawn', 'dropped'])
  })

  it('is withdrawn in the transaction that ends its run', async () => {
    const { ask, work, run, queue, store } = await createStage(await engine.createStore())
    const { approval, answer } = await ask()
    const result = { isError: false, durationMs: 1, finalOutput: 'Done' }
    await queue.settle(work, { kind: 'answered', run: { id: run.id, result } })
    expect([(await store.approvals.get(approval.id))?.state, (await answer).isAllowed]).toEqual(['withdrawn', false])
  })

  it('is withdrawn when its gateway dies, and asked again when another takes the message over', async () => {
    const { ask, queue, clock, store, service, run } = await createStage(await engine.createStore())
    const { approval } = await ask()
    clock.now += 2_000
    const again = await queue.claim(['test'], {}, () => ({ id: 'second', backend: 'claude', directory: '/srv' }))
    const state = (await store.approvals.get(approval.id))?.state
    const second = await ask(
      BASH,
      service.approverFor({ ...run, id: 'second' }, () => {}),
    )
    expect([again?.wasInterrupted, state, second.approval]).toMatchObject([
      true,
      'withdrawn',
      { runId: 'second', state: 'asked' },
    ])
    await service.answer(second.approval.id, { decision: 'allow', by: 'ann' })
    await second.answer
  })

  it('does not hold up other conversations', async () => {
    const { ask, service, begin } = await createStage(await engine.createStore())
    const first = await ask()
    const other = await begin('b')
    const second = await ask(
      BASH,
      service.approverFor(other.run, () => {}),
    )
    await service.answer(second.approval.id, { decision: 'allow', by: 'ann' })
    expect(await second.answer).toEqual({ isAllowed: true })
    await service.answer(first.approval.id, { decision: 'deny', by: 'ann' })
    await first.answer
  })

  it('can be answered at another gateway on the same database', async () => {
    const location = await engine.createLocation()
    const { ask, openService } = await createStage(await openTestStore(location))
    const { approval, answer } = await ask()
    const other = openService({ store: await openTestStore(location) })
    await other.answer(approval.id, { decision: 'allow', by: 'ben' })
    expect(await answer).toEqual({ isAllowed: true })
  })

  it('has exactly one answer, whoever answers where and when', async () => {
    const location = await engine.createLocation()
    const { ask, openService, store } = await createStage(await openTestStore(location))
    // Two connections of one process to a SQLite file would block each other.
    const second = engine.name === 'sqlite' ? store : await openTestStore(location)
    const gateways = [openService(), openService({ store: second })]
    const people = fc.record({ gateway: fc.nat(1), decision: fc.constantFrom('allow', 'deny') })
    await fc.assert(
      fc.asyncProperty(fc.array(people, { minLength: 2, maxLength: 6 }), async (answers) => {
        const { approval, answer } = await ask()
        const outcomes = await Promise.all(
          answers.map(async ({ gateway, decision }, index) => {
            const answered = gateways[gateway]?.answer(approval.id, { decision, by: `person ${index}` })
            return await answered?.then(() => index).catch(() => undefined)
          }),
        )
        const winners = outcomes.filter((index) => index !== undefined)
        const winner = answers[winners[0] ?? -1]
        expect([
          winners.length,
          (await answer).isAllowed,
          (await store.approvals.get(approval.id))?.answeredBy,
        ]).toEqual([1, winner?.decision === 'allow', `person ${winners[0]}`])
      }),
      { numRuns: 15 },
    )
  })

  it('is refused at once if too many wait, and asked once one of them is answered', async () => {
    const { ask, service, run } = await createStage(await engine.createStore())
    const asking = service.approverFor(run, () => {})
    const asked = []
    for (let count = 0; count < MAX_OPEN_QUESTIONS; count += 1) asked.push(await ask(BASH, asking))
    const refused = await asking.approve(BASH, new AbortController().signal)
    const { approval, answer } = asked[0] ?? (await ask())
    await service.answer(approval.id, { decision: 'deny', by: 'ben' })
    await answer
    const { approval: next } = await ask(BASH, asking)
    expect([refused, next.state]).toEqual([
      { isAllowed: false, message: expect.stringContaining('10 questions wait') },
      'asked',
    ])
  })

  it('is refused unasked if its run has ended', async () => {
    const { work, run, queue, store, service } = await createStage(await engine.createStore())
    await queue.settle(work, { kind: 'handed-back', runId: run.id })
    const { approve } = service.approverFor(run, () => {})
    const answer = await approve(BASH, new AbortController().signal)
    expect([answer.isAllowed, await store.approvals.list({}, 9)]).toEqual([false, []])
  })

  it('is refused unasked if the store is unavailable', async () => {
    const store = await engine.createStore()
    const { run, openService } = await createStage(store)
    const broken = { ...store, approvalRules: { allows: () => Promise.reject(new Error('away')) } }
    const service = openService({ store: broken as unknown as typeof store })
    const { approve } = service.approverFor(run, () => {})
    expect(await approve(BASH, new AbortController().signal)).toEqual({
      isAllowed: false,
      message: 'This was refused, since nobody could be asked.',
    })
  })
})

describeEngines('what is remembered', (engine) => {
  it('is exactly this, in this project', async () => {
    const { ask, service, run, store } = await createStage(await engine.createStore(), { projectId: 'site' })
    const { approval, answer } = await ask()
    await service.answer(approval.id, { decision: 'allow', remember: 'this', by: 'ben' })
    await answer
    const { signal } = new AbortController()
    const same = { toolName: 'Bash', toolInput: { command: 'npm install', description: 'Once more', timeout: 5 } }
    const again = await service.approverFor(run, () => {}).approve(same, signal)
    const longer = await ask({ toolName: 'Bash', toolInput: { command: 'npm install evil' } })
    const inBackground = await ask({ toolName: 'Bash', toolInput: { command: 'npm install', run_in_background: true } })
    for (const other of [longer, inBackground]) {
      await service.answer(other.approval.id, { decision: 'deny', by: 'ben' })
      await other.answer
    }
    expect([again, await store.approvalRules.list({}, 9)]).toEqual([
      { isAllowed: true },
      [
        {
          id: expect.any(String),
          projectId: 'site',
          backend: 'claude',
          toolName: 'Bash',
          subject: 'npm install',
          createdAt: START,
          createdBy: 'ben',
        },
      ],
    ])
  })

  it('covers the whole tool if the person said so', async () => {
    const { ask, service, run } = await createStage(await engine.createStore())
    const { approval } = await ask()
    await service.answer(approval.id, { decision: 'allow', remember: 'tool', by: 'ben' })
    const { signal } = new AbortController()
    const { approve } = service.approverFor(run, () => {})
    expect(await approve({ toolName: 'Bash', toolInput: { command: 'rm -rf build' } }, signal)).toEqual({
      isAllowed: true,
    })
  })

  it('never covers an input with a secret, which is stored nowhere', async () => {
    const { ask, service, store } = await createStage(await engine.createStore())
    const { approval, answer } = await ask({ toolName: 'Bash', toolInput: { command: `curl -H ${SECRET} x` } })
    const refused = service.answer(approval.id, { decision: 'allow', remember: 'this', by: 'ben' })
    await expect(refused).rejects.toMatchObject({ code: 'request_invalid' })
    await service.answer(approval.id, { decision: 'allow', by: 'ben' })
    const question = await store.outbox.get(approval.id)
    expect([
      approval.subject,
      approval.summary,
      JSON.stringify([approval, question]).includes(SECRET),
      question?.reply.question,
      await answer,
    ]).toEqual([
      undefined,
      'Bash: curl -H [secret] x',
      false,
      { id: approval.id, canRemember: false },
      { isAllowed: true },
    ])
  })
})

describeEngines('a question that was shown', (engine) => {
  it('is closed where it was shown, even if its gateway has died', async () => {
    const { ask, service, ended, store, clock, queue } = await createStage(await engine.createStore())
    const [first, second] = [await ask(), await ask()]
    for (const { approval } of [first, second]) {
      const delivery = await store.outbox.claim('g', ['test'], clock.now, 100)
      if (delivery) await store.outbox.settle(delivery, 'delivered', null, clock.now)
      expect(delivery?.id).toEqual(approval.id)
    }
    await service.answer(first.approval.id, { decision: 'allow', by: 'ben' })
    await until(() => ended.length === 1, 'the first end')
    clock.now += 2_000
    await queue.claim(['test'])
    service.closeQuestions()
    await until(() => ended.length === 2, 'the second end')
    const block = '```\ncommand: npm install\ndescription: Installs\n```'
    expect(ended).toEqual([
      {
        id: first.approval.id,
        address: 'a',
        text: `🔐 claude wants to use Bash:\n${block}\nAllowed by ben.`,
      },
      {
        id: second.approval.id,
        address: 'a',
        text: expect.stringContaining('No longer asked'),
      },
    ])
  })
})
