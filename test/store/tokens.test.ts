import { expect, it } from 'vitest'
import type { TokenRecord } from '../../src/store/tokens.js'
import { describeEngines } from '../kit/engines.js'

const FIRST: TokenRecord = { id: 'one', name: 'First', scope: 'admin', createdAt: 1000 }
const SECOND: TokenRecord = {
  id: 'two',
  name: 'Second',
  scope: 'read',
  projects: ['a', 'b'],
  createdAt: 2000,
  expiresAt: 9000,
}

describeEngines('tokens', ({ createStore }) => {
  it('are listed as they were added, newest first, without their hashes', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'hash-1')
    await tokens.add(SECOND, 'hash-2')
    expect(await tokens.list()).toEqual([SECOND, FIRST])
  })

  it('are found by their hash', async () => {
    const { tokens } = await createStore()
    await tokens.add(SECOND, 'hash-2')
    expect([await tokens.find('hash-2'), await tokens.find('hash-1')]).toEqual([
      { ...SECOND, hash: 'hash-2' },
      undefined,
    ])
  })

  it('are found only by the new hash once it was replaced', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'old')
    await tokens.used('one', 3000)
    const outcomes = [await tokens.replace('one', 'new'), await tokens.replace('none', 'other')]
    expect([outcomes, await tokens.find('old'), await tokens.find('new')]).toEqual([
      [true, false],
      undefined,
      { ...FIRST, hash: 'new' },
    ])
  })

  it('are found by a login until it is removed or the token gets another hash', async () => {
    const { tokens } = await createStore()
    await tokens.add(SECOND, 'hash-2')
    await tokens.add(FIRST, 'hash-1')
    for (const hash of ['login-1', 'login-2'])
      await tokens.addLogin({ hash, tokenHash: 'hash-1', expiresAt: 8000 }, 1000)
    await tokens.addLogin({ hash: 'login-3', tokenHash: 'hash-2', expiresAt: 99_000 }, 1000)
    await tokens.removeLogin('login-2')
    const found = [await tokens.find('login-1'), await tokens.find('login-2'), await tokens.find('login-3')]
    const hashes = await tokens.hashes()
    await tokens.replace('one', 'new')
    expect([found, hashes, await tokens.find('login-1'), await tokens.hashes()]).toEqual([
      [{ ...FIRST, hash: 'login-1', expiresAt: 8000 }, undefined, { ...SECOND, hash: 'login-3' }],
      new Map([
        ['hash-1', 'hash-1'],
        ['hash-2', 'hash-2'],
        ['login-1', 'hash-1'],
        ['login-3', 'hash-2'],
      ]),
      undefined,
      new Map([
        ['hash-2', 'hash-2'],
        ['new', 'new'],
        ['login-3', 'hash-2'],
      ]),
    ])
  })

  it('have fifty logins at most, and none that has ended', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'hash')
    for (let n = 1; n <= 52; n++) {
      await tokens.addLogin({ hash: `login-${n}`, tokenHash: 'hash', expiresAt: 1000 + n }, 0)
    }
    const found = [await tokens.find('login-2'), (await tokens.find('login-3'))?.id, (await tokens.hashes()).size]
    await tokens.addLogin({ hash: 'last', tokenHash: 'hash', expiresAt: 5000 }, 1052)
    expect([found, await tokens.hashes()]).toEqual([
      [undefined, 'one', 51],
      new Map([
        ['hash', 'hash'],
        ['last', 'hash'],
      ]),
    ])
  })

  it('know when they were used', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'hash-1')
    await tokens.used('one', 3000)
    expect(await tokens.list()).toEqual([{ ...FIRST, usedAt: 3000 }])
  })

  it('exist as long as one has not expired', async () => {
    const { tokens } = await createStore()
    const answers = [await tokens.hasAny(0)]
    await tokens.add(SECOND, 'hash-2')
    answers.push(await tokens.hasAny(8999), await tokens.hasAny(9000))
    await tokens.add(FIRST, 'hash-1')
    answers.push(await tokens.hasAny(9000))
    expect(answers).toEqual([false, true, false, true])
  })

  it('are gone once removed', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'hash-1')
    expect([await tokens.remove('one'), await tokens.remove('one'), await tokens.list()]).toEqual([true, false, []])
  })

  it('cannot share a hash', async () => {
    const { tokens } = await createStore()
    await tokens.add(FIRST, 'hash-1')
    await expect(tokens.add(SECOND, 'hash-1')).rejects.toThrow(/unique/i)
  })
})
