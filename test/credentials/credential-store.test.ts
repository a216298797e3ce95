import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CredentialStore, GLOBAL_OWNER } from '../../src/credentials/credential-store.js'
import { KeyRing } from '../../src/credentials/key-ring.js'
import { createScrubber, MARK } from '../../src/credentials/scrubber.js'
import type { Store } from '../../src/store/store.js'
import { describeEngines, type TestEngine } from '../kit/engines.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describeEngines('the credential store', (engine) => {
  it('gives a project its own credentials and those of all, its own first', async () => {
    const { credentials } = await setup(engine)
    await credentials.set(GLOBAL_OWNER, 'NPM_TOKEN', 'for everybody', 'variable')
    await credentials.set(GLOBAL_OWNER, 'GIT_KEY', 'line one\nline two\n', 'file')
    await credentials.set('site', 'NPM_TOKEN', 'for the site', 'variable')
    await credentials.set('shop', 'SHOP_KEY', `it's "ö" 🔑 \\`, 'variable')
    const key = { name: 'GIT_KEY', kind: 'file', value: 'line one\nline two\n' }
    expect([
      await credentials.valuesFor('site'),
      await credentials.valuesFor('shop'),
      await credentials.valuesFor(),
      await credentials.valuesFor('unknown'),
    ]).toEqual([
      [key, { name: 'NPM_TOKEN', kind: 'variable', value: 'for the site' }],
      [
        key,
        { name: 'NPM_TOKEN', kind: 'variable', value: 'for everybody' },
        { name: 'SHOP_KEY', kind: 'variable', value: `it's "ö" 🔑 \\` },
      ],
      [key, { name: 'NPM_TOKEN', kind: 'variable', value: 'for everybody' }],
      [key, { name: 'NPM_TOKEN', kind: 'variable', value: 'for everybody' }],
    ])
  })

  it('shows everything of a credential except its value', async () => {
    const { credentials, clock } = await setup(engine)
    await credentials.set('site', 'NPM_TOKEN', 'first value', 'variable')
    clock.now += 5
    await credentials.set('site', 'NPM_TOKEN', 'second value', 'file')
    await credentials.set(GLOBAL_OWNER, 'A_TOKEN', 'another value', 'variable')
    const global = { owner: '', name: 'A_TOKEN', kind: 'variable', createdAt: NOW + 5, updatedAt: NOW + 5 }
    const own = { owner: 'site', name: 'NPM_TOKEN', kind: 'file', createdAt: NOW, updatedAt: NOW + 5 }
    expect([
      await credentials.list(),
      await credentials.list('site'),
      await credentials.list(GLOBAL_OWNER),
      await credentials.list('shop'),
    ]).toEqual([[global, own], [own], [global], []])
  })

  it('keeps no value readable', async () => {
    const { credentials, store } = await setup(engine)
    await credentials.set('site', 'NPM_TOKEN', 'a secret value', 'variable')
    const rows = JSON.stringify(await store.credentials.list())
    expect([rows.includes('secret value'), createScrubber(['a secret value']).scrub(rows) === rows]).toEqual([
      false,
      true,
    ])
  })

  it.each(['', 'lower', '1A', 'A-B', 'A B', 'Ä', 'A\n', 'A'.repeat(101)])('refuses the name %j', async (name) => {
    const { credentials } = await setup(engine)
    await expect(credentials.set('site', name, 'some value', 'variable')).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringMatching(/^A credential name has at most 100 capital letters, /),
    })
  })

  it.each(['PATH', 'HOME', 'PWD', 'NODE_OPTIONS', 'LD_PRELOAD', 'DYLD_INSERT_LIBRARIES', 'AETHEEL_HOME', 'LD_'])(
    'refuses the reserved name %s',
    async (name) => {
      const { credentials } = await setup(engine)
      await expect(credentials.set('site', name, 'some value', 'variable')).rejects.toMatchObject({
        code: 'request_invalid',
        message: `${name} controls how programs run and cannot be a credential. Use another name.`,
      })
    },
  )

  it.each([
    ['is too short to be hidden', '12345', /^The value needs at least 6 characters/],
    ['is too short except for white space', ' 12345\n', /^The value needs at least 6 characters/],
    ['is too large', 'ä'.repeat(32 * 1024 + 1), /^The value is larger than 64 KB/],
    ['has a NUL', 'secret\0value', /^The value contains a NUL/],
    ['is no text', 'secret\uD800value', /^The value is not valid text/],
  ])('refuses a value that %s, without quoting it', async (_, value, message) => {
    const { credentials } = await setup(engine)
    await expect(credentials.set('site', 'A_TOKEN', value, 'variable')).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringMatching(message),
    })
  })

  it('accepts the longest name and the largest value', async () => {
    const { credentials } = await setup(engine)
    const [name, value] = ['_'.repeat(100), 'ä'.repeat(32 * 1024)]
    await credentials.set('site', name, value, 'file')
    expect((await credentials.valuesFor('site'))[0]?.value === value).toBe(true)
  })

  it('refuses an unknown project', async () => {
    const { credentials } = await setup(engine)
    await expect(credentials.set('nowhere', 'A_TOKEN', 'some value', 'variable')).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is no project nowhere. Check its id, or omit it for all projects.',
    })
  })

  it('removes one, or all of a project', async () => {
    const { credentials, store } = await setup(engine)
    for (const owner of ['site', 'shop', GLOBAL_OWNER]) {
      await credentials.set(owner, 'A_TOKEN', 'some value', 'variable')
      await credentials.set(owner, 'B_TOKEN', 'some value', 'variable')
    }
    await credentials.remove('site', 'A_TOKEN')
    await store.credentials.removeAllOf('shop')
    await expect(credentials.remove('site', 'A_TOKEN')).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is no credential A_TOKEN of the project site. List them with "aetheel credentials list".',
    })
    expect((await credentials.list()).map(({ owner, name }) => `${owner}/${name}`)).toEqual([
      '/A_TOKEN',
      '/B_TOKEN',
      'site/B_TOKEN',
    ])
  })

  it('seals everything with a new key, drops the old one, and changes no value', async () => {
    const { credentials, store, keyFile } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    await credentials.set(GLOBAL_OWNER, 'B_TOKEN', 'value two', 'file')
    const [rowsBefore, fileBefore] = [await store.credentials.list(), readKeyIds(keyFile)]
    const [valuesBefore, listBefore] = [await credentials.valuesFor('site'), await credentials.list()]
    const count = await credentials.rotate()
    const [rowsAfter, fileAfter] = [await store.credentials.list(), readKeyIds(keyFile)]
    expect({
      count,
      values: await credentials.valuesFor('site'),
      list: await credentials.list(),
      keysInUse: [...new Set(rowsAfter.map(({ keyId }) => keyId))],
      isNewKey: fileAfter[0] !== fileBefore[0],
      isResealed: rowsAfter.every(({ sealed }, index) => sealed !== rowsBefore[index]?.sealed),
    }).toEqual({
      count: 2,
      values: valuesBefore,
      list: listBefore,
      keysInUse: fileAfter,
      isNewKey: true,
      isResealed: true,
    })
  })

  it('changes nothing in a rotation when one cannot be opened', async () => {
    const { credentials, store, keyFile } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    await credentials.set('site', 'B_TOKEN', 'value two', 'variable')
    await moveRow(store, 'B_TOKEN', 'C_TOKEN')
    const before = [await store.credentials.list(), readFileSync(keyFile, 'utf8')]
    await expect(credentials.rotate()).rejects.toMatchObject({ code: 'store_corrupt' })
    expect([await store.credentials.list(), readFileSync(keyFile, 'utf8')]).toEqual(before)
  })

  it('keeps the key of an interrupted rotation', async () => {
    const { credentials, store, open } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    const cutOff = open({
      credentials: store.credentials,
      transaction: (work) =>
        store.transaction(async (tables) => {
          await work(tables)
          throw new Error('killed')
        }),
    })
    await expect(cutOff.rotate()).rejects.toThrow('killed')
    const afterwards = await credentials.valuesFor('site')
    const count = await credentials.rotate()
    expect([afterwards, count, await credentials.valuesFor('site')]).toEqual([
      [{ name: 'A_TOKEN', kind: 'variable', value: 'value one' }],
      1,
      afterwards,
    ])
  })

  it('loses nothing when credentials are set while keys are rotated', async () => {
    const { credentials, store, open } = await setup(engine)
    const other = open(store)
    const names = Array.from({ length: 12 }, (_, index) => `TOKEN_${String(index).padStart(2, '0')}`)
    await Promise.all(
      names.flatMap((name, index) => [
        credentials.set('site', name, `value of ${name}`, 'variable'),
        ...(index % 3 === 0 ? [other.rotate()] : []),
      ]),
    )
    expect((await credentials.valuesFor('site')).map(({ value }) => value)).toEqual(
      names.map((name) => `value of ${name}`),
    )
  })

  it('moves from the key file to AETHEEL_MASTER_KEY with a rotation', async () => {
    const { credentials, store, home, keyFile } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    const keyRing = new KeyRing({ home, masterKey: randomBytes(32).toString('base64') })
    const moved = new CredentialStore({ store, keyRing, scrubber: createScrubber(), now: () => NOW })
    const count = await moved.rotate()
    expect([count, await moved.valuesFor('site'), readKeyIds(keyFile)]).toEqual([
      1,
      [{ name: 'A_TOKEN', kind: 'variable', value: 'value one' }],
      [],
    ])
  })

  it.each([
    ['name', 'site', 'B_TOKEN'],
    ['project', 'shop', 'A_TOKEN'],
  ])('does not open a value whose %s was changed in the database', async (_, owner, name) => {
    const { credentials, store } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    const [row] = await store.credentials.list()
    if (row) await store.credentials.put({ ...row, owner, name }, NOW)
    await credentials.remove('site', 'A_TOKEN')
    const problem = 'It was changed or moved in the database. Set it again.'
    await expect(credentials.valuesFor(owner)).rejects.toMatchObject({
      code: 'store_corrupt',
      message: `The credential ${name} cannot be opened. ${problem}`,
    })
  })

  it('tells the scrubber what is set, what is opened, and everything at the start', async () => {
    const { credentials, store, scrubber, open } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    await credentials.set('shop', 'B_TOKEN', 'value two', 'variable')
    const [later, atStart] = [createScrubber(), createScrubber()]
    await open(store, later).valuesFor('site')
    const problems = await open(store, atStart).hideAll()
    const text = 'value one, value two'
    expect([scrubber.scrub(text), later.scrub(text), atStart.scrub(text), problems]).toEqual([
      `${MARK}, ${MARK}`,
      `${MARK}, value two`,
      `${MARK}, ${MARK}`,
      [],
    ])
  })

  it('says at the start what cannot be opened, and hides the rest', async () => {
    const { credentials, store, open } = await setup(engine)
    await credentials.set('site', 'A_TOKEN', 'value one', 'variable')
    await credentials.set('site', 'Z_TOKEN', 'value two', 'variable')
    await moveRow(store, 'A_TOKEN', 'B_TOKEN')
    const scrubber = createScrubber()
    const problems = await open(store, scrubber).hideAll()
    expect([problems.map(({ message }) => message), scrubber.scrub('value two')]).toEqual([
      [expect.stringMatching(/^The credential B_TOKEN cannot be opened\./)],
      MARK,
    ])
  })

  it('makes no change that cannot be recorded', async () => {
    const { store, credentials } = await setup(engine)
    await credentials.set('site', 'A_KEY', 'value one', 'variable')
    const before = await store.credentials.list()
    const note = (): Promise<void> => Promise.reject(new Error('The disk is full'))
    const changes = [
      () => credentials.set('site', 'A_KEY', 'value two', 'variable', note),
      () => credentials.remove('site', 'A_KEY', note),
      () => credentials.rotate(note),
    ]
    for (const change of changes) await expect(change()).rejects.toThrow('The disk is full')
    expect(await store.credentials.list()).toEqual(before)
  })
})

const NOW = 1_800_000_000_123

async function setup(engine: TestEngine) {
  const store = await engine.createStore()
  const home = temporaryDirectory()
  for (const id of ['site', 'shop']) await store.projects.put({ id, directory: '/' }, 'api', NOW)
  const clock = { now: NOW }
  const scrubber = createScrubber()
  const open = (on: Pick<Store, 'credentials' | 'transaction'>, hides = scrubber): CredentialStore =>
    new CredentialStore({ store: on, keyRing: new KeyRing({ home }), scrubber: hides, now: () => clock.now })
  return { store, home, keyFile: join(home, 'master.key'), clock, scrubber, open, credentials: open(store) }
}

async function moveRow(store: Store, from: string, to: string): Promise<void> {
  for (const row of await store.credentials.list()) {
    if (row.name !== from) continue
    await store.credentials.put({ ...row, name: to }, NOW)
    await store.credentials.remove(row.owner, from)
  }
}

function readKeyIds(file: string): string[] {
  try {
    return Object.keys((JSON.parse(readFileSync(file, 'utf8')) as { keys: object }).keys)
  } catch {
    // The file is gone.
    return []
  }
}
