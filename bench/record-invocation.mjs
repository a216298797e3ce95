#!/usr/bin/env node
// Stands in for a CLI once: records how it was started, with a copy of the files that the run removes.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const { BENCH_RECORDING: recording, BENCH_RUN_DIRECTORIES: runDirectories, ...environment } = process.env
const name = readdirSync(runDirectories).find((entry) => entry.startsWith('aetheel-run-'))
const directory = join(runDirectories, name)
cpSync(directory, join(recording, 'files'), { recursive: true, verbatimSymlinks: true })
const invocation = {
  args: process.argv.slice(2),
  environment,
  cwd: process.cwd(),
  stdin: readFileSync(0, 'utf8'),
  directory,
}
writeFileSync(join(recording, 'invocation.json'), JSON.stringify(invocation))
