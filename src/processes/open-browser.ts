import { spawn } from 'node:child_process'
import { findExecutable } from '../core/paths.js'

/** Opens an address where a person would see it. False if this machine has no screen, or nothing to open it with. */
export function openBrowser(url: string, environment: NodeJS.ProcessEnv, platform = process.platform): boolean {
  const hasScreen = platform === 'darwin' || Boolean(environment['DISPLAY'] || environment['WAYLAND_DISPLAY'])
  const opener = findExecutable(platform === 'darwin' ? 'open' : 'xdg-open', environment['PATH'] ?? '')
  if (!hasScreen || opener === undefined) return false
  const child = spawn(opener, [url], { env: environment, stdio: 'ignore', detached: true })
  // The address is printed as well.
  child.on('error', () => {})
  child.unref()
  return true
}
