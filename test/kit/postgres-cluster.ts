// A private PostgreSQL server for a test run. It must not outlive the run, however that ends: a shell holds it and waits
// for its own stdin to close, which the kernel does even for a process that is killed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findExecutable } from '../../src/core/paths.js'

export interface PostgresCluster {
  /** URL of the superuser's own database. */
  url: string
  /** Disconnects everyone, stops the server and removes its files. */
  stop(): Promise<void>
}

/** Where Debian and Homebrew keep the versions that are not on the search path. */
const versionedPlaces = [
  { parent: '/usr/lib/postgresql', name: /^\d+$/ },
  { parent: '/opt/homebrew/opt', name: /^postgresql@\d+$/ },
  { parent: '/usr/local/opt', name: /^postgresql@\d+$/ },
  { parent: '/home/linuxbrew/.linuxbrew/opt', name: /^postgresql@\d+$/ },
]

// Inline, because the user it runs as may not be allowed to read the checkout.
// Text sorts as on most servers, not byte by byte as in SQLite, which reveals queries that rely on either.
// SIGPIPE is ignored because a test run that dies early must not take the clean-up with it.
const script = `
set -eu
binaries=$1
directory=$2
data=$directory/data
trap '' PIPE
trap '"$binaries/pg_ctl" -s -D "$data" -m fast stop >/dev/null 2>&1 || true; cd /; rm -rf "$directory"' EXIT
collation=
if "$binaries/initdb" --help | grep -q -e --icu-locale; then collation='--locale-provider=icu --icu-locale=en-US'; fi
"$binaries/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C $collation --no-sync >&2
cat >>"$data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$directory'
port = 5432
max_connections = 300
END
"$binaries/pg_ctl" -s -w -D "$data" -l "$directory/log" start >&2 || { cat "$directory/log" >&2; exit 1; }
echo ready
cat >/dev/null
`

/** The directory of PostgreSQL's programs: first on the search path, then the newest where packages put them. */
export function findPostgres(searchPath: string): string | undefined {
  const places = versionedPlaces.flatMap(({ parent, name }) => newestFirst(parent, name))
  const initdb = findExecutable('initdb', [searchPath, ...places].join(delimiter))
  return initdb === undefined ? undefined : dirname(realpathSync(initdb))
}

export async function startPostgresCluster(binaries: string): Promise<PostgresCluster> {
  const user = process.getuid?.() === 0 ? unprivilegedUser() : undefined
  // Root's own temporary directory can be closed to others.
  const directory = mkdtempSync(join(user === undefined ? tmpdir() : '/tmp', 'aetheel-postgres-'))
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  const guard = spawn('/bin/sh', ['-c', script, 'sh', binaries, directory], {
    cwd: directory,
    // Detached from the terminal, so that Ctrl-C reaches only the test run.
    detached: true,
    // The developer's own PG* variables are not for this server. Without a locale it does not start on macOS.
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    ...user,
  })
  const complaints = text(guard.stderr)
  const ended = once(guard, 'close')
  const isReady = await Promise.race([once(guard.stdout, 'data').then(() => true), ended.then(() => false)])
  if (!isReady) throw new Error(`PostgreSQL in ${binaries} did not start:\n${await complaints}`)
  return {
    // A socket file in a directory of our own: no port to collide on, and nobody else can connect. "localhost" only
    // makes it a URL that every parser accepts; `host` decides.
    url: `postgres://postgres@localhost:5432/postgres?host=${encodeURIComponent(directory)}`,
    stop: async () => {
      guard.stdin.end()
      await ended
    },
  }
}

function newestFirst(parent: string, name: RegExp): string[] {
  return entries(parent)
    .filter((entry) => name.test(entry))
    .toSorted((one, other) => other.localeCompare(one, 'en', { numeric: true }))
    .map((entry) => join(parent, entry, 'bin'))
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // No such directory on this machine.
  }
}

/** The user of the server if we are root, since it refuses to run as root: its package's user, or nobody. */
function unprivilegedUser(): { uid: number; gid: number } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (user === undefined)
    throw new Error('PostgreSQL does not run as root, and there is no user "postgres" or "nobody".')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}
