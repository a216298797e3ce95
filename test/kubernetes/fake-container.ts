// A container made of namespaces: its own processes and mounts, the network of this machine. Root only.
//
// Its first process reads from us, so it ends when we do, however that happens, and with it everything in the container.
// It does not reap orphans, as is usual in images.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** Its `sh`. With `busybox`, all its tools are from busybox. */
export type Shell = 'dash' | 'bash' | 'busybox'

export interface ContainerOptions {
  /** Default: this machine's, with all its tools. */
  shell?: Shell
  environment?: Record<string, string>
  /** The user of its processes. Default: root. */
  userId?: number
  /** Directories of this machine, by their path in the container. */
  mounts?: Record<string, string>
}

export interface ContainerProcess {
  pid: number
  command: string
}

export interface ContainerExec {
  stdin: Socket
  stdout: Socket
  stderr: Socket
  /** The status as a container runtime reports it. */
  exited: Promise<number>
}

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

// `/proc/self` is still the machine's when it is read, so it gives the pid by which we know the process.
const script = `
set -eu
root=$1
shift
mount -t tmpfs -o mode=755 tmpfs "$root"
for place in usr etc dev bin sbin lib lib32 lib64; do
  if [ -L "/$place" ]; then cp -d "/$place" "$root/$place"
  elif [ -d "/$place" ]; then mkdir "$root/$place"; mount --rbind "/$place" "$root/$place"; fi
done
while [ $# -gt 0 ]; do
  mkdir -p "$root$1"
  mount --rbind "$2" "$root$1"
  shift 2
done
mkdir "$root/proc"
read -r pid rest </proc/self/stat
mount -t proc proc "$root/proc"
echo "$pid"
exec chroot "$root" /usr/bin/cat >/dev/null
`

export class FakeContainer {
  private constructor(
    private readonly init: ChildProcess,
    private readonly initPid: number,
    private readonly directory: string,
    private readonly environment: Record<string, string>,
    private readonly userId: number,
  ) {}

  static async start(options: ContainerOptions = {}): Promise<FakeContainer> {
    const directory = mkdtempSync(join(tmpdir(), 'aetheel-pod-'))
    const place = (name: string, mode = 0o755): string => {
      mkdirSync(join(directory, name))
      chmodSync(join(directory, name), mode)
      return join(directory, name)
    }
    const mounts = {
      '/tmp': place('tmp', 0o1777),
      '/workspace': place('workspace'),
      '/root': place('home'),
      '/image': image(place('image'), options.shell),
      ...options.mounts,
    }
    const init = spawn(
      'unshare',
      [
        '--pid',
        '--mount',
        '--fork',
        '--kill-child',
        'sh',
        '-c',
        script,
        'sh',
        place('root'),
        ...Object.entries(mounts).flat(),
      ],
      { detached: true, stdio: ['pipe', 'pipe', 'pipe'] },
    )
    const complaints = text(init.stderr)
    const [pid] = (await Promise.race([once(init.stdout, 'data'), once(init, 'close')])) as [Buffer | number]
    if (!Buffer.isBuffer(pid)) throw new Error(`No container could be made: ${await complaints}`)
    const environment = {
      PATH: options.shell === 'busybox' ? '/image' : `/image:${searchPath}`,
      HOME: '/root',
      KUBERNETES_SERVICE_HOST: '10.0.0.1',
      ...options.environment,
    }
    return new FakeContainer(init, Number(pid.toString()), directory, environment, options.userId ?? 0)
  }

  /** Runs a command as a container runtime does: pipes, the environment of the container, its root as directory. */
  exec(command: string[]): ContainerExec {
    const [stdin, stdout, stderr] = [makePipe(this.directory), makePipe(this.directory), makePipe(this.directory)]
    const user = [`--setuid=${this.userId}`, `--setgid=${this.userId}`]
    const target = ['--target', String(this.initPid), '--pid', '--mount', '--root', '--wd', ...user, '--']
    // In its own process session, like a runtime: otherwise its process group would have no number in the container.
    const child = spawn('/usr/bin/nsenter', [...target, '/usr/bin/setsid', ...command], {
      env: this.environment,
      stdio: [stdin.readEnd, stdout.writeEnd, stderr.writeEnd],
    })
    for (const end of [stdin.readEnd, stdout.writeEnd, stderr.writeEnd]) closeSync(end)
    return {
      stdin: new Socket({ fd: stdin.writeEnd, readable: false, writable: true }),
      stdout: new Socket({ fd: stdout.readEnd, readable: true, writable: false }),
      stderr: new Socket({ fd: stderr.readEnd, readable: true, writable: false }),
      exited: new Promise((resolve, reject) => {
        child.once('error', reject)
        child.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGKILL' ? 137 : 143)))
      }),
    }
  }

  /** Everything alive in it besides its first process. */
  async processes(): Promise<ContainerProcess[]> {
    const namespace = await readlink(`/proc/${this.initPid}/ns/pid`).catch(() => undefined)
    if (namespace === undefined) return []
    const found = await Promise.all(
      (await readdir('/proc')).map(async (pid): Promise<ContainerProcess[]> => {
        if (!/^\d+$/.test(pid) || Number(pid) === this.initPid) return []
        try {
          if ((await readlink(`/proc/${pid}/ns/pid`)) !== namespace) return []
          const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').join(' ').trim()
          const isDead = /\) [ZX] /.test(await readFile(`/proc/${pid}/stat`, 'utf8'))
          // One without a command line has freed its memory and is about to become a zombie.
          return isDead || command === '' ? [] : [{ pid: Number(pid), command }]
        } catch {
          return [] // It has ended since.
        }
      }),
    )
    return found.flat()
  }

  /** The names in its `/tmp`. */
  temporaryFiles(): string[] {
    return this.isAlive() ? readdirSync(`/proc/${this.initPid}/root/tmp`) : []
  }

  isAlive(): boolean {
    return this.init.exitCode === null && this.init.signalCode === null
  }

  /** At once, with everything in it. */
  async kill(): Promise<void> {
    if (!this.isAlive()) return
    const ended = once(this.init, 'exit')
    process.kill(this.initPid, 'SIGKILL')
    await ended
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** The programs that take precedence over this machine's, or are the only ones. */
function image(directory: string, shell: Shell | undefined): string {
  if (shell === undefined) return directory
  const program = execFileSync('sh', ['-c', 'command -v "$1"', 'sh', shell], { encoding: 'utf8' }).trim()
  const names =
    shell === 'busybox' ? execFileSync(program, ['--list'], { encoding: 'utf8' }).trim().split('\n') : ['sh']
  for (const name of names) symlinkSync(program, join(directory, name))
  return directory
}

let pipes = 0

/** A real pipe. Node.js uses sockets, which cannot be opened by a name such as /dev/stdin. */
function makePipe(directory: string): { readEnd: number; writeEnd: number } {
  const path = join(directory, `pipe-${pipes++}`)
  execFileSync('mkfifo', [path])
  // Opened for reading and writing, so that the other two do not wait for each other.
  const both = openSync(path, constants.O_RDWR)
  const ends = { readEnd: openSync(path, constants.O_RDONLY), writeEnd: openSync(path, constants.O_WRONLY) }
  closeSync(both)
  rmSync(path)
  return ends
}
