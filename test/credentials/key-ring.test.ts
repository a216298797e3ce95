import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeyRing } from '../../src/credentials/key-ring.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const ABOUT = 'site\0NPM_TOKEN'

describe('a key ring', () => {
  it('creates a private key file when it first seals, and uses it from then on', () => {
    const { home, file } = setup()
    const hadFile = existsSync(file)
    const sealed = new KeyRing({ home }).seal('hunter22', ABOUT)
    const again = new KeyRing({ home }).seal('hunter22', ABOUT)
    expect([
      hadFile,
      statSync(file).mode & 0o777,
      readdirSync(home),
      again.keyId === sealed.keyId,
      new KeyRing({ home }).open(sealed, ABOUT),
    ]).toEqual([false, 0o600, ['master.key'], true, 'hunter22'])
  })

  it('opens what it sealed, whatever it is, and never produces the same seal twice', () => {
    const { home } = setup()
    const ring = new KeyRing({ home })
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (plain, about) => {
        const [one, two] = [ring.seal(plain, about), ring.seal(plain, about)]
        expect([ring.open(one, about), ring.open(two, about), one.sealed === two.sealed]).toEqual([plain, plain, false])
      }),
    )
  })

  it('does not open a seal that was changed anywhere', () => {
    const { home } = setup()
    const ring = new KeyRing({ home })
    const { keyId, sealed } = ring.seal('hunter22', ABOUT)
    const bytes = Buffer.from(sealed, 'base64')
    const changed = Array.from(bytes, (byte, index) => Buffer.from(bytes).fill(byte ^ 1, index, index + 1))
    const cut = Array.from(bytes, (_, length) => bytes.subarray(0, length))
    const opened = [...changed, ...cut].filter((other) => {
      const answer = outcome(() => ring.open({ keyId, sealed: other.toString('base64') }, ABOUT))
      return answer !== 'store_corrupt: It was changed or moved in the database. Set it again.'
    })
    expect(opened).toEqual([])
  })

  it('does not open a seal that was moved elsewhere', () => {
    const { home } = setup()
    const ring = new KeyRing({ home })
    const sealed = ring.seal('hunter22', ABOUT)
    expect(
      ['other\0NPM_TOKEN', 'site\0OTHER', '\0NPM_TOKEN', ''].map((about) => outcome(() => ring.open(sealed, about))),
    ).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/^store_corrupt: It was changed/)))
  })

  it('says which key is missing', () => {
    const [one, other] = [setup(), setup()]
    const sealed = new KeyRing(one).seal('hunter22', ABOUT)
    const masterKey = randomBytes(32).toString('base64')
    expect([
      outcome(() => new KeyRing(other).open(sealed, ABOUT)),
      outcome(() => new KeyRing({ ...other, masterKey }).open(sealed, ABOUT)),
    ]).toEqual([
      `config_invalid: Its key ${sealed.keyId} is not in ${other.file}. Restore the key, or set the credential again.`,
      `config_invalid: Its key ${sealed.keyId} is neither in AETHEEL_MASTER_KEY nor in ${other.file}. Restore the key, or set the credential again.`,
    ])
  })

  it.each(['640', '604', '660', '644'])('refuses a key file with the mode %s', (mode) => {
    const { home, file } = setup()
    const ring = new KeyRing({ home })
    ring.seal('hunter22', ABOUT)
    chmodSync(file, mode)
    expect(outcome(() => ring.seal('hunter22', ABOUT))).toBe(
      `config_invalid: The key file ${file} cannot be used. Other users can read it. Run "chmod 600" on it, then rotate the key.`,
    )
  })

  it.each([
    ['is empty', ''],
    ['is no JSON', '{'],
    ['has a key that is too short', '{"current":"a","keys":{"a":"c2hvcnQ="}}'],
    ['has a key under a wrong id', JSON.stringify({ current: 'a', keys: { a: randomBytes(32).toString('base64') } })],
    ['has no current key', '{"current":"a","keys":{}}'],
  ])('refuses a key file that %s, and leaves it as it is', (_, content) => {
    const { home, file } = setup()
    writeFileSync(file, content, { mode: 0o600 })
    expect([outcome(() => new KeyRing({ home }).seal('hunter22', ABOUT)), readFileSync(file, 'utf8')]).toEqual([
      expect.stringMatching(/^config_invalid: The key file .* It is damaged\. Restore a backup/),
      content,
    ])
  })

  it('refuses an invalid key file', () => {
    const { home, file } = setup()
    mkdirSync(file, 0o700)
    expect(outcome(() => new KeyRing({ home }).seal('hunter22', ABOUT))).toBe(
      `config_invalid: The key file ${file} cannot be used. It is not a file. Move it away; a new one is created.`,
    )
  })

  it('uses the key in AETHEEL_MASTER_KEY, and then creates no file', () => {
    const { home } = setup()
    const masterKey = randomBytes(32).toString('base64')
    const sealed = new KeyRing({ home, masterKey }).seal('hunter22', ABOUT)
    expect([new KeyRing({ home: setup().home, masterKey }).open(sealed, ABOUT), readdirSync(home)]).toEqual([
      'hunter22',
      [],
    ])
  })

  it('treats an empty AETHEEL_MASTER_KEY as unset', () => {
    const { home } = setup()
    new KeyRing({ home, masterKey: '' }).seal('hunter22', ABOUT)
    expect(readdirSync(home)).toEqual(['master.key'])
  })

  it.each(['secret', randomBytes(16).toString('base64'), randomBytes(32).toString('hex'), ',', 'a,b'])(
    'refuses the AETHEEL_MASTER_KEY %j without quoting it',
    (masterKey) => {
      expect(outcome(() => new KeyRing({ home: setup().home, masterKey }))).toBe(
        'config_invalid: AETHEEL_MASTER_KEY must be 32 bytes in base64. Generate one with "openssl rand -base64 32". Earlier keys may follow, separated by commas.',
      )
    },
  )

  it('opens with earlier keys behind the first of AETHEEL_MASTER_KEY, and seals with the first', () => {
    const { home } = setup()
    const [first, second] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64'))
    const old = new KeyRing({ home, masterKey: first }).seal('hunter22', ABOUT)
    const ring = new KeyRing({ home, masterKey: `${second}, ${first}` })
    const fresh = ring.seal('hunter22', ABOUT)
    expect([ring.open(old, ABOUT), new KeyRing({ home, masterKey: second }).open(fresh, ABOUT)]).toEqual([
      'hunter22',
      'hunter22',
    ])
  })

  it('seals with a new key after an advance, and drops those no longer needed', () => {
    const { home } = setup()
    const ring = new KeyRing({ home })
    const seals = [ring.seal('one', ABOUT)]
    ring.advance()
    seals.push(ring.seal('two', ABOUT))
    ring.advance()
    seals.push(ring.seal('three', ABOUT))
    const before = seals.map((sealed) => ring.open(sealed, ABOUT))
    ring.retain(new Set(seals.slice(1, 2).map(({ keyId }) => keyId)))
    const after = seals.map((sealed) => outcome(() => ring.open(sealed, ABOUT)))
    expect([before, after, readdirSync(home)]).toEqual([
      ['one', 'two', 'three'],
      [expect.stringMatching(/^config_invalid: Its key/), 'two', 'three'],
      ['master.key'],
    ])
  })

  it('removes the file when AETHEEL_MASTER_KEY has replaced it', () => {
    const { home } = setup()
    const old = new KeyRing({ home }).seal('hunter22', ABOUT)
    const ring = new KeyRing({ home, masterKey: randomBytes(32).toString('base64') })
    const opened = ring.open(old, ABOUT)
    ring.retain(new Set([ring.seal('hunter22', ABOUT).keyId]))
    expect([opened, readdirSync(home)]).toEqual(['hunter22', []])
  })
})

function setup(): { home: string; file: string } {
  const home = temporaryDirectory()
  return { home, file: join(home, 'master.key') }
}

function outcome(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return `${code}: ${message}`
  }
}
