#!/usr/bin/env node
import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { Command, InvalidArgumentError, Option } from 'commander'
import { unheldLimits } from './backends/engine/agent-limits.js'
import { resolveBackendName } from './backends/registry.js'
import { BACKEND_NAMES, type BackendName } from './backends/types.js'
import { agentsTable, doctorReport, probeAll } from './cli/commands/agents.js'
import { rebuildArchive } from './cli/commands/archive.js'
import { ask } from './cli/commands/ask.js'
import { chat } from './cli/commands/chat.js'
import { cronAdd, cronList, cronRemove, cronRun } from './cli/commands/cron.js'
import { configCheck, configShow } from './cli/commands/config.js'
import {
  credentialsList,
  credentialsRemove,
  credentialsRotate,
  credentialsSet,
  withCredentials,
} from './cli/commands/credentials.js'
import { type DiscoverFlags, projectsDiscover } from './cli/commands/discover.js'
import { demo } from './cli/commands/demo.js'
import { discordReport } from './cli/doctor/discord-report.js'
import { sendEvent } from './cli/commands/event.js'
import { heartbeatReport, heartbeatRun } from './cli/commands/heartbeat.js'
import { managedServerReport } from './cli/doctor/managed-server-report.js'
import { withControl } from './cli/with-control.js'
import { podsReport } from './cli/doctor/pods-report.js'
import {
  type ProjectFlags,
  projectsCreate,
  projectsList,
  projectsRemove,
  projectsShow,
  withProjects,
} from './cli/commands/projects.js'
import {
  approvalRules,
  approvalsAnswer,
  approvalsForget,
  approvalsList,
  approvalsShow,
} from './cli/commands/approvals.js'
import { queueDrop, queueList, queueRetry } from './cli/commands/queue.js'
import { runsList, runsShow } from './cli/commands/runs.js'
import { search } from './cli/commands/search.js'
import { send } from './cli/commands/send.js'
import { sessionsList, sessionsReset } from './cli/commands/sessions.js'
import { PERMISSIONS_NOTE, PLAIN_HTTP_NOTE, start } from './cli/commands/start.js'
import { approveAtTerminal } from './cli/terminal-approval.js'
import { terminalSafe } from './cli/terminal-safe.js'
import { type TokenDependencies, tokensCreate, tokensList, tokensRevoke, tokensRotate } from './cli/commands/tokens.js'
import { storeReport } from './cli/doctor/store-report.js'
import { whatsAppReport } from './cli/doctor/whatsapp-report.js'
import { CredentialStore } from './credentials/credential-store.js'
import { KeyRing } from './credentials/key-ring.js'
import { createScrubber } from './credentials/scrubber.js'
import { EVENT_KINDS } from './channels/types.js'
import { findConfigFile, type GatewayConfig, loadConfig } from './config.js'
import { secretsOfConfig } from './config/secrets.js'
import { ConfiguredAgents } from './runtime/configured-agents.js'
import { configuredPods } from './runtime/configured-pods.js'
import type { Control } from './cli/control/protocol.js'
import { operatorEnvironment } from './core/environment.js'
import { GatewayError } from './errors.js'
import { isLoopback } from './service/guards.js'
import { databaseFile, makeHome } from './gateway.js'
import { createLog, type Log, type LogLevel, secretsOf } from './log.js'
import { packageVersion } from './core/package-version.js'
import { guardedOwner } from './processes/guarded-owner.js'
import { openStore, openStoreReadOnly, type Store } from './store/store.js'
import { type Scope, SCOPES } from './store/tokens.js'

interface AskFlags {
  backend?: BackendName
  model?: string
  session?: string
  cwd?: string
  system?: string
  json?: true
  timeout?: number
}

interface ListFlags {
  limit: number
  json?: true
}

interface CronFlags {
  to: string
  prompt?: string
  zone?: string
  project?: string
  session?: 'own' | 'shared'
  catchUp?: 'once' | 'skip'
}

interface SearchFlags extends ListFlags {
  conversation?: string
  channel?: string
  since?: string
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const environment = operatorEnvironment()

/** Aborted when the reader has left, as in `aetheel ask … 2>&1 | head`. */
const unwanted = new AbortController()
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    unwanted.abort()
    // A reader that leaves has what it wanted. A full disk has not.
    if (code === 'EPIPE') return
    process.exitCode = 1
    if (stream === process.stdout) console.error(`The output could not be written: ${message}`)
  })
}

/** What is learnt of secrets while we run; the log hides it from then on. */
const scrubber = createScrubber()

const program = new Command('aetheel')
  .description('Talk to coding agents (Claude Code, Codex, Gemini CLI, OpenCode, Pi) through one interface.')
  .version(packageVersion())
  .option('--config <file>', 'configuration file (JSON5)')
  .showHelpAfterError()

program
  .command('init')
  .description('Set up the gateway: asks, checks, and writes the configuration file.')
  .action(async () => {
    // Loaded here: no other command asks questions.
    const { init } = await import('./cli/init/init.js')
    const probe = (config: GatewayConfig) => withAgents(config, (agents) => probeAll(agents.all()))
    endWith(await init({ ...configPlace(), probe, input: process.stdin, output: process.stdout }))
  })

program
  .command('start')
  .description('Run the gateway until it is stopped.')
  .action(async () => {
    const config = readConfig()
    const stop = new AbortController()
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        // The second time at once, as after a kill: the guardian ends the agents, the next start goes on.
        if (stop.signal.aborted) process.exit(1)
        stop.abort()
      })
    }
    const log = openLog(config, 'info')
    await start({ config, environment, log, scrubber, stdout: process.stdout, signal: stop.signal })
    // Requests that a platform has not answered must not keep us here.
    process.exit()
  })

program
  .command('chat')
  .description('Talk to the gateway that runs, or without one.')
  .option('-c, --conversation <name>', 'which conversation', nameArgument, 'default')
  .option('-p, --project <id>', 'the project to work in from now on')
  .option('--no-history', 'do not show what was said last')
  .action(async (flags: { conversation: string; project?: string; history: boolean }) => {
    const config = readConfig()
    const exitCode = await chat({
      config,
      environment,
      log: openLog(config),
      conversation: flags.conversation,
      ...(flags.project !== undefined && { projectId: flags.project }),
      showsHistory: flags.history,
      stdin: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      onInterrupt: (listener) => process.on('SIGINT', listener),
      signal: abortOn(['SIGTERM', 'SIGHUP']),
    })
    endWith(exitCode)
  })

program
  .command('ask')
  .description('Ask an agent one thing; the answer streams to stdout, tool activity to stderr.')
  .argument('[prompt]', 'what to ask; read from stdin when left out')
  .option('-b, --backend <name>', `agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
  .option('-m, --model <model>', "model, by the agent's own name for it")
  .option('-s, --session <id>', 'session to continue')
  .option('-C, --cwd <directory>', 'directory to work in')
  .option('--system <text>', "added to the agent's own system prompt")
  .option('--json', 'print every event as a line of JSON')
  .option('-t, --timeout <seconds>', 'time limit', secondsArgument)
  .action(async (prompt: string | undefined, flags: AskFlags) => {
    const config = readConfig()
    const stderr = terminalSafe(process.stderr)
    // What the prompt was read from has ended.
    const input = prompt !== undefined && process.stdin.isTTY ? process.stdin : undefined
    const request = {
      prompt: prompt ?? (await text(process.stdin)),
      ...(config.agentPermissions === 'ask' && { approve: approveAtTerminal({ input, output: stderr, scrubber }) }),
      idleTimeoutMs: config.idleTimeoutMs,
      ...(flags.model !== undefined && { model: flags.model }),
      ...(flags.session !== undefined && { sessionId: flags.session }),
      ...(flags.cwd !== undefined && { workingDir: flags.cwd }),
      ...(flags.system !== undefined && { systemPrompt: flags.system }),
      ...(flags.timeout !== undefined && { timeoutMs: flags.timeout * 1000 }),
    }
    // For one turn nothing need stay.
    const { isError } = await withAgents({ ...config, agentMode: 'oneshot' }, (agents) => {
      const backend = agents.open(flags.backend ?? config.agentBackend)
      return ask({
        backend,
        request,
        notices: unheldLimits(config, backend.capabilities()),
        isJson: flags.json === true,
        stdout: terminalSafe(process.stdout),
        stderr,
        signal: abortOn(SIGNALS),
        scrubber,
      })
    })
    endWith(isError ? 1 : 0)
  })

program
  .command('event')
  .description('Give the running gateway something to do; the answer goes to OUTPUT_CHANNEL_ID. For cron and scripts.')
  .argument('[prompt]', 'what to do; read from stdin when left out')
  .addOption(new Option('-k, --kind <kind>', 'what it comes from').choices(EVENT_KINDS).default('cron'))
  .action(async (prompt: string | undefined, flags: { kind: (typeof EVENT_KINDS)[number] }) => {
    console.log(await sendEvent(readConfig().home, flags.kind, prompt ?? (await text(process.stdin))))
  })

program
  .command('send')
  .description('Say something to somebody by the running gateway.')
  .argument('[text]', 'what to say; read from stdin when left out')
  .requiredOption('-t, --to <target>', 'whatsapp:+4915112345678, discord:<channel id> or terminal:<conversation>')
  .action(async (words: string | undefined, flags: { to: string }) => {
    console.log(await send(readConfig().home, flags.to, words ?? (await text(process.stdin))))
  })

const heartbeat = program.command('heartbeat').description('Whether the agent looks by itself if there is work.')
heartbeat
  .command('status', { isDefault: true })
  .description('Show when it looked last and looks next, why not, and what that took today.')
  .option('--json', 'print JSON')
  .action((flags: { json?: true }) =>
    look((store, config) => heartbeatReport(store, config, { isJson: flags.json === true, now: Date.now() })),
  )
heartbeat
  .command('run')
  .description('Let it look now.')
  .option('-f, --force', 'whatever speaks against it')
  .action(async (flags: { force?: true }) => {
    console.log(await heartbeatRun(readConfig().home, flags.force === true))
  })

const cron = program.command('cron').description('What the gateway does at certain times.')
listOptions(cron.command('list', { isDefault: true }))
  .description('List the jobs.')
  .action((flags: ListFlags) => look((store) => cronList(store, { ...listed(flags), now: Date.now() })))
cron
  .command('add')
  .description('Add a job: a prompt for the agent, or a command after "--".')
  .argument('<name>', 'to know it by')
  .argument('<schedule>', 'as "0 9 * * MON-FRI": minute, hour, day of the month, month, day of the week')
  .argument('[command...]', 'an executable and its arguments')
  .requiredOption('-t, --to <target>', 'who is told: whatsapp:+4915112345678, discord:<channel id>, terminal:<name>')
  .option('--prompt <text>', 'what the agent is asked')
  .option('--zone <name>', "the time zone, as Europe/Berlin; left out, the machine's")
  .option('-p, --project <id>', 'where it is done')
  .addOption(new Option('--session <which>', "a session of its own, or the conversation's").choices(['own', 'shared']))
  .addOption(new Option('--catch-up <rule>', 'what becomes of a time that was missed').choices(['once', 'skip']))
  .action((name: string, schedule: string, command: string[], flags: CronFlags) =>
    operate((control) =>
      cronAdd(control, {
        name,
        schedule,
        to: flags.to,
        ...(flags.prompt !== undefined && { prompt: flags.prompt }),
        ...(command.length > 0 && { command }),
        ...(flags.zone !== undefined && { timeZone: flags.zone }),
        ...(flags.project !== undefined && { projectId: flags.project }),
        ...(flags.session !== undefined && { session: flags.session }),
        ...(flags.catchUp !== undefined && { catchUp: flags.catchUp }),
      }),
    ),
  )
cron
  .command('run')
  .description('Do a job now.')
  .argument('<job>', 'its name, or the beginning of its id')
  .action(async (job: string) => {
    console.log(await cronRun(readConfig().home, job))
  })
cron
  .command('rm')
  .description('Remove a job.')
  .argument('<job>', 'its name, or the beginning of its id')
  .action((job: string) => operate((control) => cronRemove(control, job)))

const queue = program.command('queue').description('Messages that wait or failed, and replies that were not delivered.')
listOptions(queue.command('list', { isDefault: true }))
  .description('List them.')
  .action((flags: ListFlags) => look((store) => queueList(store, { ...listed(flags), now: Date.now() })))
queue
  .command('retry')
  .description('Take up a message again that failed, or send a reply again.')
  .argument('<id>', 'its id, or the beginning of it')
  .action((id: string) => operate((control) => queueRetry(control, id)))
queue
  .command('drop')
  .description('Let go of a message that waits or failed, or of a reply that could not be delivered.')
  .argument('<id>', 'its id, or the beginning of it')
  .action((id: string) => operate((control) => queueDrop(control, id)))

const approvals = program.command('approvals').description('What agents ask to be allowed, and what needs no question.')
listOptions(approvals.command('list', { isDefault: true }))
  .description('List what was asked, the newest first.')
  .action((flags: ListFlags) => look((store) => approvalsList(store, { ...listed(flags), now: Date.now() })))
approvals
  .command('show')
  .description('Show what an agent asks for, with its whole input.')
  .argument('<id>', 'its id, or the beginning of it')
  .option('--json', 'print JSON')
  .action((id: string, flags: { json?: true }) =>
    look((store) => approvalsShow(store, id, { isJson: flags.json === true })),
  )
approvals
  .command('allow')
  .description('Allow what an agent asks for.')
  .argument('<id>', 'its id, or the beginning of it')
  .addOption(new Option('--always', 'exactly this from now on, without a question').conflicts('tool'))
  .option('--tool', 'all that the tool does in this project, without a question')
  .action((id: string, { always, tool }: { always?: true; tool?: true }) => {
    const remember = tool ? 'tool' : always ? 'this' : undefined
    return operate((control) => approvalsAnswer(control, id, { decision: 'allow', ...(remember && { remember }) }))
  })
approvals
  .command('deny')
  .description('Refuse it.')
  .argument('<id>', 'its id, or the beginning of it')
  .option('--message <text>', 'what the agent is told')
  .action((id: string, { message }: { message?: string }) =>
    operate((control) => approvalsAnswer(control, id, { decision: 'deny', ...(message && { message }) })),
  )
listOptions(approvals.command('rules'))
  .description('List what needs no question.')
  .action((flags: ListFlags) => look((store) => approvalRules(store, { ...listed(flags), now: Date.now() })))
approvals
  .command('forget')
  .description('Remove a rule: the agent asks again.')
  .argument('<id>', 'its id, or the beginning of it')
  .action((id: string) => operate((control) => approvalsForget(control, id)))

const sessions = program.command('sessions').description('What the agents remember, by conversation.')
listOptions(sessions.command('list', { isDefault: true }))
  .description('List the conversations that have a session.')
  .action((flags: ListFlags) => look((store) => sessionsList(store, { ...listed(flags), now: Date.now() })))
sessions
  .command('reset')
  .description('Let the next message of a conversation begin a fresh session.')
  .argument('<conversation>', 'as "aetheel sessions" shows it')
  .action((conversation: string) => operate((control) => sessionsReset(control, conversation)))

const projects = program.command('projects').description('Directories in which agents work.')
listOptions(projects.command('list', { isDefault: true }))
  .description('List them.')
  .action((flags: ListFlags) => look((store) => projectsList(store, listed(flags))))
projects
  .command('show')
  .description('Show one.')
  .argument('<id>')
  .option('--json', 'print JSON')
  .action((id: string, flags: { json?: true }) => look((store) => projectsShow(store, id, flags.json === true)))
projects
  .command('create')
  .description('Make one, of a directory, a git repository, a template or a pod.')
  .option('--id <id>', 'left out, made of the name')
  .option('--name <name>', 'for people')
  .option('--directory <directory>', 'one that is there, inside PROJECT_ROOTS; with a pod, in there')
  .option('--pod <name>', 'a pod, in which the agent runs by kubectl exec')
  .option('--pod-selector <labels>', 'labels of the pod, as app=web')
  .option('--namespace <name>', 'of the pod')
  .option('--context <name>', 'of the kubeconfig, for the pod')
  .option('--container <name>', 'of the pod')
  .option('--git <url>', 'a repository to clone')
  .option('--ref <ref>', 'its branch or tag')
  .option('--template <name>', 'a template to begin with')
  .option('--variable <name=value...>', 'for the template')
  .option('-b, --backend <name>', `agent: ${BACKEND_NAMES.join(', ')}`, backendArgument)
  .option('-m, --model <model>', "model, by the agent's own name for it")
  .option('--untrusted', 'nothing in its directory may configure the agent')
  .action(async (flags: ProjectFlags) => {
    const config = readConfig()
    const change = withProjects(config, environment, openLog(config), (changer) =>
      projectsCreate(changer, flags, process.cwd(), abortOn(SIGNALS)),
    )
    console.log(await change)
  })
projects
  .command('discover')
  .description('Make projects of the pods that have the label KUBERNETES_LABEL, whose value is the agent.')
  .option('--namespace <name>', 'where to look; left out, KUBERNETES_NAMESPACE')
  .option('--all-namespaces', 'look everywhere')
  .option('--context <name>', 'of the kubeconfig; left out, KUBERNETES_CONTEXT')
  .option('--label <key>', 'the label; left out, KUBERNETES_LABEL')
  .option('--remove-missing', 'remove projects whose pods are gone')
  .option('--json', 'print JSON')
  .action(async (flags: DiscoverFlags) => {
    const config = readConfig()
    const work = withProjects(config, environment, openLog(config), (changer) =>
      projectsDiscover(flags, { ...changer, config, width: terminalWidth(), stderr: terminalSafe(process.stderr) }),
    )
    console.log(await work)
  })
projects
  .command('remove')
  .description('Forget one. Its files stay.')
  .argument('<id>')
  .option('--delete-files', 'delete the directory, too, if it was made here')
  .action(async (id: string, flags: { deleteFiles?: true }) => {
    const config = readConfig()
    const change = withProjects(config, environment, openLog(config), (changer) =>
      projectsRemove(changer, id, flags.deleteFiles === true),
    )
    console.log(await change)
  })

const credentials = program.command('credentials').description('Secrets for agents, kept sealed.')
listOptions(credentials.command('list', { isDefault: true }))
  .description('List their names.')
  .action((flags: ListFlags) => look((store) => credentialsList(store, { ...listed(flags), now: Date.now() })))
credentials
  .command('set')
  .description('Keep one; the value is asked for, or read from stdin.')
  .argument('<name>', 'the variable that agents find it in')
  .option('-p, --project <id>', 'for this project alone')
  .option('--file', 'agents get a file, and the variable names it')
  .action((name: string, flags: { project?: string; file?: true }) =>
    keepSecrets((desk) =>
      credentialsSet(desk, {
        name,
        ...(flags.project !== undefined && { projectId: flags.project }),
        isFile: flags.file === true,
        input: process.stdin,
        output: process.stderr,
      }),
    ),
  )
credentials
  .command('rm')
  .description('Forget one.')
  .argument('<name>')
  .option('-p, --project <id>', 'that of this project')
  .action((name: string, flags: { project?: string }) =>
    keepSecrets((desk) =>
      credentialsRemove(desk, { name, ...(flags.project !== undefined && { projectId: flags.project }) }),
    ),
  )
credentials
  .command('rotate')
  .description('Seal all of them with a new key.')
  .action(() => keepSecrets(credentialsRotate))

const tokens = program.command('tokens').description('Who may use the HTTP API.')
listOptions(tokens.command('list', { isDefault: true }))
  .description('List them.')
  .action((flags: ListFlags) => look((store) => tokensList(store, { ...listed(flags), now: Date.now() })))
tokens
  .command('create')
  .description('Make one, and print it once.')
  .argument('<name>', 'to know it by')
  .addOption(new Option('-s, --scope <scope>', 'what it may do').choices(SCOPES).default('run'))
  .option('-p, --project <id...>', 'only in these projects')
  .option('--days <days>', 'how long it holds', countArgument)
  .action((name: string, flags: { scope: Scope; project?: string[]; days?: number }) =>
    changeTokens((desk) =>
      tokensCreate(desk, {
        name,
        scope: flags.scope,
        ...(flags.project && { projects: flags.project }),
        ...(flags.days !== undefined && { days: flags.days }),
      }),
    ),
  )
tokens
  .command('revoke')
  .description('It holds no more, from now on.')
  .argument('<token>', 'its id or name')
  .action((id: string) => changeTokens((desk) => tokensRevoke(desk, id)))
tokens
  .command('rotate')
  .description('Put another in its place, and print it once.')
  .argument('<token>', 'its id or name')
  .action((id: string) => changeTokens((desk) => tokensRotate(desk, id)))

const runs = program.command('runs').description('What the agents did, turn by turn.')
listOptions(runs.command('list', { isDefault: true }))
  .description('List the latest.')
  .action((flags: ListFlags) => look((store) => runsList(store, { ...listed(flags), now: Date.now() })))
runs
  .command('show')
  .description('Show one, event by event.')
  .argument('<id>', 'its id, or the beginning of it')
  .option('--json', 'print JSON')
  .action((id: string, flags: { json?: true }) =>
    look((store) => runsShow(store, id, { isJson: flags.json === true, width: terminalWidth() })),
  )

listOptions(program.command('search'))
  .description('Find messages and replies.')
  .argument('<words...>', 'all of them must occur')
  .option('-c, --conversation <address>', 'only in this conversation')
  .option('--channel <name>', 'only in conversations of this channel')
  .option('--since <date>', 'only from this day on, as 2025-12-31, in UTC')
  .action((words: string[], flags: SearchFlags) =>
    look((store) =>
      search(store, {
        words,
        ...listed(flags),
        ...(flags.conversation !== undefined && { address: flags.conversation }),
        ...(flags.channel !== undefined && { channel: flags.channel }),
        ...(flags.since !== undefined && { since: flags.since }),
      }),
    ),
  )

program
  .command('archive')
  .description('Write every conversation as Markdown again, and say where.')
  .action(() =>
    look(async (store, config, log) => {
      const keyRing = new KeyRing({ home: config.home, masterKey: environment['AETHEEL_MASTER_KEY'] })
      const unreadable = await new CredentialStore({ store, keyRing, scrubber, now: Date.now }).hideAll()
      for (const { message } of unreadable) log.warn('credential.unreadable', { message })
      return rebuildArchive(config.home, store, log, (text) => scrubber.scrub(text))
    }),
  )

program
  .command('agents')
  .description('List the agents: which are installed, and what they can do.')
  .action(async () => {
    const config = readConfig()
    console.log(agentsTable(await withAgents(config, (agents) => probeAll(agents.all()))))
  })

program
  .command('doctor')
  .description('Check every agent, the database, pods, Discord and WhatsApp, and say what to fix and how.')
  .action(async () => {
    const config = readConfig()
    const { agents, server } = await withAgents(config, async (configured) => ({
      agents: await probeAll(configured.all()),
      server:
        config.opencodeEnabled && configured.managedServers && (await managedServerReport(configured.managedServers)),
    }))
    const { text: report, isHealthy } = doctorReport(agents, config.agentBackend)
    if (config.agentPermissions === 'allow') console.log(`! ${PERMISSIONS_NOTE}`)
    if (config.httpEnabled && !isLoopback(config.httpHost)) console.log(`! ${PLAIN_HTTP_NOTE}`)
    console.log(report)
    const parts = [
      ...(server ? [server] : []),
      await storeReport((find) => lookUp(config, find)),
      await podsReport(
        config,
        () => lookUp(config, ({ projects }) => projects.list()),
        configuredPods(config, environment),
      ),
      await discordReport(config),
      await whatsAppReport(config, { environment, log: openLog(config) }),
    ]
    for (const { text } of parts) console.log(text)
    endWith(isHealthy && parts.every((part) => part.isHealthy) ? 0 : 1)
  })

const configuration = program.command('config').description('The configuration: what is wrong with it, and what holds.')
configuration
  .command('check')
  .description('Say every problem, or that there is none.')
  .action(() => printReport(configCheck(configPlace())))
configuration
  .command('show')
  .description('Show every setting and where it comes from; secrets are masked.')
  .option('--json', 'print JSON')
  .action((flags: { json?: true }) => printReport(configShow({ ...configPlace(), isJson: flags.json === true })))

program
  .command('demo')
  .description('Show the main job with a built-in demonstration agent: nothing to install, no account.')
  .action(async () => {
    endWith(await demo(environment, process.stdout, abortOn(SIGNALS)))
  })

/** A failure that was noted before, such as of the output, stands. */
function endWith(exitCode: number): void {
  process.exitCode ||= exitCode
}

function configPlace(): { environment: NodeJS.ProcessEnv; cwd: string; explicit?: string } {
  const { config } = program.opts<{ config?: string }>()
  return { environment, cwd: process.cwd(), ...(config !== undefined && { explicit: config }) }
}

function readConfig(): GatewayConfig {
  const { cwd, explicit } = configPlace()
  const config = loadConfig(environment, findConfigFile(environment, cwd, explicit))
  for (const warning of config.warnings) console.error(`Warning: ${warning}`)
  return config
}

/** Where a person reads what is printed, the log speaks only when something is broken, or when asked to. */
function openLog(config: GatewayConfig, level: LogLevel = 'error'): Log {
  const secrets = [...secretsOf(environment), ...secretsOfConfig(config)]
  scrubber.add(secrets)
  return createLog({ level: config.logLevel ?? level, scrubber })
}

/** Contract: nothing that was started for the agents is left afterwards. */
async function withAgents<T>(config: GatewayConfig, use: (agents: ConfiguredAgents) => Promise<T>): Promise<T> {
  const log = openLog(config)
  // A server does not end by itself, nor does an agent that asks, as one does that has answered.
  const isServed = config.opencodeEnabled && config.opencodeManaged
  const guarded = isServed || config.agentPermissions === 'ask' ? guardedOwner(log) : undefined
  const dependencies = { environment, passVariables: config.agentEnvPass, log, scrubber }
  const agents = new ConfiguredAgents(config, { ...dependencies, ...(guarded && { owner: guarded.owner }) })
  try {
    return await use(agents)
  } finally {
    await agents.stop()
    await guarded?.stop()
  }
}

/** Prints what a command finds in the store. */
async function look(describe: (store: Store, config: GatewayConfig, log: Log) => Promise<string>): Promise<void> {
  const config = readConfig()
  console.log(await lookUp(config, (store, log) => describe(store, config, log)))
}

async function lookUp<T>(config: GatewayConfig, find: (store: Store, log: Log) => Promise<T>): Promise<T> {
  const log = openLog(config)
  const store = await openStoreReadOnly({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
  try {
    return await find(store, log)
  } finally {
    await store.close()
  }
}

/** Prints what a command has changed. */
async function operate(change: (control: Control) => Promise<string>): Promise<void> {
  const config = readConfig()
  console.log(await withControl(config, openLog(config), change))
}

async function keepSecrets(change: Parameters<typeof withCredentials>[1]): Promise<void> {
  const config = readConfig()
  console.log(await withCredentials({ config, environment, log: openLog(config) }, change))
}

async function changeTokens(change: (desk: TokenDependencies) => Promise<string>): Promise<void> {
  const config = readConfig()
  makeHome(config)
  const store = await openStore({ file: databaseFile(config), databaseUrl: config.databaseUrl }, openLog(config))
  try {
    console.log(await change({ store, home: config.home, now: Date.now, newId: randomUUID }))
  } finally {
    await store.close()
  }
}

function printReport({ text: report, exitCode }: { text: string; exitCode: number }): void {
  console.log(report)
  endWith(exitCode)
}

function listOptions(command: Command): Command {
  return command.option('-n, --limit <number>', 'how many at most', countArgument, 50).option('--json', 'print JSON')
}

function listed({ limit, json }: ListFlags): { limit: number; isJson: boolean; width: number } {
  return { limit, isJson: json === true, width: terminalWidth() }
}

function terminalWidth(): number {
  // 0 where a terminal does not know.
  return process.stdout.columns || 120
}

/** Aborts when nobody reads any more, too. */
function abortOn(signals: readonly NodeJS.Signals[]): AbortSignal {
  for (const signal of signals) process.on(signal, () => unwanted.abort())
  return unwanted.signal
}

function backendArgument(value: string): BackendName {
  try {
    return resolveBackendName(value)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

function nameArgument(value: string): string {
  if (/^\P{Cc}{1,500}$/u.test(value)) return value
  throw new InvalidArgumentError('It must be a name of at most 500 characters, without control characters.')
}

function secondsArgument(value: string): number {
  const seconds = Number(value)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw new InvalidArgumentError('It must be a number of seconds.')
}

function countArgument(value: string): number {
  const count = Number(value)
  if (Number.isInteger(count) && count > 0 && count <= 10_000) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof GatewayError)) throw error
  console.error(error.message)
  // Not `exitCode`: what had been opened before the error must not keep us here.
  process.exit(1)
}
