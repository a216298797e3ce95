#!/usr/bin/env node
// A command line that records how it was started, including the files of its run at that moment, and answers.
import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const { FAKE_STDOUT, FAKE_RECORD, FAKE_HOOK_EVENT, FAKE_VERSION, AETHEEL_RUN_ID, ...environment } = process.env
const argv = process.argv.slice(2)
if (argv[0] === '--version') {
  console.log(FAKE_VERSION ?? 'unknown')
  process.exit()
}
const directory = /\/[^"':,;\s]*aetheel-run-\w+/.exec(JSON.stringify([argv, environment]))?.[0]

const record = {
  argv,
  stdin: readFileSync(0, 'utf8'),
  cwd: process.cwd(),
  environment,
  isMarked: AETHEEL_RUN_ID !== undefined,
  directory,
  files: directory === undefined ? {} : contents(directory),
}
if (FAKE_HOOK_EVENT !== undefined) record.hookOutput = runHook()
writeFileSync(FAKE_RECORD, JSON.stringify(record))
process.stdout.write(readFileSync(FAKE_STDOUT))

/** Every file below the directory by its relative name; a link is `-> target`. */
function contents(root, directory = root) {
  return Object.assign(
    {},
    ...readdirSync(directory).map((name) => {
      const path = join(directory, name)
      const status = lstatSync(path)
      if (status.isSymbolicLink()) return { [relative(root, path)]: `-> ${readlinkSync(path)}` }
      return status.isDirectory() ? contents(root, path) : { [relative(root, path)]: readFileSync(path, 'utf8') }
    }),
  )
}

/** Runs the hook Codex was given, as Codex would. */
function runHook() {
  const setting = argv.find((argument) => argument.startsWith('hooks.SessionStart='))
  const command = JSON.parse(/command=("(?:[^"\\]|\\.)*")/.exec(setting)[1])
  return execFileSync('bash', ['-c', command], { input: FAKE_HOOK_EVENT, encoding: 'utf8' })
}
