#!/usr/bin/env node
import { createProgram } from './cli/program.js'
import { operatorEnvironment } from './core/environment.js'
import { GatewayError } from './errors.js'

try {
  await createProgram(operatorEnvironment()).parseAsync()
} catch (error) {
  if (!(error instanceof GatewayError)) throw error
  console.error(error.message)
  // Not `exitCode`: something opened before the error could keep the process alive.
  process.exit(1)
}
