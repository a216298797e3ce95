import { readdirSync } from 'node:fs'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it, type TestContext } from 'vitest'
import {
  credentialsList,
  credentialsRemove,
  credentialsRotate,
  credentialsSet,
  credentialTools,
} from '../../../src/cli/commands/credentials.js'
import { closing, openForChanges } from '../../../src/cli/open-store.js'
import { loadConfig } from '../../../src/config.js'
import { messageOf } from '../../../src/errors.js'
import type { Store } from '../../../src/store/store.js'
import { FakeTerminal } from '../fake-terminal.js'
import { SILENT_LOG } from '../../kit/log.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

describe('aetheel credentials', () => {
  it('sets the value from stdin, lists the credential without it, and removes it', async (test) => {
    const desk = new Desk(test)
    const set = await desk.set('NPM_TOKEN', 'hunter22\n')
    const values = await desk.values()
    const listed = await desk.list(false)
    const removed = await desk.change((opened) => credentialsRemove(opened, { name: 'NPM_TOKEN' }))
    expect([
      set,
      values,
      listed.split('\n').map((line) => line.trim().split(/ {2,}/)),
      removed,
      await desk.list(false),
    ]).toEqual([
      'Set NPM_TOKEN. From their next turn on, agents in all projects get it as NPM_TOKEN.',
      [{ name: 'NPM_TOKEN', kind: 'variable', value: 'hunter22' }],
      [
        ['NAME', 'KIND', 'SET', 'PROJECT'],
        ['NPM_TOKEN', 'variable', expect.stringMatching(/^\d+ s$/), '(all)'],
      ],
      'Removed NPM_TOKEN. From their next turn on, agents in all projects no longer get it.',
      'There are no credentials.',
    ])
  })

  it('keeps a file byte for byte, for one project', async (test) => {
    const desk = new Desk(test)
    const set = await desk.set('GIT_KEY', 'line one\r\nline two\n', { projectId: 'site', isFile: true })
    expect([set, await desk.values('site'), await desk.values(), JSON.parse(await desk.list(true))]).toEqual([
      'Set GIT_KEY. From their next turn on, agents in the project site get it as a file, with its path in GIT_KEY.',
      [{ name: 'GIT_KEY', kind: 'file', value: 'line one\r\nline two\n' }],
      [],
      [
        {
          project: 'site',
          name: 'GIT_KEY',
          kind: 'file',
          createdAt: expect.any(Number),
          updatedAt: expect.any(Number),
        },
      ],
    ])
  })

  it('asks for the value at a terminal, and does not show it', async (test) => {
    const desk = new Desk(test)
    const terminal = new FakeTerminal()
    const answer = desk.change((opened) =>
      credentialsSet(opened, { name: 'NPM_TOKEN', isFile: false, input: terminal.input, output: terminal.output }),
    )
    await terminal.shows('Value of NPM_TOKEN')
    terminal.input.write('hunter22\r')
    await answer
    expect([await desk.values(), terminal.screen.includes('hunter22')]).toEqual([
      [{ name: 'NPM_TOKEN', kind: 'variable', value: 'hunter22' }],
      false,
    ])
  })

  it('sets nothing when the question is cancelled', async (test) => {
    const desk = new Desk(test)
    const terminal = new FakeTerminal()
    const answer = desk
      .change((opened) =>
        credentialsSet(opened, { name: 'NPM_TOKEN', isFile: false, input: terminal.input, output: terminal.output }),
      )
      .catch(messageOf)
    await terminal.shows('Value of NPM_TOKEN')
    terminal.input.write('\u0003')
    expect([await answer, await desk.values()]).toEqual(['Cancelled: nothing was written.', []])
  })

  it('says how to give a file at a terminal', async (test) => {
    const desk = new Desk(test)
    const { input, output } = new FakeTerminal()
    await expect(
      desk.change((opened) => credentialsSet(opened, { name: 'GIT_KEY', isFile: true, input, output })),
    ).rejects.toMatchObject({
      message: '--file reads the content from stdin. Run: aetheel credentials set GIT_KEY --file < path',
    })
  })

  it.for<[string, string, string | Buffer, RegExp]>([
    ['a name that cannot be one', 'npm-token', 'hunter22', /^A credential name has at most 100 capital letters/],
    ['a value that is too short', 'NPM_TOKEN', '12345\n', /^The value needs at least 6 characters/],
    ['a value that is too large', 'NPM_TOKEN', 'a'.repeat(1_000_000), /^The value is larger than 64 KB/],
    ['bytes that are no text', 'NPM_TOKEN', Buffer.from([255, 254, 253, 1, 2, 3]), /^The value is not UTF-8 text/],
  ])('refuses %s', async ([, name, value, message], test) => {
    const desk = new Desk(test)
    await expect(desk.set(name, value)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringMatching(message),
    })
  })

  it('seals everything with a new key', async (test) => {
    const desk = new Desk(test)
    await desk.set('A_TOKEN', 'value one')
    const one = await desk.change(credentialsRotate)
    await desk.set('B_TOKEN', 'value two')
    const two = await desk.change(credentialsRotate)
    expect([
      one,
      two,
      (await desk.values()).map(({ value }) => value),
      readdirSync(desk.home).includes('master.key'),
    ]).toEqual([
      'Encrypted 1 credential with a new key, and deleted earlier keys.',
      'Encrypted 2 credentials with a new key, and deleted earlier keys.',
      ['value one', 'value two'],
      true,
    ])
  })

  it('leaves every change on record, without values', async (test) => {
    const desk = new Desk(test)
    await desk.set('A_TOKEN', 'value one', { projectId: 'site' })
    await desk.change((opened) => credentialsRemove(opened, { name: 'A_TOKEN', projectId: 'site' }))
    await desk.change(credentialsRotate)
    const entries = JSON.parse(await desk.change(async ({ store }) => JSON.stringify(await store.audit.list(10)))) as {
      action: string
    }[]
    const id: unknown = expect.any(String)
    expect(entries.toSorted((a, b) => a.action.localeCompare(b.action))).toEqual([
      { id, at: expect.any(Number), actor: 'terminal', action: 'credential.remove', subject: 'site/A_TOKEN' },
      { id, at: expect.any(Number), actor: 'terminal', action: 'credential.rotate', subject: 'all' },
      { id, at: expect.any(Number), actor: 'terminal', action: 'credential.set', subject: 'site/A_TOKEN' },
    ])
  })
})

type Opened = ReturnType<typeof credentialTools> & { store: Store }

/** A machine with a data directory and a project "site". */
class Desk {
  readonly home: string
  readonly #config

  constructor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    this.home = temporaryDirectory(onTestFinished)
    this.#config = loadConfig({ HOME: this.home, AETHEEL_HOME: this.home })
  }

  async change(work: (opened: Opened) => Promise<string>): Promise<string> {
    return closing(await openForChanges(this.#config, SILENT_LOG), async (store) => {
      await store.projects.put({ id: 'site', directory: '/' }, 'api', 1)
      return work({ store, ...credentialTools(store, this.#config, {}) })
    })
  }

  set(name: string, value: string | Buffer, options: { projectId?: string; isFile?: boolean } = {}): Promise<string> {
    const input = Readable.from([Buffer.from(value)])
    const output = new PassThrough()
    return this.change((opened) => credentialsSet(opened, { name, isFile: false, ...options, input, output }))
  }

  list(isJson: boolean): Promise<string> {
    return this.change(({ store }) => credentialsList(store, { limit: 50, isJson, width: 120, now: Date.now() }))
  }

  async values(projectId?: string): Promise<{ value: string }[]> {
    const json = await this.change(async ({ credentials }) => JSON.stringify(await credentials.valuesFor(projectId)))
    return JSON.parse(json) as { value: string }[]
  }
}
