/**
 * Output of any size, as from one long turn: the opening of a captured turn, its rounds of text, thinking and tools over
 * and over, and its end. The lines are short, as in the captures, which is the hard case: with longer ones the share of
 * JSON.parse grows.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BackendName } from '../src/backends/types.js'

interface Capture {
  /** Below `test/fixtures/<backend>`. */
  files: string[]
  /** Lines that occur only at the beginning and only at the end of a turn. */
  opening: number
  ending: number
}

const captures: Record<BackendName, Capture> = {
  claude: { files: ['thinking-partial.ndjson', 'tool-use-partial.ndjson'], opening: 1, ending: 1 },
  codex: { files: ['tool-shell.jsonl', 'tool-file-change.jsonl'], opening: 2, ending: 1 },
  gemini: { files: ['tool-shell.stream-json.jsonl', 'tool-write-file.stream-json.jsonl'], opening: 2, ending: 1 },
  opencode: { files: ['run-reasoning-thinking.stdout.jsonl', 'run-tool.stdout.jsonl'], opening: 0, ending: 1 },
  pi: { files: ['thinking.ndjson', 'tool-use.ndjson'], opening: 3, ending: 1 },
}

export interface CapturedStream {
  opening: string
  round: string
  ending: string
}

export async function readCapturedStream(backend: BackendName): Promise<CapturedStream> {
  const { files, opening, ending } = captures[backend]
  const directory = join(import.meta.dirname, '../test/fixtures', backend)
  const turns = await Promise.all(
    files.map(async (file) =>
      (await readFile(join(directory, file), 'utf8')).split('\n').filter((line) => line !== ''),
    ),
  )
  const text = (lines: string[]) => lines.map((line) => `${line}\n`).join('')
  return {
    opening: text(turns.flatMap((lines, index) => (index === 0 ? lines.slice(0, opening) : []))),
    round: text(turns.flatMap((lines) => lines.slice(opening, -ending))),
    ending: text(turns.flatMap((lines, index) => (index === turns.length - 1 ? lines.slice(-ending) : []))),
  }
}

/** The number of rounds for at least this many bytes. */
export function roundsFor({ round }: CapturedStream, bytes: number): number {
  return Math.ceil(bytes / Buffer.byteLength(round))
}
