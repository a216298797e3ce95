// What an agent's `login.ts` may inspect to find out whether the agent is logged in: which variables and files exist.
// No value of a variable that could be a secret leaves here.

import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { askCli } from './ask-cli.js'
import type { JsonObject } from './jsonl.js'
import { parseSettings } from './settings.js'
import type { AgentLogin } from '../types.js'

/** What an agent's own settings say, without a request to a model. */
export interface LoginReading {
  login: AgentLogin
  /** The default model. */
  model?: string
}

interface Found {
  executable: string
  /** What the agent's processes get. */
  environment: Record<string, string>
  storedVariables: readonly string[]
  workingDir: string
  signal: AbortSignal
}

export class LoginPlace {
  readonly home: string
  readonly workingDir: string

  constructor(private readonly found: Found) {
    this.home = found.environment['HOME'] ?? homedir()
    this.workingDir = found.workingDir
  }

  /** The value of a variable that is not a secret, such as a path or a switch; undefined if it is empty. */
  setting(name: string): string | undefined {
    return this.found.environment[name] || undefined
  }

  /** Logged in by the first of these variables that turns get; undefined if they get none. */
  byVariable(...names: string[]): AgentLogin | undefined {
    const { storedVariables } = this.found
    // A stored credential replaces a variable of the environment.
    const stored = names.find((name) => storedVariables.includes(name))
    const name = stored ?? names.find((one) => this.setting(one) !== undefined)
    if (name === undefined) return undefined
    const how = stored === undefined ? name : `the stored credential ${name}`
    return { state: 'logged-in', how, fix: storeKey(name) }
  }

  /** The names of all variables that turns get. */
  variables(): string[] {
    const { environment, storedVariables } = this.found
    return [...Object.keys(environment).filter((name) => environment[name] !== ''), ...storedVariables]
  }

  /** Undefined if the file does not exist or cannot be read: then the agent cannot read it either. */
  async text(path: string): Promise<string | undefined> {
    try {
      return await readFile(path, 'utf8')
    } catch {
      return undefined
    }
  }

  /** Settings, with comments allowed; undefined if there are none or they cannot be parsed. */
  async settings(path: string): Promise<JsonObject | undefined> {
    const text = await this.text(path)
    if (text === undefined) return undefined
    try {
      return parseSettings(text)
    } catch {
      return undefined // The agent itself reports a damaged file on each turn.
    }
  }

  /** The CLI's own answer, in the environment of its turns. */
  ask(args: string[], environment: Record<string, string> = {}, stdin?: string): Promise<string> {
    const { executable, environment: own, signal } = this.found
    return askCli(executable, args, { ...environment, ...own }, signal, stdin)
  }
}

/** The command that stores a key for all turns. */
export function storeKey(variable: string): string {
  return `aetheel credentials set ${variable}`
}

/** The value if it is a non-empty string. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Variables that hold a key of a model provider, rather than a region, a URL or an id. */
const KEY =
  /(?:_API_KEY|_AUTH_TOKEN|_OAUTH_TOKEN|_ACCESS_TOKEN|_API_TOKEN|_BEARER_TOKEN_BEDROCK|_GITHUB_TOKEN|_APIKEY|_PAT)$|^(?:HF_TOKEN|AWS_ACCESS_KEY_ID|AWS_PROFILE)$/

/** For agents that work with any provider: logged in by a key of any of them. */
export function byProviderKey(place: LoginPlace): AgentLogin | undefined {
  return place.byVariable(...place.variables().filter((name) => KEY.test(name)))
}
