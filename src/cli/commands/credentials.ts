import type { Readable, Writable } from 'node:stream'
import type { Command } from 'commander'
import type { GatewayConfig } from '../../config.js'
import {
  CredentialStore,
  GLOBAL_OWNER,
  MAX_VALUE_BYTES,
  problemOfName,
  problemOfValue,
  VALUE_TOO_LARGE,
} from '../../credentials/credential-store.js'
import { KeyRing } from '../../credentials/key-ring.js'
import { createScrubber } from '../../credentials/scrubber.js'
import { GatewayError } from '../../errors.js'
import { type Note, notesOf } from '../../store/audit.js'
import type { Store } from '../../store/store.js'
import type { CommandContext } from '../command-context.js'
import { defineList } from '../list-command.js'
import { age, listing, type ListOptions } from '../listing.js'

interface CredentialTools {
  credentials: CredentialStore
  /** For the audit log. */
  note: Note
}

interface SetOptions {
  name: string
  projectId?: string | undefined
  isFile: boolean
  input: Readable & { isTTY?: boolean }
  output: Writable
}

const LINE_END_BYTES = 2

export function registerCredentials(program: Command, context: CommandContext): void {
  const change = (work: (tools: CredentialTools) => Promise<string>): Promise<void> =>
    context.change((store, config) => work(credentialTools(store, config, context.environment)))
  const credentials = program.command('credentials').description('Manage secrets for agents, stored encrypted.')
  defineList(credentials.command('list', { isDefault: true }), 'List names, never values.', context, credentialsList)
  credentials
    .command('set')
    .description('Set a credential. The value is prompted for, or read from stdin.')
    .argument('<name>', 'the environment variable that agents get it in')
    .option('-p, --project <id>', 'only for this project')
    .option('--file', 'pass the value as a file; the variable holds its path')
    .action((name: string, flags: { project?: string; file?: true }) =>
      change((tools) => {
        const { stdin: input, stderr: output } = process
        return credentialsSet(tools, { name, projectId: flags.project, isFile: flags.file === true, input, output })
      }),
    )
  credentials
    .command('rm')
    .description('Remove a credential.')
    .argument('<name>')
    .option('-p, --project <id>', 'only from this project')
    .action((name: string, { project }: { project?: string }) =>
      change((tools) => credentialsRemove(tools, { name, projectId: project })),
    )
  credentials
    .command('rotate')
    .description('Encrypt all credentials with a new key.')
    .action(() => change(credentialsRotate))
}

export function credentialTools(
  store: Store,
  { home }: Pick<GatewayConfig, 'home'>,
  environment: NodeJS.ProcessEnv,
): CredentialTools {
  const now = Date.now
  const keyRing = new KeyRing({ home, masterKey: environment['AETHEEL_MASTER_KEY'] })
  const credentials = new CredentialStore({ store, keyRing, scrubber: createScrubber(), now })
  return { credentials, note: notesOf('terminal', now) }
}

/** Prompts for the value or reads it from stdin. Never an argument, which every user of the machine can see. */
export async function credentialsSet(
  { credentials, note }: CredentialTools,
  { name, projectId = GLOBAL_OWNER, isFile, input, output }: SetOptions,
): Promise<string> {
  const problem = problemOfName(name)
  if (problem !== undefined) throw new GatewayError('request_invalid', problem)
  const value = input.isTTY ? await askForValue(name, isFile, input, output) : await readValue(isFile, input)
  await credentials.set(projectId, name, value, isFile ? 'file' : 'variable', note)
  const how = isFile ? 'as a file, with its path in' : 'as'
  return `Set ${name}. From their next turn on, agents ${whereOf(projectId)} get it ${how} ${name}.`
}

/** The output of `aetheel credentials list`. */
export async function credentialsList(store: Pick<Store, 'credentials'>, options: ListOptions): Promise<string> {
  const listed = (await store.credentials.list()).slice(0, options.limit)
  const shown = listed.map(({ owner, name, kind, createdAt, updatedAt }) => {
    return { project: owner === GLOBAL_OWNER ? null : owner, name, kind, createdAt, updatedAt }
  })
  return listing(shown, options, 'There are no credentials.', {
    NAME: ({ name }) => name,
    KIND: ({ kind }) => kind,
    SET: ({ updatedAt }) => age(updatedAt, options.now),
    PROJECT: ({ project }) => project ?? '(all)',
  })
}

export async function credentialsRemove(
  { credentials, note }: CredentialTools,
  { name, projectId = GLOBAL_OWNER }: Pick<SetOptions, 'name' | 'projectId'>,
): Promise<string> {
  await credentials.remove(projectId, name, note)
  return `Removed ${name}. From their next turn on, agents ${whereOf(projectId)} no longer get it.`
}

export async function credentialsRotate({ credentials, note }: CredentialTools): Promise<string> {
  const count = await credentials.rotate(note)
  return `Encrypted ${count} ${count === 1 ? 'credential' : 'credentials'} with a new key, and deleted earlier keys.`
}

async function askForValue(name: string, isFile: boolean, input: Readable, output: Writable): Promise<string> {
  if (isFile) {
    const advice = `Run: aetheel credentials set ${name} --file < path`
    throw new GatewayError('request_invalid', `--file reads the content from stdin. ${advice}`)
  }
  // Loaded lazily: no other command here asks questions.
  const { Prompts } = await import('../prompts.js')
  const prompts = new Prompts(input, output)
  try {
    return await prompts.secret({ message: `Value of ${name}`, problemOf: problemOfValue })
  } finally {
    prompts.close()
  }
}

async function readValue(isFile: boolean, input: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input as AsyncIterable<Buffer | string>) {
    chunks.push(Buffer.from(chunk))
    size += chunk.length
    // Checked here, because the input may never end.
    if (size > MAX_VALUE_BYTES + LINE_END_BYTES) throw new GatewayError('request_invalid', VALUE_TOO_LARGE)
  }
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString()
  if (!Buffer.from(text).equals(bytes)) {
    throw new GatewayError('request_invalid', 'The value is not UTF-8 text. Encode it first, for example as base64.')
  }
  // Strip the newline that `echo` appends.
  return isFile ? text : text.replace(/\r?\n$/, '')
}

function whereOf(projectId: string): string {
  return projectId === GLOBAL_OWNER ? 'in all projects' : `in the project ${projectId}`
}
