import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { MAY_MOUNT, mountSmallDisk } from '../kit/small-disk.js'
import { Stage } from '../kit/stage.js'

const LONG_TEXT = 'long '.repeat(60_000)

/** Begins to answer, and ends with its prompt once the file `go` exists. */
const PATIENT_AGENT = `#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
const result = await text(process.stdin)
const delta = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Well, ' } }
console.log(JSON.stringify({ type: 'stream_event', session_id: 's1', event: delta }))
while (!existsSync('go')) await sleep(20)
console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: 's1', result }))
`

describe.skipIf(!MAY_MOUNT)('a gateway on a full disk', () => {
  it("says that it accepts no more, and delivers an agent's answer once there is room", async ({
    expect,
    onTestFinished,
  }) => {
    const disk = mountSmallDisk()
    const stage = new Stage(onTestFinished)
    const agent = stage.executable('patient-agent.mjs', PATIENT_AGENT)
    const home = join(disk, 'home')
    mkdirSync(home)
    const { channel, steps } = await stage.start({ AETHEEL_HOME: home, BACKEND_CLI_PATH: agent })

    await channel.say('a', LONG_TEXT, 'first')
    await expect.poll(() => steps).toContain('streaming')
    const removeFiller = fillDisk(disk)
    const refused = await channel.say('a', `second ${LONG_TEXT}`, 'second').catch((error: unknown) => error)
    writeFileSync(join(stage.workingDir, 'go'), '')
    await expect.poll(() => stage.messages()).toContain('turn.not-written')
    const repliesWhileFull = channel.replies.length
    removeFiller()
    await expect.poll(() => channel.texts()).toEqual([LONG_TEXT])
    await channel.say('a', `second ${LONG_TEXT}`, 'second')
    await expect.poll(() => channel.texts()).toEqual([LONG_TEXT, `second ${LONG_TEXT}`])
    expect({ refused, repliesWhileFull }).toEqual({
      refused: expect.objectContaining({ code: 'store_full', message: expect.stringContaining('the disk is full') }),
      repliesWhileFull: 0,
    })
  })
})

function fillDisk(directory: string): () => void {
  const filler = join(directory, 'filler')
  const file = openSync(filler, 'w')
  try {
    for (let size = 65_536; size >= 512;) {
      try {
        writeSync(file, Buffer.alloc(size))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        size /= 2
      }
    }
  } finally {
    closeSync(file)
  }
  return () => rmSync(filler)
}
