import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { execArgs, type Kubectl } from './kubectl.js'
import { errorFromStderr, podError } from './pod-problems.js'
import { encodeValue, INSPECT_SCRIPT, LOADER, MAX_FILE_BYTES } from './supervisor.js'
import type { PodAddress, PodError } from './types.js'

/** Reads a container's environment and files. Answers are cached; concurrent questions share one exec. */
export class ContainerInspector {
  readonly #answers = new Map<string, { until: number; answer: Promise<Buffer> }>()
  #batch: { questions: string[]; answers: Promise<Buffer[]> } | undefined

  constructor(
    private readonly kubectl: Kubectl,
    private readonly address: PodAddress,
    private readonly answerMs: number,
  ) {}

  /** What the container sets for every process in it. */
  async environment(): Promise<Record<string, string>> {
    const entries = namesIn(await this.#ask('environment', Infinity)).map((entry) => {
      const at = entry.indexOf('=')
      return [entry.slice(0, at), entry.slice(at + 1)]
    })
    return Object.fromEntries(entries)
  }

  async readFile(path: string): Promise<string | undefined> {
    const answer = await this.#ask(`file ${encodeValue(path)}`)
    if (answer.length === 0) return undefined
    // The content has a mark on each side, the second only if it was read to the end.
    const isRead = answer.length > 1 && answer.at(-1) === MARK
    const isWhole = answer.length - 2 <= MAX_FILE_BYTES
    if (isRead && isWhole) return answer.toString('utf8', 1, answer.length - 1)
    const [what, advice] = isRead
      ? [`has more than ${MAX_FILE_BYTES} bytes in ${path}`, 'Make the file smaller.']
      : [`cannot read ${path}`, "Make the file readable for the container's user."]
    throw podError('directory_missing', this.address, what, { advice })
  }

  async list(directory: string): Promise<string[]> {
    return namesIn(await this.#ask(`list ${encodeValue(directory)}`))
  }

  #ask(question: string, cacheMs = CACHE_MS): Promise<Buffer> {
    const known = this.#answers.get(question)
    if (known && known.until > Date.now()) return known.answer
    this.#batch ??= this.#newBatch()
    const index = this.#batch.questions.push(question) - 1
    const answer = this.#batch.answers.then((answers) => answers[index] ?? Buffer.alloc(0))
    this.#answers.set(question, { until: Date.now() + cacheMs, answer })
    // The caller sees the error; the next one asks again.
    answer.catch(() => this.#answers.delete(question))
    return answer
  }

  #newBatch() {
    const questions: string[] = []
    const answers = nextTurn().then(() => {
      this.#batch = undefined
      return this.#query(questions)
    })
    return { questions, answers }
  }

  async #query(questions: string[]): Promise<Buffer[]> {
    const nonce = randomBytes(16).toString('hex')
    const args = execArgs(this.address, ['sh', '-c', LOADER, 'aetheel-look'])
    const stdin = `${INSPECT_SCRIPT}${[nonce, ...questions, 'go', ''].join('\n')}`
    const { stdout, stderr } = await this.kubectl.run(args, this.answerMs, stdin)
    const parts = splitAt(stdout, Buffer.from(`\x1e${nonce}\x1e`))
    // There is one part before the first answer and one after the last.
    if (parts.length === questions.length + 2) return parts.slice(1, -1)
    throw this.#failure(stderr)
  }

  #failure(stderr: string): PodError {
    return errorFromStderr(this.address, stderr) ?? podError('unreachable', this.address, 'did not answer', { stderr })
  }
}

const CACHE_MS = 60_000
const MARK = '='.charCodeAt(0)

function namesIn(bytes: Buffer): string[] {
  return bytes
    .toString('utf8')
    .split('\0')
    .filter((name) => name !== '')
}

function splitAt(bytes: Buffer, separator: Buffer): Buffer[] {
  const parts: Buffer[] = []
  let from = 0
  for (let at = bytes.indexOf(separator); at !== -1; at = bytes.indexOf(separator, from)) {
    parts.push(bytes.subarray(from, at))
    from = at + separator.length
  }
  return [...parts, bytes.subarray(from)]
}
