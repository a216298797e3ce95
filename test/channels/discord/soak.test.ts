// Many channels and messages at once, while requests fail and connections break. SOAK_CHANNELS and SOAK_MESSAGES set
// how many; SOAK_SEED repeats the faults of an earlier run.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { DiscordStage } from './stage.js'

const CHANNELS = Number(process.env['SOAK_CHANNELS'] ?? 20)
const MESSAGES = Number(process.env['SOAK_MESSAGES'] ?? 200)
const SEED = Number(process.env['SOAK_SEED'] ?? 4)
const FAULT_RATE = 0.05
const ROUNDS = MESSAGES / CHANNELS
/** One message in this many takes some seconds, and shows its progress. */
const ONE_SLOW_IN = 20

/** As fast as an agent can be: two lines of output, and a note of the prompt. */
const AGENT = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --version) echo '2.1.197 (Discord soak)'; exit ;;
    --resume) id=$2 ;;
  esac
  shift
done
read -r name pace
[ "$id" ] || read -r id </proc/sys/kernel/random/uuid
echo "$name" >>journal
printf '{"type":"system","subtype":"init","session_id":"%s"}\\n' "$id"
[ "$pace" ] && for word in This takes a while; do
  printf '{"type":"stream_event","session_id":"%s","event":{"type":"content_block_delta",' "$id"
  printf '"delta":{"type":"text_delta","text":"%s "}}}\\n' "$word"
  sleep 1
done
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","result":"About %s"}\\n' "$id" "$name"
`

/** Only guards against a hang. */
const timeout = 60_000 + MESSAGES * 1_000

it(
  `answers ${MESSAGES} messages in ${CHANNELS} channels once and in order`,
  { timeout },
  async ({ onTestFinished }) => {
    const stage = await DiscordStage.open(onTestFinished)
    const { discord, workingDir } = stage
    const agent = join(stage.directory, 'agent.sh')
    writeFileSync(agent, AGENT, { mode: 0o755 })
    const guild = discord.addGuild()
    const threads = Array.from({ length: CHANNELS }, (_, index) =>
      discord.openThread(discord.bot, discord.addChannel(guild).id, `thread ${index}`),
    )
    const count = (): number => threads.reduce((sum, { id }) => sum + discord.textsIn(id).length, 0)
    const answers = (): string[][] => threads.map(({ id }) => discord.textsIn(id))
    const names = threads.map((_, index) => Array.from({ length: ROUNDS }, (__, round) => `${index}-${round}`))
    const troubles = [
      () => discord.dropSocket(),
      () => discord.requestReconnect(),
      () => discord.invalidateSession(),
      () => discord.invalidateSession({ isResumable: true }),
    ]
    await stage.start({ backendCliPath: agent, maxConcurrentQueries: 16 })
    discord.failAtRandom({ rate: FAULT_RATE, seed: SEED })

    for (let round = 0; round < ROUNDS; round += 1) {
      await discord.waitFor(() => discord.isConnected, timeout)
      // Every other round is said while the connection is down.
      if (round % 2 === 1) troubles[(round >> 1) % troubles.length]?.()
      for (const [index, { id }] of threads.entries()) {
        const isSlow = (index + 3 * round) % ONE_SLOW_IN === 0
        discord.say(discord.owner, id, `${names[index]?.[round]}${isSlow ? ' slowly' : ''}`)
      }
      await discord.waitFor(() => count() >= (round - 0.5) * CHANNELS, timeout)
    }

    await expect
      .poll(answers, { timeout, interval: 200 })
      .toEqual(names.map((ofThread) => ofThread.map((name) => `About ${name}`)))
    const edits = discord.requestsTo('PATCH /channels/:id/messages/:id').length
    console.info(
      `${discord.faultCount} faults, ${discord.identifies} sessions, ${discord.resumes} resumed, ${edits} edits`,
    )
    expect({
      asked: readFileSync(join(workingDir, 'journal'), 'utf8').trim().split('\n').toSorted(),
      isEdited: edits > 0,
      sessions: discord.identifies,
      editsTooMany: discord.overruns.filter(({ bucket }) => bucket === 'editMessage'),
      alive: stage.alive(),
    }).toEqual({ asked: names.flat().toSorted(), isEdited: true, sessions: 2, editsTooMany: [], alive: [] })
  },
)
