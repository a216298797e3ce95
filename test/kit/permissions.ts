// Refused permissions, even where root runs the tests.

import { chmodSync } from 'node:fs'
import type { TestContext } from 'vitest'
import { temporaryDirectory } from './temporary-directory.js'

const NOBODY = 65_534

/** Root may read everything, so as root `work` is done as another user. */
export async function asNobody<T>(work: () => T | Promise<T>): Promise<T> {
  const isRoot = process.getuid?.() === 0
  if (isRoot) process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

/** A directory in which nobody may write: on Linux one where the kernel refuses even root. */
export function readOnlyDirectory({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): string {
  if (process.platform === 'linux') return '/proc/sys'
  const directory = temporaryDirectory(onTestFinished)
  chmodSync(directory, 0o500)
  return directory
}
