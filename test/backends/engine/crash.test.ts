import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { crashOf } from '../../../src/backends/engine/crash.js'

const RECORDED = join(import.meta.dirname, '../../fixtures/crashes')

const ERRORS: Record<string, string> = {
  'node-call.txt': 'TypeError: x.go is not a function',
  'node-import.txt':
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/tmp/agent/missing.mjs' imported from /tmp/agent/import.mjs",
  'node-lines.txt': 'Error: The socket closed.',
  'node-parse.txt': 'SyntaxError: Unexpected end of JSON input',
  'node-properties.txt': 'DOMThing [UsageLimitError]: over it',
  'node-rejected.txt':
    'UnhandledPromiseRejection: This error originated either by throwing inside of an async function without a catch ' +
    'block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason ' +
    '"just a text".',
  'node-warned.txt': "TypeError: Cannot read properties of null (reading 'answer')",
  'python-key.txt': "KeyError: 'key'",
  'rust-panic.txt':
    "thread 'main' panicked at core/src/session.rs:112:18: called `Result::unwrap()` on an `Err` value: " +
    'Os { code: 28, kind: StorageFull, message: "No space left on device" }',
  'rust-panic-before-1.73.txt':
    "thread 'tokio-runtime-worker' panicked at 'index out of bounds: the len is 0 but the index is 3', core/src/parse.rs:40:9",
}

it.each(readdirSync(RECORDED))('the error in %s is found', (name) => {
  expect(crashOf(readFileSync(join(RECORDED, name), 'utf8'))).toEqual(ERRORS[name])
})

it.each([
  ['nothing', ''],
  ['warnings', '(node:1) DeprecationWarning: The thing is deprecated\nfatal: no such branch\n'],
  ['an error that was caught', 'Error: Overloaded\n    at call (file:///a.js:1:1)\nTrying again.\n'],
])('%s is no crash', (_, stderr) => {
  expect(crashOf(stderr)).toBeUndefined()
})
