import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { defined } from '../../core/defined.js'
import { onlyOne } from '../../core/only-one.js'
import { GatewayError } from '../../errors.js'
import { describeRights, hashOf, issueToken, newToken } from '../../service/auth.js'
import { removeTokenFile, tokenFile, tokenFileHash, writeTokenFile } from '../../service/token-file.js'
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

interface NewToken {
  name: string
  scope: Scope
  /** Absent, all. */
  projects?: string[] | undefined
  /** Absent, it does not expire. */
  days?: number | undefined
}

const DAY_MS = 24 * 3_600_000
const SHOWN_ONCE = 'It is shown this once; keep it where others cannot read it.'

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
    .option('--days <days>', 'how long it is valid', countArgument)
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
export async function tokensCreate(
  { store, now, newId }: TokenDependencies,
  { name, scope, projects, days }: NewToken,
): Promise<string> {
  if (!/^\P{Cc}{1,100}$/u.test(name)) {
    throw new GatewayError('request_invalid', 'A token needs a name of at most 100 characters, to know it by later.')
  }
  if (days !== undefined && !(days > 0 && days <= 3650)) {
    throw new GatewayError('request_invalid', 'A token may last up to 3650 days; left out, it does not expire.')
  }
  await requireProjects(store, projects ?? [])
  const { token } = await store.transaction(async ({ tokens, audit }) => {
    const expiresAt = days === undefined ? undefined : now() + days * DAY_MS
    const issued = await issueToken(tokens, defined({ name, scope, projects, expiresAt }), { now, newId })
    const { id: subject } = issued.record
    await notesOf('terminal', now)(
      { audit },
      { action: 'token.create', subject, detail: describeRights(issued.record) },
    )
    return issued
  })
  return `${token}\n${SHOWN_ONCE}`
}

/** The output of `aetheel tokens list`. */
export async function tokensList(store: Pick<Store, 'tokens'>, options: ListOptions): Promise<string> {
  const { limit, now } = options
  const tokens = (await store.tokens.list()).slice(0, limit)
  return listing(tokens, options, 'There are no tokens. "aetheel tokens create" makes one.', {
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
  const isInFile = await isInTokenFile(store, home, token)
  await store.transaction(async ({ tokens, audit }) => {
    await tokens.remove(token.id)
    await notesOf('terminal', now)({ audit }, { action: 'token.revoke', subject: token.id, detail: token.name })
  })
  if (isInFile) removeTokenFile(home)
  return `The token ${token.name} is worth nothing from now on.`
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
  if (!isInFile) return `${replacement}\n${SHOWN_ONCE} The one before is worth nothing from now on.`
  writeTokenFile(home, replacement)
  return `The new token stands in ${tokenFile(home)}. The one before is worth nothing from now on.`
}

async function requireProjects({ projects }: Pick<Store, 'projects'>, ids: string[]): Promise<void> {
  const known = (await projects.list()).map(({ id }) => id)
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length === 0) return
  const advice = known.length === 0 ? 'There are none yet.' : `Known: ${known.join(', ')}`
  throw new GatewayError('not_found', `There is no project ${unknown.join(', ')}. ${advice}`)
}

/** By id, by a prefix of it, or by name if it is unique. */
async function findToken({ tokens }: Pick<Store, 'tokens'>, id: string): Promise<TokenRecord> {
  const all = await tokens.list()
  const found = all.filter((token) => token.name === id || (id.length >= 4 && token.id.startsWith(id.toLowerCase())))
  const none = `There is no token ${id}. "aetheel tokens list" shows them.`
  return onlyOne(found, none, `More than one token is meant by ${id}. Type more of its id.`)
}

async function isInTokenFile({ tokens }: Pick<Store, 'tokens'>, home: string, token: TokenRecord): Promise<boolean> {
  const hash = tokenFileHash(home)
  return hash !== undefined && (await tokens.find(hash))?.id === token.id
}

function describeExpiry({ expiresAt }: TokenRecord, now: number): string {
  if (expiresAt === undefined) return 'never'
  return expiresAt <= now ? 'expired' : `in ${age(now, expiresAt)}`
}
