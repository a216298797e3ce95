// What a crashed program printed on stderr, reduced to what went wrong.

/** Printed last by the runtimes of most agents. */
const RUNTIME = /^(?:Node\.js|Bun) v\d/
const FRAME = /^\s+at \S/
/** `TypeError: …`, `Error [ERR_X]: …`, `DOMException [AbortError]: …` */
const HEADING = /^(?:Uncaught )?[A-Za-z_$][\w$.]*(?: \[\w+\])?: /

/** The error of a crash, on one line; undefined if nothing crashed. */
export function crashOf(stderr: string): string | undefined {
  const lines = stderr.split('\n').map((line) => line.trimEnd())
  return rustPanic(lines) ?? pythonError(lines) ?? scriptError(lines)
}

/** Node.js and Bun: the error is above its stack. */
function scriptError(lines: string[]): string | undefined {
  const printed = lines.filter((line) => line !== '')
  const last = printed.findLast((line) => !RUNTIME.test(line)) ?? ''
  // Any other stack belongs to an error that was caught.
  if (!RUNTIME.test(printed.at(-1) ?? '') && !FRAME.test(last)) return undefined
  const lastFrame = lines.findLastIndex((line) => FRAME.test(line))
  let top = lastFrame
  while (top > 0 && lines[top - 1] !== '' && !HEADING.test(lines[top] ?? '')) top -= 1
  const heading = lines[top]
  return heading !== undefined && HEADING.test(heading) ? heading : undefined
}

/** Python: the first line after the frames, which are indented. */
function pythonError(lines: string[]): string | undefined {
  const start = lines.findLastIndex((line) => line.startsWith('Traceback (most recent call last):'))
  return start === -1 ? undefined : lines.slice(start + 1).find((line) => /^\S/.test(line))
}

/** Rust: the message follows the location, since Rust 1.73 on the next line. */
function rustPanic(lines: string[]): string | undefined {
  const start = lines.findIndex((line) => /^thread '.*' (?:\(\d+\) )?panicked at /.test(line))
  const panic = lines[start]
  if (panic === undefined) return undefined
  return panic.endsWith(':') ? `${panic} ${lines[start + 1] ?? ''}`.trim() : panic
}
