import type { GatewayConfig } from '../config.js'
import { discordFindings, type Finding } from './discord-findings.js'
import { describeProblem } from '../channels/discord/identity.js'

const TIMEOUT_MS = 20_000

/** The part of `aetheel doctor` about Discord. Contract: never rejects, and leaves no connection behind. */
export async function discordReport(
  config: GatewayConfig,
  timeoutMs: number = TIMEOUT_MS,
): Promise<{ text: string; isHealthy: boolean }> {
  const token = config.discordBotToken
  if (token === undefined) {
    return { text: '- Discord: not configured; run "aetheel init" or see docs/discord.md', isHealthy: true }
  }
  // Loaded only where there is something to look at: discord.js is large.
  const { surveyDiscord } = await import('./discord-survey.js')
  try {
    return render(discordFindings(config, await surveyDiscord(config, token, timeoutMs)))
  } catch (error) {
    return { text: `✗ ${describeProblem(error, config.discordApiUrl)}`, isHealthy: false }
  }
}

function render(findings: Finding[]): { text: string; isHealthy: boolean } {
  const lines = findings.flatMap(({ mark, text, details }) => [
    `${mark} Discord: ${text}`,
    ...details.map((detail) => `    ${detail}`),
  ])
  return { text: lines.join('\n'), isHealthy: findings.every(({ mark }) => mark !== '✗') }
}
