import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { onlyOne } from '../../core/only-one.js'
import { hashOf, newToken } from '../../service/auth.js'
import { tokenFile, writeTokenFile } from '../../service/token-file.js'
import { createToken, isInTokenFile, type NewToken, revokeToken } from '../../service/tokens.js'
import { notesOf } from '../../store/audit.js'
import type { Store } from '../../store/store.js'
import { type Scope, SCOPES, type TokenRecord } from '../../store/tokens.js'
import { countArgument } from '../arguments.js'
import type { CommandContext } from '../command-context.js'
import { defineList } from '../list-command.js'
import { age, listing, type ListOptions, shortId } from '../listing.js'

interface TokenDependencies {
  store: Store
  /** The data directory, which holds the first token. */
  home: string
  now: () => number
  newId: () => string
}

const SHOWN_ONCE = 'It is shown only once. Keep it where others cannot read it.'

export function registerTokens(program: Command, context: CommandContext): void {
  const change = (work: (dependencies: TokenDependencies) => Promise<string>): Promise<void> =>
    context.change((store, { home }) => work({ store, home, now: Date.now, newId: randomUUID }))
  const tokens = program.command('tokens').description('Manage access to the HTTP API.')
  defineList(tokens.command('list', { isDefault: true }), 'List tokens.', context, tokensList)
  tokens
    .command('create')
    .description('Create a token, and print it once.')
    .argument('<name>', 'its name')
    .addOption(new Option('-s, --scope <scope>', 'what it may do').choices(SCOPES).default('run'))
    .option('-p, --project <id...>', 'only in these projects')
    .option('--days <days>', 'how many days it is valid', countArgument)
    .action((name: string, flags: { scope: Scope; project?: string[]; days?: number }) =>
      change((dependencies) =>
        tokensCreate(dependencies, { name, scope: flags.scope, projects: flags.project, days: flags.days }),
      ),
    )
  tokens
    .command('revoke')
    .description('Revoke a token at once.')
    .argument('<token>', 'its id or name')
    .action((id: string) => change((dependencies) => tokensRevoke(dependencies, id)))
  tokens
    .command('rotate')
    .description('Replace a token, and print the new one once.')
    .argument('<token>', 'its id or name')
    .action((id: string) => change((dependencies) => tokensRotate(dependencies, id)))
}

/** The output of `aetheel tokens create`. */
export async function tokensCreate(dependencies: TokenDependencies, wanted: NewToken): Promise<string> {
  const { token } = await createToken(wanted, dependencies, notesOf('terminal', dependencies.now))
  return `${token}\n${SHOWN_ONCE}`
}

/** The output of `aetheel tokens list`. */
export async function tokensList(store: Pick<Store, 'tokens'>, options: ListOptions): Promise<string> {
  const { limit, now } = options
  const tokens = (await store.tokens.list()).slice(0, limit)
  return listing(tokens, options, 'There are no tokens. "aetheel tokens create" creates one.', {
    ID: ({ id }) => shortId(id),
    SCOPE: ({ scope }) => scope,
    PROJECTS: ({ projects }) => projects?.join(', ') ?? 'all',
    AGE: ({ createdAt }) => age(createdAt, now),
    USED: ({ usedAt }) => (usedAt === undefined ? 'never' : `${age(usedAt, now)} ago`),
    EXPIRES: (token) => describeExpiry(token, now),
    NAME: ({ name }) => name,
  })
}

/** The output of `aetheel tokens revoke`. */
export async function tokensRevoke({ store, home, now }: TokenDependencies, id: string): Promise<string> {
  const token = await findToken(store, id)
  await revokeToken(token, home, store, notesOf('terminal', now))
  return `Revoked the token ${token.name}.`
}

/** The output of `aetheel tokens rotate`. */
export async function tokensRotate({ store, home, now }: TokenDependencies, id: string): Promise<string> {
  const token = await findToken(store, id)
  const isInFile = await isInTokenFile(store, home, token)
  const replacement = newToken()
  await store.transaction(async ({ tokens, audit }) => {
    await tokens.replace(token.id, hashOf(replacement))
    await notesOf('terminal', now)({ audit }, { action: 'token.rotate', subject: token.id, detail: token.name })
  })
  if (!isInFile) return `${replacement}\n${SHOWN_ONCE} The previous token no longer works.`
  writeTokenFile(home, replacement)
  return `The new token is in ${tokenFile(home)}. The previous token no longer works.`
}

/** By id, by a prefix of it, or by name if it is unique. */
async function findToken({ tokens }: Pick<Store, 'tokens'>, id: string): Promise<TokenRecord> {
  const all = await tokens.list()
  const found = all.filter((token) => token.name === id || (id.length >= 4 && token.id.startsWith(id.toLowerCase())))
  const none = `There is no token ${id}. "aetheel tokens list" lists them.`
  return onlyOne(found, none, `More than one token matches ${id}. Type more of its id.`)
}

function describeExpiry({ expiresAt }: TokenRecord, now: number): string {
  if (expiresAt === undefined) return 'never'
  return expiresAt <= now ? 'expired' : `in ${age(now, expiresAt)}`
}
