import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { rebuildArchive } from '../../src/cli/commands/archive.js'
import { openStoreReadOnly } from '../../src/store/store.js'
import { describeEngines } from '../kit/engines.js'
import { createStage } from './stage.js'
import { SILENT_LOG } from '../kit/log.js'

describeEngines('archive', (engine) => {
  it('writes a day with everything that was said and what became of it', async () => {
    const { store, queue, say, answer, work, write, read } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Add a test.\n\n```ts\nexpect(1)\n```')
    await answer('2025-03-01T10:00:05Z', '# Done\n\nSee `a.ts`.', { notes: ['The session was lost.'] })
    await say('2025-03-01T11:00:00Z', 'Never mind')
    await work('2025-03-01T11:00:01Z', (id) => ({
      kind: 'cancelled',
      run: { id, result: { isError: true, durationMs: 1 } },
    }))
    await say('2025-03-01T12:00:00Z', 'Break')
    await work('2025-03-01T12:00:01Z', (id) => ({
      kind: 'failed',
      problem: 'exit: It broke.',
      reply: { text: 'It broke.', notes: [], isError: true },
      run: { id, result: { isError: true, durationMs: 1 } },
    }))
    await queue.drop(await say('2025-03-01T13:00:00Z', 'Forget this'))
    await say('2025-03-01T14:00:00Z', ' ')
    await say('2025-03-01T15:00:00Z', 'Are you there?', { author: 'bob' })
    const [reply] = await store.outbox.list('pending', 1)
    await store.outbox.settle(
      { id: reply?.id ?? '', fence: 0 },
      'undelivered',
      'Gone.',
      Date.parse('2025-03-01T16:00Z'),
    )

    await write('id-2')

    expect(read('2025-03-01.md')).toBe(`# 2025-03-01 \`chat\` \`room\`

Conversation \`id-2\`. Times are UTC.

## 10:00:00 \`ann\`

> Add a test.
>
> \`\`\`ts
> expect(1)
> \`\`\`

## 10:00:05 \`claude\`

run \`id-4\`, model \`opus\`

**Not delivered**

> # Done
>
> See \`a.ts\`.

Note:

> The session was lost.

## 11:00:00 \`ann\`

**Cancelled**

\`claude\`: run \`id-9\`, model \`opus\`

> Never mind

## 12:00:00 \`ann\`

**Failed**

> Break

## 12:00:01 \`claude\`

run \`id-13\`, model \`opus\`

**Error**

> It broke.

## 13:00:00 \`ann\`

**Dropped**

> Forget this

## 14:00:00 \`ann\`

**Refused**

>  

## 14:00:00 Aetheel

**Error**

> The message is empty. Write what the agent should do.

## 15:00:00 \`bob\`

**Waiting**

> Are you there?
`)
  })

  it('names the files of an answer, even if it has no text', async () => {
    const { say, answer, write, read } = await createStage(engine)
    const directory = '/srv/site'
    await say('2025-03-01T10:00:00Z', 'Draw it')
    await answer('2025-03-01T10:00:05Z', 'Here it is.', { files: [{ path: 'plot.png', directory }] })
    await say('2025-03-01T10:01:00Z', 'And the rest')
    const files = ['a`b.svg', 'reports/1.pdf'].map((path) => ({ path, directory }))
    await write(await answer('2025-03-01T10:01:05Z', '', { files }))
    const answers = read('2025-03-01.md')
      .split('\n## ')
      .filter((section) => section.includes('`claude`'))
    expect(answers.map((section) => section.split('\n\n').slice(2).join('\n\n').trim())).toEqual([
      '> Here it is.\n\nFiles: `plot.png`',
      'Files: `` a`b.svg ``, `reports/1.pdf`',
    ])
  })

  it('is readable by its owner only', async () => {
    const { say, answer, write, fileOf, directory } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Hello')
    await write(await answer('2025-03-01T10:00:05Z', 'Hi'))
    const file = fileOf('2025-03-01.md')
    const modes = [directory, dirname(dirname(file)), dirname(file), file].map((path) => statSync(path).mode & 0o777)
    expect(modes).toEqual([0o700, 0o700, 0o700, 0o600])
  })

  it('rewrites the day of a message that is answered on another day', async () => {
    const { say, answer, write, read } = await createStage(engine)
    await say('2025-03-01T23:59:59Z', 'First')
    await say('2025-03-01T23:59:59.999Z', 'Second')
    const id = await answer('2025-03-02T00:00:00Z', 'One')
    await write(id)
    await answer('2025-03-05T10:00:00Z', 'Two')
    await write(id)
    const days = ['2025-03-01.md', '2025-03-02.md', '2025-03-05.md'].map((name) => read(name).match(/^(?:>|\*).*/gm))
    expect(days).toEqual([['> First', '> Second'], ['> One'], ['> Two']])
  })

  it('does not touch unchanged days', async () => {
    const { say, answer, write, fileOf, read } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Hello')
    const id = await answer('2025-03-01T10:00:05Z', 'Hi')
    await write(id)
    await say('2025-03-03T10:00:00Z', 'Hello again')
    await write(await answer('2025-03-03T10:00:05Z', 'Hi'))
    // Reading it would correct it.
    writeFileSync(fileOf('2025-03-01.md'), 'Not looked at')
    await say('2025-03-05T10:00:00Z', 'Hello again')
    await write(await answer('2025-03-05T10:00:05Z', 'Hi'))
    expect([read('2025-03-01.md'), readdirSync(dirname(fileOf('x'))).toSorted()]).toEqual([
      'Not looked at',
      ['.written-until', '2025-03-01.md', '2025-03-03.md', '2025-03-05.md'],
    ])
  })

  it('changes nothing when it writes the same again', async () => {
    const { say, answer, write, fileOf, archive } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Hello')
    const id = await answer('2025-03-01T10:00:05Z', 'Hi')
    await write(id)
    const files = () => ['2025-03-01.md', '.written-until'].map((name) => statSync(fileOf(name)).ino)
    const before = files()
    await write(id)
    await archive.rebuild()
    expect(files()).toEqual(before)
  })

  it('catches up on the next turn', async () => {
    const { say, answer, write, fileOf } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Hello')
    const id = await answer('2025-03-01T10:00:05Z', 'Hi')
    await write(id)
    for (const day of ['03', '05', '07']) {
      await say(`2025-03-${day}T10:00:00Z`, 'Hello')
      await answer(`2025-03-${day}T10:00:05Z`, 'Hi')
    }
    await write(id)
    const days = readdirSync(dirname(fileOf('x'))).filter((name) => name.endsWith('.md'))
    expect(days.toSorted()).toEqual(['2025-03-01.md', '2025-03-03.md', '2025-03-05.md', '2025-03-07.md'])
  })

  it('warns when it cannot write, and writes it the next time', async () => {
    const { say, answer, write, read, log, directory } = await createStage(engine)
    writeFileSync(directory, 'In the way')
    await say('2025-03-01T10:00:00Z', 'Hello')
    const id = await answer('2025-03-01T10:00:05Z', 'Hi')
    await write(id)
    const warnings = log.warnings.map(([message, fields]) => [message, fields?.['conversationId']])
    rmSync(directory)
    await write(id)
    expect([warnings, read('2025-03-01.md').includes('> Hello')]).toEqual([[['archive.not-written', id]], true])
  })

  it('has written everything requested, however often and for however many conversations', async () => {
    const { say, answer, archive, read } = await createStage(engine)
    const addresses = Array.from({ length: 20 }, (_, index) => `room ${index}`)
    for (const address of addresses) {
      await say('2025-03-01T10:00:00Z', `I am in ${address}`, { address })
      const id = await answer('2025-03-01T10:00:05Z', 'So am I')
      for (let time = 0; time < 5; time += 1) archive.update({ id })
    }
    await archive.flush()
    const said = addresses.map((address) => read('2025-03-01.md', address).match(/^>.*/gm))
    expect(said).toEqual(addresses.map((address) => [`> I am in ${address}`, '> So am I']))
  })

  it('continues with updates that came while it was writing', async ({ onTestFinished }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { say, answer, archive, fileOf } = await createStage(engine)
    const idOf = async (address: string) => {
      await say('2025-03-01T10:00:00Z', 'Hello', { address })
      return answer('2025-03-01T10:00:05Z', 'Hi')
    }
    const [one, two, three] = [await idOf('one'), await idOf('two'), await idOf('three')]
    archive.update({ id: one })
    const written = archive.flush()
    archive.update({ id: two })
    await written
    // The timer of the second update, which the first write covered.
    await vi.advanceTimersByTimeAsync(60_000)
    archive.update({ id: three })
    await archive.flush()
    const days = ['one', 'two', 'three'].map((address) => existsSync(fileOf('2025-03-01.md', address)))
    expect(days).toEqual([true, true, true])
  })

  it('can be rebuilt from a read-only database, without secrets', async () => {
    const { say, answer, read, home, location, fileOf } = await createStage(engine)
    await say('2025-03-01T10:00:00Z', 'Hello')
    await answer('2025-03-02T10:00:05Z', 'Hi')
    await say('2025-03-01T10:00:00Z', 'Hello, my key is sk-12345', { address: '../..' })
    const leftover = fileOf('.2025-03-01.md.1.tmp')
    mkdirSync(dirname(leftover), { recursive: true })
    writeFileSync(leftover, 'Half a f')
    utimesSync(leftover, 0, 0)
    const store = await openStoreReadOnly(location, SILENT_LOG)
    const text = await rebuildArchive(home, store, SILENT_LOG, (day) => day.replaceAll('sk-12345', '[secret]'))
    await store.close()
    const names = readdirSync(dirname(leftover)).toSorted()
    expect([text, names, read('2025-03-01.md', '../..').match(/^>.*/gm)]).toEqual([
      `Wrote 3 days of 2 conversations to ${join(home, 'archive')}`,
      ['.written-until', '2025-03-01.md', '2025-03-02.md'],
      ['> Hello, my key is [secret]'],
    ])
  })

  it('says so when there is nothing to archive', async () => {
    const { store, home } = await createStage(engine)
    expect(await rebuildArchive(home, store, SILENT_LOG, (text) => text)).toBe('There is nothing to archive yet.')
  })
})
