// The shell scripts that run in a pod beside an agent: POSIX only, with just the tools that any image with a shell has
// (cat, grep, head, ln, mkdir, rm, sed, sleep, tr; setsid if available).
//
// Traps:
// - The arguments of `kubectl exec` travel in a URL, which proxies and audit logs keep. They hold only the loader and
//   the run's name. Everything else comes through stdin.
// - `read` consumes no byte beyond its line, so loader, header and heartbeats can share one input.
// - Nothing in the header is ever evaluated: a value is a word of its own, or goes through `printf %b`.
// - The agent stays in the foreground: shells make background processes ignore SIGINT for good.
// - A run's variable may have any name. Only AETHEEL_* names are used between setting the first one and the exec.
// - A container variable whose name is used here is the script's from the first line on. The agent gets the container's
//   value back, and none of the script's, which include the nonce.

/** Not `RUN_MARKER`: a gateway may share the pod's processes and must not be ended with them. */
export const POD_MARKER = 'AETHEEL_POD_RUN_ID'

/** Reads the script up to a line with a dot, and runs it if it is complete. */
export const LOADER = `s=;while IFS= read -r l&&[ "$l" != . ];do s="$s$l
";done;[ "$l" = . ]&&eval "$s"`

const COMMON = `
umask 077
exec 4>&2
IFS= read -r nonce

# Writes a record into the agent's stderr; nobody else knows the nonce.
tell() { printf '\\036%s %s\\036' "$nonce" "$*" >&4; }

# Backslash, newline and NUL are escaped in values. Command substitution strips trailing newlines: hence the dot.
decode() {
  AETHEEL_value=$1
  case $1 in *\\\\*) AETHEEL_value=$(printf '%b.' "$1"); AETHEEL_value=\${AETHEEL_value%.} ;; esac
}

remove() { rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwX -- "$1"; rm -rf -- "$1"; } 2>/dev/null; }
`

// `id` is the run, `dir` its directory. `session` is `setsid` if `agent` leads its own session.
const ENDING = `
# Counts in tenths of a second. Not every sleep supports fractions.
pause() { if sleep 0.1 2>/dev/null; then waited=$((waited + 1)); else sleep 1; waited=$((waited + 10)); fi; }

# The processes whose /proc file $1 contains the line $2.
having() {
  for word in $(head -n 99999 /dev/null /proc/[0-9]*/"$1" 2>/dev/null | LC_ALL=C tr '\\000' '\\n' |
    LC_ALL=C grep -e "^==> /proc/[0-9]*/$1 <==\\$" -e "^$2\\$"); do
    case $word in
      /proc/*) owner=\${word#/proc/} ;;
      '==>' | '<==') ;;
      *) printf '%s ' "\${owner%%/*}" ;;
    esac
  done
}

# Sets "found" to the run's live processes as pid:start, so that a reused pid does not match.
scan() {
  members=" $(having environ "${POD_MARKER}=$id")$roots "
  # pid, parent, group, session, start
  table=$(cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C sed -n \\
    's/^\\([0-9]*\\) (.*) [^ZX] \\([0-9]*\\) \\([0-9]*\\) \\([0-9]*\\) \\(-*[0-9]* \\)\\{15\\}\\([0-9]*\\) .*/\\1 \\2 \\3 \\4 \\6/p')
  before=
  while [ "$before" != "$members" ]; do
    before=$members
    found=
    set -- $table
    while [ $# -gt 0 ]; do
      case $members in
        *" $1 "*) found="$found $1:$5" ;;
        *" $2 "*) members="$members$1 " ;;
        *) if [ "$session" = setsid ] && { [ "$3" = "$agent" ] || [ "$4" = "$agent" ]; }; then members="$members$1 "; fi ;;
      esac
      shift 5
    done
  done
}

# Sets "start"; fails if the process has ended.
look_at() {
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${stat##*) }
  start=\${20}
  case $1 in [ZX]) return 1 ;; esac
}

lives() { look_at "\${1%:*}" && [ "$start" = "\${1#*:}" ]; }

# Finds the agent, unless the container was restarted since: the directory may outlive it.
find_agent() {
  { IFS=' ' read -r agent session birth < "$dir/.agent"; } 2>/dev/null
  look_at 1
  [ "$start" = "$birth" ] || agent= session=
}

# Ends what "scan" finds and what is already in "kept"; with SIGKILL after half a second.
sweep() {
  round=0
  while [ "$round" -lt 20 ]; do
    scan
    left=
    for one in $kept $found; do if lives "$one"; then left="$left $one"; fi; done
    kept=$left
    [ -n "$left" ] || return 0
    if [ "$round" = 0 ]; then hard=TERM; patience=5; else hard=KILL; patience=10; fi
    reached=
    for one in $left; do if kill -s "$hard" "\${one%:*}" 2>/dev/null; then reached="$reached $one"; fi; done
    # Processes that changed their user are out of reach.
    [ -n "$reached" ] || return 1
    waited=0
    while [ "$waited" -lt "$patience" ]; do
      left=
      for one in $reached; do if lives "$one"; then left=1; fi; done
      [ -n "$left" ] || break
      pause
    done
    round=$((round + 1))
  done
  return 1
}
`

const RUN = `
trap '' PIPE HUP USR2
AETHEEL_newline='
'
id=\${0#aetheel-run-}
dir=/tmp/$0
variables= file= broken= begun= expected= roots= kept=
fail() { remove "$dir"; tell "problem $1"; exit 0; }
mkdir -- "$dir" 2>/dev/null || { tell 'problem files'; exit 0; }

while IFS= read -r line; do
  value=\${line#* }
  case $line in
    'data '*) printf %b "$value" >> "$file" || broken=1 ;;
    'file '*)
      decode "$value"
      case $AETHEEL_value in */*) mkdir -p -- "$dir/\${AETHEEL_value%/*}" || broken=1 ;; esac
      file=$dir/$AETHEEL_value ;;
    'link '*) decode "$value"; ln -s -- "$AETHEEL_value" "$file" || broken=1 ;;
    'folder '*) decode "$value"; mkdir -p -- "$AETHEEL_value" || broken=1 ;;
    'variable '*) variables=$variables$value$AETHEEL_newline ;;
    'argument '*) decode "$value"; set -- "$@" "$AETHEEL_value" ;;
    'directory '*) decode "$value"; directory=$AETHEEL_value ;;
    'executable '*) decode "$value"; executable=$AETHEEL_value ;;
    'expected '*) expected=$value ;;
    'signal '*) signal=$value ;;
    'beat '*) beat=$value ;;
    go) begun=1; break ;;
  esac
done
# The input ended early: nobody is there any more.
[ -n "$begun" ] || { remove "$dir"; exit 0; }
[ -z "$broken" ] || fail files
(cd -- "$directory") 2>/dev/null || fail directory

path=
case $executable in
  /*) ;;
  */*) executable=$directory/$executable ;;
esac
case $executable in
  */*) if [ -f "$executable" ] && [ -x "$executable" ]; then path=$executable; fi ;;
  *)
    places=$PATH:
    while [ -z "$path" ] && [ -n "$places" ]; do
      place=\${places%%:*}
      places=\${places#*:}
      case $place in /*) if [ -f "$place/$executable" ] && [ -x "$place/$executable" ]; then path=$place/$executable; fi ;; esac
    done ;;
esac
[ -n "$path" ] || fail executable
session=-
if command -v setsid >/dev/null 2>&1; then session=setsid; fi

# The calling process: "$$" is always the first shell.
find_self() { IFS=' ' read -r self _ < /proc/self/stat; }

to_agent() { kill -s "$1" -- "-$agent" 2>/dev/null || kill -s "$1" "$agent" 2>/dev/null; }

until_gone() { waited=0; while [ "$waited" -lt "$1" ] && kill -s 0 "$agent" 2>/dev/null; do pause; done; }

# Ends the agent with its preferred signal, then with stronger ones, then what it left. The first shell waits for it.
halt() {
  trap '' TERM USR2
  waited=0
  while [ ! -s "$dir/.agent" ] && [ "$waited" -lt 50 ]; do pause; done
  find_agent
  scan
  kept=$found
  if [ -n "$agent" ] && to_agent "$signal"; then
    until_gone 20
    if [ "$signal" != TERM ] && to_agent TERM; then until_gone 10; fi
    to_agent KILL
  fi
  sweep
}

# When the wait for it returns, its sleep must be dead too. KILL, since a shell that is only about to become that sleep
# may catch TERM and forget it.
nap() {
  trap 'kill -s KILL "$!"; wait "$!"; exit' TERM
  sleep "$1" &
  wait "$!"
  kill -s KILL "$!"
}

# After three missed heartbeats the stream is dead, whatever the connection looks like from here. Writes to it may
# block forever: then the first shell hangs in its last record.
watch_silence() {
  trap 'quiet=0' USR2
  quiet=1
  while [ "$quiet" -lt 4 ]; do
    nap "$beat"
    quiet=$((quiet + 1))
  done
  halt
  nap 5
  kill -s KILL "$$"
}

# Writes here may block as well: so it has no trap, and TERM ends it anywhere except in "halt".
watch_input() {
  while IFS= read -r line && [ "$line" != stop ]; do
    kill -s USR2 "$silence"
    tell beat
  done
  # The input ended without "stop": nobody is left to report to.
  [ "$line" = stop ] || : > "$dir/.alone"
  halt
}

# From here on stderr is for the agent alone: shells report killed processes on theirs.
exec 3<&0 </dev/null 2>/dev/null
watch_silence >/dev/null 3<&- &
silence=$!
watch_input <&3 >/dev/null 3<&- &
input=$!
tell ready

(
  trap - PIPE HUP USR2
  cd -- "$directory" || exit 126
  find_self
  look_at 1
  printf '%s\\n' "$self $session $start" > "$dir/.agent"
  if [ "$session" = setsid ]; then set -- setsid "$path" "$@"; else set -- "$path" "$@"; fi
  AETHEEL_list=$variables
  while [ -n "$AETHEEL_list" ]; do
    AETHEEL_line=\${AETHEEL_list%%"$AETHEEL_newline"*}
    AETHEEL_list=\${AETHEEL_list#*"$AETHEEL_newline"}
    decode "\${AETHEEL_line#*=}"
    export "\${AETHEEL_line%%=*}=$AETHEEL_value"
  done
  exec "$@"
) <"$dir/.input" 2>&4 3<&- 4>&-
status=$?

kill -s TERM "$input"
wait "$input"
find_agent
sweep
if [ -e "$dir/.alone" ]; then tell() { :; }; fi
if [ -n "$expected" ] && [ -e "$dir/$expected" ]; then tell there; fi
remove "$dir"
tell "exit $status"
kill -s TERM "$silence"
wait "$silence"
exit 0
`

const END = `
IFS= read -r id
kept= roots= dir=/tmp/aetheel-run-$id
find_agent
sweep
# Its supervisor may be ending it right now, and may know more processes than can be found: let it, unless it hangs.
waited=0
while roots=$(having cmdline "aetheel-run-$id") && [ -n "$roots" ] && [ "$waited" -lt 50 ]; do pause; done
sweep
ended=$?
remove "$dir"
if [ "$ended" = 0 ]; then tell ended; fi
`

/** The largest file that is read in a container. */
export const MAX_FILE_BYTES = 1_000_000

const INSPECT = `
print() { printf '\\036%s\\036' "$nonce"; }
while IFS= read -r line && [ "$line" != go ]; do
  decode "\${line#* }"
  print
  case $line in
    environment) cat "/proc/$$/environ" ;;
    'file '*) if [ -f "$AETHEEL_value" ]; then printf =; head -c ${MAX_FILE_BYTES + 1} "$AETHEEL_value" && printf =; fi ;;
    'list '*)
      for name in "$AETHEEL_value"/* "$AETHEEL_value"/.[!.]* "$AETHEEL_value"/..?*; do
        if [ -e "$name" ] || [ -L "$name" ]; then printf '%s\\000' "\${name##*/}"; fi
      done ;;
  esac
done
print
`

/** Supervises one run. Input: header lines, then a line at least every `beat` seconds, then `stop` or end-of-file. */
export const RUN_SCRIPT = scriptOf(COMMON, ENDING, RUN)
/** Variables that must be set again for the agent if its container has them. */
export const SCRIPT_VARIABLES: readonly string[] = namesIn([RUN_SCRIPT])
/** Ends a whole run, including its supervisor, and removes its files. */
export const END_SCRIPT = scriptOf(COMMON, ENDING, END)
/** Answers questions about the container. */
export const INSPECT_SCRIPT = scriptOf(COMMON, INSPECT)

/** In the loader's format. Inherited variables are unset first, because a shell would pass its new values on. */
function scriptOf(...parts: string[]): string {
  const lines = parts
    .join('\n')
    .split('\n')
    .map((line) => line.trimStart())
    .filter((line) => line !== '' && !line.startsWith('#'))
  return `unset ${namesIn(lines).join(' ')}\n${lines.join('\n')}\n.\n`
}

/** The variables of the loader and a script; may include a few false positives. */
function namesIn(lines: string[]): string[] {
  const assigned = [LOADER, ...lines].flatMap((line) =>
    [...line.matchAll(/(?<![\w$])([a-z]\w*)=|\bfor (\w+) in\b|\bread -r ([a-z][a-z ]*)/g)].flatMap(
      ([, set, each, read = '']) => [set ?? each ?? '', ...read.split(' ')],
    ),
  )
  return [...new Set(assigned.filter((name) => name !== ''))].toSorted()
}

/** Whether shells reserve this variable, so that it cannot be set for an agent. */
export function isShellVariable(name: string): boolean {
  return /^(?:_|BASH.*|DIRSTACK|EPOCH.*|EUID|FUNCNAME|GROUPS|HISTCMD|IFS|LINENO|OPTIND|PPID|S?RANDOM|SECONDS|SHELLOPTS|UID)$/.test(
    name,
  )
}

/** A value as encoded in a header line. */
export function encodeValue(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\0', '\\0000')
}
