import { randomBytes } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GatewayError } from '../../src/errors.js'
import { databaseFile, type Gateway } from '../../src/gateway.js'
import { MAX_MESSAGE_CHARACTERS } from '../../src/turns/limits.js'
import { lockDirectory } from '../../src/store/sqlite.js'
import { AgentScript } from '../contract/agent-script.js'
import { agentPath } from '../kit/agents.js'
import { postgresUrl } from '../kit/postgres.js'
import { ECHO_AGENT } from '../kit/agents.js'
import { Stage } from '../kit/stage.js'

async function codeAndMessage(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof GatewayError)) throw new Error(`Not refused, or not with a clear word: ${inspect(error)}`)
  return { code: error.code, message: error.message }
}

async function pragma({ store }: Gateway, text: string): Promise<void> {
  const { db } = store as unknown as { db: Kysely<unknown> }
  await sql.raw(`pragma ${text}`).execute(db)
}

describe('a database file', () => {
  it('that a kill left in the middle of a checkpoint is complete together with its log', async () => {
    const stage = new Stage(onTestFinished)
    const file = databaseFile(stage.config())
    stage.makeDirectory('data')
    const { default: Database } = await import('libsql')
    const database = new Database(`${file}.open`)
    database.pragma('journal_mode = WAL')
    database.pragma('wal_autocheckpoint = 0')
    database.exec('create table kept (text)')
    for (let number = 0; number < 50; number += 1) database.exec(`insert into kept values ('${'x'.repeat(2_000)}')`)
    // As after an interrupted checkpoint: the header with its number of pages, but none of those pages.
    copyFileSync(`${file}.open`, file)
    copyFileSync(`${file}.open-wal`, `${file}-wal`)
    database.close()
    const header = openSync(file, 'r+')
    writeSync(header, Buffer.from([0, 0, 1, 0]), 0, 4, 28)
    closeSync(header)
    const { gateway } = await stage.start()
    const { db } = gateway.store as unknown as { db: Kysely<unknown> }
    const { rows } = await sql`select count(*) as count from kept`.execute(db)
    expect(rows).toEqual([{ count: 50 }])
  })

  it('that is not a database is refused, and left untouched', async () => {
    const stage = new Stage(onTestFinished)
    const file = databaseFile(stage.config())
    stage.makeDirectory('data')
    const garbage = randomBytes(20_000)
    writeFileSync(file, garbage)
    const { code, message } = await codeAndMessage(stage.start())
    expect([code, message, readFileSync(file).equals(garbage)]).toEqual([
      'store_corrupt',
      `${file} is not a database, or it is damaged. It was not touched. Restore a backup, or move it away to start with an empty one.`,
      true,
    ])
  })

  it('that is truncated is refused, and not truncated further', async () => {
    const stage = new Stage(onTestFinished)
    const { gateway, config, channel, stop } = await stage.start({
      BACKEND_CLI_PATH: stage.executable('echo-agent', ECHO_AGENT),
    })
    for (let index = 0; index < 5; index += 1) await channel.say('a', `${index} ${'long '.repeat(10_000)}`)
    await expect.poll(() => channel.replies.length).toEqual(5)
    // So that everything is in the file itself and not in the log next to it.
    await pragma(gateway, 'wal_checkpoint(TRUNCATE)')
    await stop()
    const file = databaseFile(config)
    const half = Math.floor(statSync(file).size / 2)
    truncateSync(file, half)
    const { code } = await codeAndMessage(stage.start())
    expect([code, statSync(file).size]).toEqual(['store_corrupt', half])
  })
})

describe('a data directory', () => {
  it('that cannot be created is refused with advice', async () => {
    const stage = new Stage(onTestFinished)
    writeFileSync(join(stage.directory, 'file'), '')
    const places = [join(stage.directory, 'file', 'data'), '/proc/aetheel']
    const refusals = []
    for (const AETHEEL_HOME of places) refusals.push(await codeAndMessage(stage.start({ AETHEEL_HOME })))
    expect(refusals).toEqual(
      places.map((place) => ({
        code: 'store_unavailable',
        message: expect.stringMatching(
          new RegExp(`^The data directory ${place} cannot be created: .* Set AETHEEL_HOME to another directory\\.$`),
        ),
      })),
    )
  })

  it('with a directory in place of the database is refused with advice', async () => {
    const stage = new Stage(onTestFinished)
    const file = join(stage.directory, 'other', 'aetheel.db')
    mkdirSync(file, { recursive: true })
    expect(await codeAndMessage(stage.start({ AETHEEL_HOME: join(stage.directory, 'other') }))).toEqual({
      code: 'store_unavailable',
      message: `${file} is a directory, not a database file. Move it away, or set AETHEEL_HOME to another directory.`,
    })
  })

  it('that a gateway uses is refused until it is released', async () => {
    const stage = new Stage(onTestFinished)
    const file = join(stage.directory, 'data', 'gateway.lock')
    const release = await lockDirectory(file)
    const refusal = await codeAndMessage(lockDirectory(file))
    release()
    const releaseAgain = await lockDirectory(file)
    releaseAgain()
    expect(refusal).toEqual({
      code: 'gateway_running',
      message: `Another gateway uses ${join(stage.directory, 'data')}. Stop it, or give this one another AETHEEL_HOME.`,
    })
  })
})

describe('a full disk', () => {
  /** Limits it to its present size, or lifts the limit. */
  async function limit(gateway: Gateway, isFull: boolean): Promise<void> {
    await pragma(gateway, `max_page_count = ${isFull ? 1 : 1_000_000_000}`)
  }

  const LONG = 'long '.repeat(40_000)

  it('refuses a message, so that the platform sends it again, and accepts it once there is room', async () => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: stage.executable('echo-agent', ECHO_AGENT) })
    await channel.say('a', 'before')
    await expect.poll(() => channel.texts()).toEqual(['before'])
    await limit(gateway, true)
    const refusal = await codeAndMessage(channel.say('a', LONG, 'p1'))
    await limit(gateway, false)
    const acceptance = await channel.say('a', LONG, 'p1')
    await expect.poll(() => channel.replies.length).toEqual(2)
    expect([refusal, acceptance, channel.texts()[1] === LONG]).toEqual([
      {
        code: 'store_full',
        message: expect.stringContaining('the disk is full. Nothing was changed. Free some disk space'),
      },
      expect.objectContaining({ status: 'accepted', position: 0 }),
      true,
    ])
  })

  it('while an agent works does not lose its answer, which goes out when there is room', async () => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: agentPath('fake-agent.sh') })
    const script = new AgentScript('claude', stage.directory)
    const steps = [{ start: true }, { touch: 'begun' }, { waitFor: 'full' }, { answer: LONG }] as const
    await channel.say('a', script.prompt([...steps]))
    await expect.poll(() => existsSync(join(stage.workingDir, 'begun'))).toEqual(true)
    await limit(gateway, true)
    writeFileSync(join(stage.workingDir, 'full'), '')
    await expect.poll(() => stage.messages()).toContain('turn.not-written')
    const meanwhile = channel.replies.length
    await limit(gateway, false)
    await expect.poll(() => channel.replies.length).toEqual(1)
    const [run, ...others] = await gateway.store.runs.list(10)
    const events = run ? await gateway.store.events.list(run.id) : []
    expect([meanwhile, channel.texts()[0] === LONG, run?.state, others, events.at(-1)?.event.type]).toEqual([
      0,
      true,
      'answered',
      [],
      'complete',
    ])
  })
})

describe('a DATABASE_URL', () => {
  const PASSWORD = 'correct-horse'

  /** Everything that is printed anywhere, including causes. */
  async function refused(stage: Stage, DATABASE_URL: string) {
    const error: unknown = await stage.start({ DATABASE_URL }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!(error instanceof GatewayError)) throw new Error(`Not refused with a clear word: ${inspect(error)}`)
    const said = inspect(error, { depth: 10 }) + stage.logged.join('')
    return { code: error.code, message: error.message, isPasswordTold: said.includes(PASSWORD) }
  }

  it('at which nobody listens is refused, without its password', async () => {
    expect(await refused(new Stage(onTestFinished), `postgres://ann:${PASSWORD}@127.0.0.1:1/chats`)).toEqual({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^PostgreSQL at 127\.0\.0\.1:1\/chats cannot be used: .*ECONNREFUSED.*Check DATABASE_URL, and that the server is running\.$/,
      ),
      isPasswordTold: false,
    })
  })

  it.each([
    ['is of something else', `mysql://ann:${PASSWORD}@localhost/chats`],
    ['is no URL', `postgres://ann:${PASSWORD}@local host:x/chats`],
    ['has no host', `ann:${PASSWORD}`],
  ])('that %s is refused before anything is done, without its password', async (_, url) => {
    expect(await refused(new Stage(onTestFinished), url)).toEqual({
      code: 'config_invalid',
      message: 'DATABASE_URL: must be a URL such as postgres://user:password@host:5432/name',
      isPasswordTold: false,
    })
  })

  it.skipIf(postgresUrl() === undefined)('of a missing database is refused, without its password', async () => {
    const url = new URL(postgresUrl() ?? '')
    url.pathname = '/nowhere'
    url.password = PASSWORD
    expect(await refused(new Stage(onTestFinished), url.href)).toEqual({
      code: 'store_unavailable',
      message: expect.stringContaining('cannot be used: database "nowhere" does not exist. Check DATABASE_URL'),
      isPasswordTold: false,
    })
  })
})

describe('a message', () => {
  async function setup() {
    const stage = new Stage(onTestFinished)
    return stage.start({ BACKEND_CLI_PATH: stage.executable('echo-agent', ECHO_AGENT) })
  }

  it.each([
    [
      'of 5 MB',
      'x'.repeat(5_000_000),
      'The message is too long: 5000000 characters, at most 1000000 are allowed. Put it in a file and name the file.',
    ],
    ['of only spaces', ' \n\t\u00A0 ', 'The message is empty. Write what the agent should do.'],
    ['of nothing', '', 'The message is empty. Write what the agent should do.'],
    ['of only NUL', '\0\0', 'The message is empty. Write what the agent should do.'],
  ])('%s is refused, the person reads why, and the next one is answered', async (_, text, reason) => {
    const { gateway, channel } = await setup()
    const acceptance = await channel.say('a', text, 'p1')
    const again = await channel.say('a', text, 'p1')
    await channel.say('a', 'hello')
    await expect.poll(() => channel.replies.length).toEqual(2)
    const kept = await gateway.store.inbox.get(acceptance.messageId)
    const replies = channel.replies.map(({ text, isError }) => ({ text, isError }))
    expect([acceptance, again.status, replies, kept?.state, (kept?.text.length ?? 0) <= 1_000]).toEqual([
      expect.objectContaining({ status: 'refused', reason }),
      'duplicate',
      [
        { text: reason, isError: true },
        { text: 'hello', isError: false },
      ],
      'refused',
      true,
    ])
  })

  it.each([
    ['with NUL', 'a\0b', 'ab'],
    ['with half characters', 'a\uD83Db\uDE00', 'a\uFFFDb\uFFFD'],
    ['of 10,000 emoji', '👩‍👩‍👧🦆'.repeat(5_000), '👩‍👩‍👧🦆'.repeat(5_000)],
    ['with quotes and escapes', `'"\\ \u001B[31m %s $1 ; drop table messages --`, undefined],
    ['as long as one may be', 'ä'.repeat(MAX_MESSAGE_CHARACTERS), undefined],
  ])('%s reaches the agent and comes back', async (_, text, expected = text) => {
    const { channel } = await setup()
    await channel.say('a', text)
    await expect.poll(() => channel.replies.length).toEqual(1)
    const [reply] = channel.texts()
    // Not compared by `toEqual`, which would print a megabyte.
    expect(reply === expected ? 'the same' : reply?.slice(0, 100)).toEqual('the same')
  })
})
