/**
 * Counts the source files that take part in one turn from Discord with a warm agent: `tsx bench/walk-files.ts`.
 *
 * A file counts if one of its functions runs between the message and its answer; code at the top level of a module does
 * not. The fewer files a message walks through, the easier it is to follow.
 */
import { Session } from 'node:inspector/promises'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openDiscord } from '../src/channels/configured-channels.js'
import { loadConfig } from '../src/config.js'
import { makeHome, startGateway } from '../src/gateway.js'
import { createLog } from '../src/log.js'
import { FakeDiscord } from '../test/channels/discord/fake-discord.js'

const SOURCES = new URL('../src/', import.meta.url).href
const AGENT = fileURLToPath(new URL('../test/fixtures/bin/warm-agent.sh', import.meta.url))
const SESSION_ID = '0a1b2c3d-0000-4000-8000-000000000001'
const ANSWER = 'Done.'
/** The shell commands by which the agent answers. */
const MESSAGE = `
printf '{"type":"system","subtype":"init","session_id":"${SESSION_ID}"}\\n'
printf '{"type":"result","subtype":"success","is_error":false,"result":"${ANSWER}","session_id":"${SESSION_ID}"}\\n'`

const directory = mkdtempSync(join(tmpdir(), 'aetheel-walk-'))
try {
  const files = await filesOfATurn(directory)
  console.log(files.join('\n'))
  console.log(`${files.length} files`)
} finally {
  rmSync(directory, { recursive: true, force: true })
}

async function filesOfATurn(home: string): Promise<string[]> {
  const discord = await FakeDiscord.start()
  const workingDir = join(home, 'work')
  mkdirSync(workingDir)
  const environment = { PATH: process.env['PATH'], HOME: home }
  const configFile = join(home, 'aetheel.json5')
  const settings = { backendCliPath: AGENT, agentMode: 'live', workingDir }
  const platform = { discordBotToken: discord.token, discordApiUrl: discord.apiUrl }
  writeFileSync(configFile, JSON.stringify({ ...settings, ...platform }))
  const config = loadConfig({ ...environment, AETHEEL_HOME: join(home, 'data') }, configFile)
  makeHome(config)
  const log = createLog({ level: 'warn' })
  const channel = await openDiscord(config, log)
  if (!channel) throw new Error('No token')
  const gateway = await startGateway(config, { environment, log, channels: [channel] })
  try {
    const place = discord.addChannel(discord.addGuild())
    const { id } = discord.say(discord.owner, place.id, MESSAGE, { mentions: [discord.bot] })
    await answersIn(discord, id, 1)
    const session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    discord.say(discord.owner, id, MESSAGE)
    await answersIn(discord, id, 2)
    const { result } = await session.post('Profiler.takePreciseCoverage')
    session.disconnect()
    const sources = result.filter(({ url }) => url.startsWith(SOURCES))
    const walked = sources.filter(({ functions }) => functions.some(ran))
    return walked.map(({ url }) => url.slice(SOURCES.length).replace(/\?.*/, '')).toSorted()
  } finally {
    await gateway.stop()
    await discord.stop()
  }
}

async function answersIn(discord: FakeDiscord, threadId: string, count: number): Promise<void> {
  const answers = () =>
    discord.threadOf(threadId) ? discord.messagesIn(threadId).filter(({ content }) => content === ANSWER).length : 0
  while (answers() < count) await sleep(20)
}

interface Covered {
  functionName: string
  ranges: Array<{ startOffset: number; count: number }>
}

/** The top level of a module has no name and begins with the file. */
function ran({ functionName, ranges }: Covered): boolean {
  const isTopLevel = functionName === '' && ranges[0]?.startOffset === 0
  return !isTopLevel && ranges.some(({ count }) => count > 0)
}
