import { type Command, Option } from 'commander'
import type { ApprovalDecision } from '../../approvals/answer-approval.js'
import { outcomeText } from '../../approvals/approval-words.js'
import { allFields } from '../../approvals/asked-input.js'
import type { CommandContext } from '../command-context.js'
import type { Control } from '../control/protocol.js'
import { defined } from '../../core/defined.js'
import { oneLine, printable, printableLines } from '../../core/one-line.js'
import { onlyOne } from '../../core/only-one.js'
import type { Approval } from '../../store/approvals.js'
import type { Store } from '../../store/store.js'
import { defineList } from '../list-command.js'
import { age, listing, localTime, type ListOptions, prefixOf, severalIds, shortId } from '../listing.js'
import { table } from '../table.js'

export function registerApprovals(program: Command, context: CommandContext): void {
  const approvals = program.command('approvals').description("Answer agents' questions, and manage rules.")
  const list = approvals.command('list', { isDefault: true })
  defineList(list, 'List questions, newest first.', context, approvalsList)
  approvals
    .command('show')
    .description('Show a question with its full input.')
    .argument('<id>', 'its id, or the first characters of it')
    .option('--json', 'print JSON')
    .action((id: string, flags: { json?: true }) =>
      context.inspect((store) => approvalsShow(store, id, { isJson: flags.json === true })),
    )
  approvals
    .command('allow')
    .description('Allow what an agent asks to do.')
    .argument('<id>', 'its id, or the first characters of it')
    .addOption(new Option('--always', 'allow exactly this from now on').conflicts('tool'))
    .option('--tool', 'allow everything this tool does in this project from now on')
    .action((id: string, { always, tool }: { always?: true; tool?: true }) => {
      const answer = defined({ decision: 'allow', remember: tool ? 'tool' : always ? 'this' : undefined })
      return context.operate((control) => approvalsAnswer(control, id, answer))
    })
  approvals
    .command('deny')
    .description('Deny what an agent asks to do.')
    .argument('<id>', 'its id, or the first characters of it')
    .option('--message <text>', 'a reason for the agent')
    .action((id: string, { message }: { message?: string }) =>
      context.operate((control) => approvalsAnswer(control, id, { decision: 'deny', ...(message && { message }) })),
    )
  defineList(approvals.command('rules'), 'List rules: what agents may do without asking.', context, approvalRules)
  approvals
    .command('forget')
    .description('Remove a rule, so that the agent asks again.')
    .argument('<id>', 'its id, or the first characters of it')
    .action((id: string) => context.operate((control) => approvalsForget(control, id)))
}

/** The output of `aetheel approvals`, newest first. */
export async function approvalsList(store: Pick<Store, 'approvals'>, options: ListOptions): Promise<string> {
  const approvals = await store.approvals.list({}, options.limit)
  return listing(approvals, options, 'No agent has asked for anything yet.', {
    ID: ({ id }) => shortId(id),
    AGE: ({ askedAt }) => age(askedAt, options.now),
    PROJECT: ({ projectId }) => projectId ?? '-',
    AGENT: ({ backend }) => backend,
    STATE: outcomeText,
    'ASKED FOR': ({ summary }) => summary,
  })
}

/** The output of `aetheel approvals show`, with the full stored input. `id` may be a prefix. */
export async function approvalsShow(
  store: Pick<Store, 'approvals'>,
  id: string,
  { isJson }: Pick<ListOptions, 'isJson'>,
): Promise<string> {
  const approval = await findApproval(store, id)
  if (isJson) return JSON.stringify(approval, null, 2)
  const facts = [
    ['id', approval.id],
    ['project', approval.projectId ?? '-'],
    ['agent', approval.backend],
    ['asked', localTime(approval.askedAt)],
    ['state', outcomeText(approval)],
    ['tool', approval.toolName],
  ].map(([name = '', value = '']) => [name, printable(value)])
  return `${table(facts)}\n\n${printableLines(allFields(approval)) || 'No input.'}`
}

/** Contract: throws `not_found`, or `request_invalid` if the prefix is ambiguous. */
async function findApproval({ approvals }: Pick<Store, 'approvals'>, id: string): Promise<Approval> {
  const none = `There is no approval ${oneLine(id, 40)}. "aetheel approvals" lists them.`
  return onlyOne(await approvals.findByPrefix(prefixOf(id)), none, severalIds(id))
}

/** The output of `aetheel approvals rules`. */
export async function approvalRules(store: Pick<Store, 'approvalRules'>, options: ListOptions): Promise<string> {
  const rules = await store.approvalRules.list({}, options.limit)
  return listing(rules, options, 'There are no rules: agents set to ask, ask every time.', {
    ID: ({ id }) => shortId(id),
    AGE: ({ createdAt }) => age(createdAt, options.now),
    PROJECT: ({ projectId }) => projectId ?? '-',
    AGENT: ({ backend }) => backend,
    BY: ({ createdBy }) => createdBy,
    TOOL: ({ toolName }) => toolName,
    MAY: ({ subject }) => subject ?? 'everything',
  })
}

type Answer = Omit<ApprovalDecision, 'by'>

export async function approvalsAnswer(control: Control, id: string, answer: Answer): Promise<string> {
  const { summary } = await control.call('approvals.answer', { id, ...answer })
  return `${answer.decision === 'allow' ? 'Allowed' : 'Denied'}: ${summary}`
}

export async function approvalsForget(control: Control, id: string): Promise<string> {
  const { toolName } = await control.call('approvals.forget', { id })
  return `Removed the rule. The agent asks for ${toolName} again.`
}
