// The outcome of every capture of the real CLIs: the answer, the events, and why it failed.

import { describe, expect, it } from 'vitest'
import { stripAnsi } from '../../src/backends/engine/jsonl.js'
import type { BackendName } from '../../src/backends/types.js'
import { BACKEND_NAMES } from '../../src/backends/types.js'
import { createBackend } from '../../src/backends/registry.js'
import { createPrintingBackend, createStage, runTurn } from './fake-cli.js'
import {
  type Expected,
  type ExpectedCaptures,
  findCaptures,
  inWords,
  readCapture,
  usageInWords,
} from './golden/captures.js'
import { claudeCaptures } from './golden/claude.js'
import { codexCaptures } from './golden/codex.js'
import { geminiCaptures } from './golden/gemini.js'
import { openCodeCaptures } from './golden/opencode.js'
import { piCaptures } from './golden/pi.js'
import { adapterConfig } from '../kit/adapter-config.js'

const EXPECTED: Record<BackendName, ExpectedCaptures> = {
  claude: claudeCaptures,
  codex: codexCaptures,
  gemini: geminiCaptures,
  opencode: openCodeCaptures,
  pi: piCaptures,
}

const LABELS: Record<BackendName, string> = {
  claude: 'Claude',
  codex: 'Codex',
  gemini: 'Gemini',
  opencode: 'OpenCode',
  pi: 'Pi',
}

describe.each(BACKEND_NAMES)('the captures of %s', (name) => {
  const captures = EXPECTED[name]

  it('are all accounted for', () => {
    expect(findCaptures(name).toSorted()).toEqual(Object.keys(captures).toSorted())
  })

  it.each(Object.entries(captures))('%s is parsed', (capture, expected) => {
    const backend = createBackend(name, adapterConfig({ maxTurns: 0 }))
    const { answer, failure, session, parsed = answer ?? failure?.message, parsedSession = session } = expected
    expect(backend.parseOutput(String(readCapture(name, capture).stdout))).toEqual({
      isError: answer === undefined,
      responseText: parsed,
      ...(parsedSession !== undefined && { sessionId: parsedSession }),
    })
  })

  it.concurrent.for(Object.entries(captures))('%s is run', async ([capture, expected], { expect, onTestFinished }) => {
    const printed = readCapture(name, capture)
    const backend = createPrintingBackend(name, printed, createStage(onTestFinished))
    const { events, result } = await runTurn(backend, expected.request)
    expect({
      events: inWords(events.slice(0, -1), result),
      session: result.sessionId,
      exit: result.exitCode,
      answer: result.finalOutput,
      failure: result.failure,
      usage: usageInWords(result.usage),
      sessionUsage: usageInWords(result.sessionUsage),
      costUsd: result.costUsd,
    }).toEqual({
      events: expected.events,
      session: expected.session,
      exit: printed.exit < 0 ? 128 - printed.exit : printed.exit,
      answer: expected.answer,
      failure: failureOf(LABELS[name], expected, String(printed.stderr), printed.exit),
      usage: expected.usage,
      sessionUsage: expected.sessionUsage,
      costUsd: expected.costUsd,
    })
  })
})

function failureOf(label: string, { failure }: Expected, stderr: string, exit: number) {
  if (!failure) return undefined
  const { report = { whole: failure.message }, ...rest } = failure
  const said = { ...rest, ...(stderr !== '' && { stderr: stripAnsi(stderr) }) }
  if (typeof report === 'object' && 'whole' in report) return { ...said, report: report.whole }
  const texts = { stderr: stripAnsi(stderr).slice(0, 500), message: failure.message }
  const text = typeof report === 'object' ? report.text : texts[report]
  return { ...said, report: `${label} CLI error (exit ${exit < 0 ? 128 - exit : exit}): ${text}` }
}
