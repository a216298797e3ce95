import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Older ones speak only SPDY. */
const oldest = { major: 1, minor: 30 }

/** Contract: rejects with what this machine lacks for a cluster of `fake-cluster.ts` and the real kubectl. */
export async function checkMachine(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('The cluster of the tests needs root, for its namespaces.')
  for (const program of ['unshare', 'nsenter', 'setsid', 'mkfifo', 'busybox']) {
    await run('sh', ['-c', 'command -v "$1"', 'sh', program]).catch(() => {
      throw new Error(`The cluster of the tests needs ${program} (Debian: apt-get install util-linux busybox).`)
    })
  }
  const needed = `The cluster of the tests needs kubectl ${oldest.major}.${oldest.minor} or newer in PATH`
  const { stdout } = await run('kubectl', ['version', '--client', '-o', 'json']).catch(() => {
    throw new Error(`${needed}, and there is none. Install it: https://kubernetes.io/docs/tasks/tools/`)
  })
  const { clientVersion } = JSON.parse(stdout) as {
    clientVersion: { major: string; minor: string; gitVersion: string }
  }
  const [major, minor] = [Number.parseInt(clientVersion.major), Number.parseInt(clientVersion.minor)]
  if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
    throw new Error(`${needed}; here it is ${clientVersion.gitVersion}. Debian's own package is too old.`)
  }
}
