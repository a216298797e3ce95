import { statSync } from 'node:fs'

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false // Missing, below a file, or a link cycle.
  }
}
