import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tokensCreate, tokensList, tokensRevoke, tokensRotate } from '../../../src/cli/commands/tokens.js'
import { hashOf, issueToken } from '../../../src/service/auth.js'
import { writeTokenFile } from '../../../src/service/token-file.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { openTestStore } from '../../kit/engines.js'

const START_AT = Date.UTC(2026, 0, 2, 3, 4, 5)
const DAY_MS = 24 * 3_600_000

describe('tokens create', () => {
  it('prints the token once, stores its hash and records who created it', async () => {
    const { dependencies, store } = await setup()
    await store.projects.put({ id: 'site', directory: '/' }, 'api', START_AT)
    const printed = await tokensCreate(dependencies, { name: 'CI', scope: 'run', projects: ['site'], days: 30 })
    const [token = '', advice] = printed.split('\n')
    const id = expect.any(String)
    expect([advice, await store.tokens.find(hashOf(token)), await store.audit.list(9)]).toEqual([
      'It is shown only once. Keep it where others cannot read it.',
      {
        id,
        name: 'CI',
        scope: 'run',
        projects: ['site'],
        createdAt: START_AT,
        expiresAt: START_AT + 30 * DAY_MS,
        hash: hashOf(token),
      },
      [{ id, at: START_AT, actor: 'terminal', action: 'token.create', subject: id, detail: 'CI: run, site' }],
    ])
  })

  it('refuses a project that is not there, a time and a name that make no sense', async () => {
    const { dependencies, store } = await setup()
    const wrong = [
      { name: 'CI', scope: 'run', projects: ['nope'] },
      { name: 'CI', scope: 'run', days: -1 },
      { name: 'two\nlines', scope: 'run' },
    ] as const
    const problems = await Promise.all(
      wrong.map(({ ...token }) => tokensCreate(dependencies, token as never).catch((error: Error) => error.message)),
    )
    expect([problems, await store.tokens.list()]).toEqual([
      [
        'There is no project nope. There are no projects yet.',
        'A token can be valid for 1 to 3650 days. Omit the days for one that never expires.',
        'A token needs a name of 1 to 100 characters, without control characters.',
      ],
      [],
    ])
  })
})

describe('tokens list', () => {
  it('shows rights, age, use and expiry', async () => {
    const { dependencies, store } = await setup()
    await tokensCreate(dependencies, { name: 'Phone', scope: 'read', days: 2 })
    const [token] = await store.tokens.list()
    await store.tokens.used(token?.id ?? '', START_AT + 60_000)
    const options = { limit: 50, isJson: false, width: 120, now: START_AT + 90_000 }
    const lines = (await tokensList(store, options)).split('\n').map((line) => line.split(/ {2,}/))
    expect(lines).toEqual([
      ['ID', 'SCOPE', 'PROJECTS', 'AGE', 'USED', 'EXPIRES', 'NAME'],
      [token?.id.slice(0, 8), 'read', 'all', '90 s', '30 s ago', 'in 47 h', 'Phone'],
    ])
  })

  it('says so if there are none', async () => {
    const { store } = await setup()
    const options = { limit: 50, isJson: false, width: 120, now: START_AT }
    expect(await tokensList(store, options)).toBe('There are no tokens. "aetheel tokens create" creates one.')
  })
})

describe('tokens revoke', () => {
  it('makes a token worth nothing, and takes away the file that holds it', async () => {
    const { dependencies, store, home, addFirst } = await setup()
    await addFirst()
    const printed = await tokensRevoke(dependencies, 'first')
    expect([printed, await store.tokens.list(), existsSync(join(home, 'http-token'))]).toEqual([
      'Revoked the token first.',
      [],
      false,
    ])
  })

  it('leaves the file of another token alone', async () => {
    const { dependencies, home, addFirst } = await setup()
    const first = await addFirst()
    await tokensCreate(dependencies, { name: 'CI', scope: 'run' })
    await tokensRevoke(dependencies, 'CI')
    expect(readFileSync(join(home, 'http-token'), 'utf8')).toBe(`${first}\n`)
  })

  it('asks for more if two match, and says so if none does', async () => {
    const { dependencies } = await setup()
    for (const scope of ['read', 'run'] as const) await tokensCreate(dependencies, { name: 'CI', scope })
    const problems = await Promise.all(
      ['CI', 'none'].map((id) => tokensRevoke(dependencies, id).catch((error: Error) => error.message)),
    )
    expect(problems).toEqual([
      'More than one token matches CI. Type more of its id.',
      'There is no token none. "aetheel tokens list" lists them.',
    ])
  })
})

describe('tokens rotate', () => {
  it('gives a token another secret with the same rights', async () => {
    const { dependencies, store } = await setup()
    const [old = ''] = (await tokensCreate(dependencies, { name: 'CI', scope: 'run' })).split('\n')
    const [replacement = ''] = (await tokensRotate(dependencies, 'CI')).split('\n')
    expect([await store.tokens.find(hashOf(old)), await store.tokens.find(hashOf(replacement))]).toEqual([
      undefined,
      expect.objectContaining({ name: 'CI', scope: 'run' }),
    ])
  })

  it('writes the first token to its file again, and prints it nowhere', async () => {
    const { dependencies, store, home, addFirst } = await setup()
    const first = await addFirst()
    const printed = await tokensRotate(dependencies, 'first')
    const token = readFileSync(join(home, 'http-token'), 'utf8').trim()
    expect([token === first, printed, (await store.tokens.find(hashOf(token)))?.name]).toEqual([
      false,
      `The new token is in ${join(home, 'http-token')}. The previous token no longer works.`,
      'first',
    ])
  })
})

async function setup() {
  const home = temporaryDirectory()
  const store = await openTestStore({ file: join(home, 'aetheel.db') })
  const dependencies = { store, home, now: () => START_AT, newId: randomUUID }
  const addFirst = async (): Promise<string> => {
    const { token } = await issueToken(store.tokens, { name: 'first', scope: 'admin' }, dependencies)
    writeTokenFile(home, token)
    return token
  }
  return { dependencies, store, home, addFirst }
}
