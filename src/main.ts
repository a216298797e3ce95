#!/usr/bin/env node
import { createProgram } from './cli/program.js'
import { operatorEnvironment } from './core/environment.js'
import { GatewayError } from './errors.js'

try {
  await createProgram(operatorEnvironment()).parseAsync()
} catch (error) {
  if (!(error instanceof GatewayError)) throw error
  console.error(error.message)
  // Not `exitCode`: what had been opened before the error must not keep us here.
  process.exit(1)
}
