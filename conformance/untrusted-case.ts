/** An untrusted project: nothing in it may configure the agent or run unasked. */
import assert from 'node:assert/strict'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { neverForTheModel } from './agents.js'
import { cannot, type Case } from './case.js'
import { callShell, say } from './model-replies.js'
import type { Stage } from './stage.js'
import { layTraps, traps } from './traps.js'

const prompt = 'Please do something.'
const answer = 'Done, said by the scripted model.'
/** Nobody listens there. */
const otherModel = 'http://127.0.0.1:9'

export const untrusted: Case = {
  name: 'untrusted',
  title: 'Untrusted project',
  async run({ agent, expected, open }) {
    if (expected.refusesUntrusted) return refusal(await open(() => say(answer)))
    const { marks, files, followed = [] } = traps[agent.name]
    let directory = ''
    const leave = (mark: string) => `touch ${join(directory, mark)}`
    const stage = await open(({ toolResults }) =>
      // Long enough for anything that loads late.
      toolResults.length === 0 ? callShell(agent, `sleep 3 && ${leave('tool')}`) : say(answer),
    )
    const { workspace, temporary } = stage.sandbox
    directory = join(temporary, 'marks')
    const left = async () => (await readdir(directory)).toSorted()
    const { requests } = stage.model

    await mkdir(directory)
    await layTraps(workspace, leave, files(leave))
    await stage.ask({ prompt })
    const sprung = (await left()).filter((mark) => mark !== 'git')
    assert.deepEqual(sprung, [...marks, 'tool'].toSorted(), 'where the project is trusted, its programs run')
    assert.ok(
      requests.some(({ body }) => body.includes(neverForTheModel)),
      'and its instructions are read',
    )

    // In the same home: earlier trust in the directory must not help it.
    await rm(directory, { recursive: true })
    await mkdir(directory)
    for (const name of followed) await rm(join(workspace, name), { recursive: true, force: true })
    const isFollowed = (name: string) => followed.some((path) => name === path || name.startsWith(`${path}/`))
    const others = Object.entries(files(leave, otherModel)).filter(([name]) => !isFollowed(name))
    await layTraps(workspace, leave, Object.fromEntries(others))
    const before = requests.length
    const { result } = await stage.ask({ prompt, isUntrusted: true })
    assert.deepEqual([result.failure, result.finalOutput], [undefined, answer])
    assert.deepEqual(await left(), ['tool'], 'nothing runs but what the model asked for')
    const isTaught = requests.slice(before).some(({ body }) => body.includes(neverForTheModel))
    assert.equal(isTaught, false, 'the model gets no instructions from the project')

    for (const name of followed) {
      await mkdir(dirname(join(workspace, name)), { recursive: true })
      await writeFile(join(workspace, name), '{}')
      const refused = await stage.ask({ prompt, isUntrusted: true })
      assert.deepEqual([refused.result.failure?.reason, refused.result.exitCode], ['refused', undefined])
      await rm(join(workspace, name))
    }
    const summary = 'nothing of the project ran or was read; tools work'
    return followed.length === 0 ? summary : `${summary}. Refused: ${followed.join(', ')}`
  },
}

async function refusal(stage: Stage): Promise<string> {
  const { result } = await stage.ask({ prompt, isUntrusted: true })
  assert.deepEqual([result.failure?.reason, result.exitCode, stage.model.requests.length], ['refused', undefined, 0])
  return `${cannot}refused: ${result.failure?.message}`
}
