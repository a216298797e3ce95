/**
 * What each agent needs to talk to the scripted model from a clean home directory, and how the model talks to it.
 * Only what an operator would have to set up: the backend handles retry limits, trust and updates.
 */
import { join } from 'node:path'
import type { BackendName } from '../src/backends/types.js'

export interface McpServer {
  command: string
  args: string[]
}

export interface Agent {
  /** Its name here; the backend's name if only one of its packages is tested. */
  title: string
  name: BackendName
  /** The npm package. */
  packageName: string
  /** Whether the package is discontinued. */
  isFormer?: true
  binary: string
  /** The subcommands we start; '' for the command itself. */
  subcommands: string[]
  model: string
  /** Whose errors the scripted model imitates. */
  provider: 'anthropic' | 'openai' | 'google'
  /** Configuration files below the home directory. The MCP server is started if the agent supports MCP. */
  homeFiles(modelUrl: string, mcpServer?: McpServer): Record<string, string>
  environment(modelUrl: string, home: string): Record<string, string>
  /** The tool that runs a shell command, as the model calls it. */
  shellTool: { name: string; input(command: string): Record<string, unknown> }
  /** A harmless tool, used as the only one allowed. */
  harmlessTool: string
  /** A sentence from the agent's own system prompt. */
  ownPrompt: string
}

const dummyKey = 'not-a-real-key'

/** The text of the operator's command `/help`, and of a file that a prompt refers to. */
export const neverForTheModel = 'never-for-the-model-8153'
const command = `---\ndescription: A command of the operator\n---\n${neverForTheModel}\n`

const claude: Agent = {
  title: 'claude',
  name: 'claude',
  packageName: '@anthropic-ai/claude-code',
  binary: 'claude',
  subcommands: [''],
  model: 'claude-sonnet-4-5',
  provider: 'anthropic',
  homeFiles: (_modelUrl, mcpServer) => ({
    '.claude/commands/help.md': command,
    ...(mcpServer && { '.claude.json': JSON.stringify({ mcpServers: { idle: mcpServer } }) }),
  }),
  environment: (modelUrl) => ({
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: dummyKey,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    // Claude Code refuses to skip permissions as root outside a sandbox, and tests often run as root.
    IS_SANDBOX: '1',
  }),
  shellTool: { name: 'Bash', input: (command) => ({ command, description: 'Run it' }) },
  harmlessTool: 'Read',
  ownPrompt: 'Use the instructions below and the tools available to you to assist the user.',
}

const codex: Agent = {
  title: 'codex',
  name: 'codex',
  packageName: '@openai/codex',
  binary: 'codex',
  subcommands: ['exec', 'exec resume', 'app-server'],
  // A model of the family that gets its tools as plain functions.
  model: 'gpt-5.5',
  provider: 'openai',
  homeFiles: (modelUrl, mcpServer) => ({
    '.codex/prompts/help.md': command,
    '.codex/config.toml': [
      'model_provider = "scripted"',
      '[model_providers.scripted]',
      'name = "Scripted"',
      `base_url = "${modelUrl}/v1"`,
      'wire_api = "responses"',
      'env_key = "OPENAI_API_KEY"',
      '[analytics]',
      'enabled = false',
      '[features]',
      'plugins = false',
      ...(mcpServer
        ? [
            '[mcp_servers.idle]',
            `command = ${JSON.stringify(mcpServer.command)}`,
            `args = ${JSON.stringify(mcpServer.args)}`,
          ]
        : []),
      '',
    ].join('\n'),
  }),
  environment: () => ({ OPENAI_API_KEY: dummyKey }),
  shellTool: { name: 'exec_command', input: (command) => ({ cmd: command }) },
  harmlessTool: 'view_image',
  ownPrompt: 'You are Codex',
}

const gemini: Agent = {
  title: 'gemini',
  name: 'gemini',
  packageName: '@google/gemini-cli',
  binary: 'gemini',
  subcommands: [''],
  // Explicit, because the automatic choice asks a second model.
  model: 'gemini-2.5-flash',
  provider: 'google',
  homeFiles: (_modelUrl, mcpServer) => ({
    '.gemini/commands/help.toml': `description = "A command of the operator"\nprompt = "${neverForTheModel}"\n`,
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      ...(mcpServer && { mcpServers: { idle: mcpServer } }),
    }),
  }),
  environment: (modelUrl) => ({ GEMINI_API_KEY: dummyKey, GOOGLE_GEMINI_BASE_URL: modelUrl }),
  shellTool: { name: 'run_shell_command', input: (command) => ({ command, description: 'Run it' }) },
  harmlessTool: 'read_file',
  ownPrompt: 'specializing in software engineering tasks.',
}

const opencode: Agent = {
  title: 'opencode',
  name: 'opencode',
  packageName: 'opencode-ai',
  binary: 'opencode',
  subcommands: ['run', 'serve'],
  model: 'scripted/model',
  provider: 'openai',
  homeFiles: (modelUrl, mcpServer) => ({
    'opencode.json': JSON.stringify({
      share: 'disabled',
      ...(mcpServer && { mcp: { idle: { type: 'local', command: [mcpServer.command, ...mcpServer.args] } } }),
      provider: {
        scripted: {
          npm: '@ai-sdk/openai-compatible',
          name: 'Scripted',
          options: { baseURL: `${modelUrl}/v1`, apiKey: dummyKey },
          models: { model: { name: 'Model', limit: { context: 1_000_000, output: 32_000 } } },
        },
      },
    }),
    '.config/opencode/command/help.md': command,
    // It installs a plug-in package in the background at every start; this keeps that on loopback.
    '.npmrc': `registry=${modelUrl}/\n`,
  }),
  environment: (_modelUrl, home) => ({
    OPENCODE_CONFIG: join(home, 'opencode.json'),
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  }),
  shellTool: { name: 'bash', input: (command) => ({ command, description: 'Run it' }) },
  harmlessTool: 'read',
  ownPrompt: 'You are opencode',
}

const pi: Agent = {
  title: 'pi',
  name: 'pi',
  packageName: '@earendil-works/pi-coding-agent',
  binary: 'pi',
  subcommands: [''],
  model: 'anthropic/claude-sonnet-4-5',
  provider: 'anthropic',
  homeFiles: (modelUrl) => ({
    '.pi/agent/prompts/help.md': command,
    '.pi/agent/models.json': JSON.stringify({ providers: { anthropic: { baseUrl: modelUrl } } }),
  }),
  environment: () => ({ ANTHROPIC_API_KEY: dummyKey, PI_OFFLINE: '1', PI_TELEMETRY: '0' }),
  shellTool: { name: 'bash', input: (command) => ({ command }) },
  harmlessTool: 'read',
  ownPrompt: 'operating inside pi',
}

/** Its name before version 0.74. */
export const formerPi: Agent = {
  ...pi,
  title: 'pi-former',
  packageName: '@mariozechner/pi-coding-agent',
  isFormer: true,
}

const byName: Record<BackendName, Agent> = { claude, codex, gemini, opencode, pi }

/** One of each. */
export const agents: Agent[] = Object.values(byName)

export function agentOf(name: BackendName): Agent {
  return byName[name]
}
