import type { GatewayConfig } from '../../config.js'
import { discordFindings } from './discord-findings.js'
import { type DoctorReport, renderFindings } from './findings.js'
import { describeProblem } from '../../channels/discord/identity.js'

const TIMEOUT_MS = 20_000

/**
 * The part of `aetheel doctor` about Discord. `admitted`: people let in with `/allow`.
 *
 * Contract: never rejects, and leaves no connection behind.
 */
export async function discordReport(
  config: GatewayConfig,
  admitted: string[] = [],
  timeoutMs: number = TIMEOUT_MS,
): Promise<DoctorReport> {
  const token = config.discordBotToken
  if (token === undefined) {
    return { text: '- Discord: not configured; run "aetheel init" or see docs/discord.md', isHealthy: true }
  }
  // Loaded lazily: discord.js is large.
  const { surveyDiscord } = await import('./discord-survey.js')
  try {
    const facts = { ...(await surveyDiscord(config, token, timeoutMs)), admitted }
    return renderFindings('Discord', discordFindings(config, facts))
  } catch (error) {
    return { text: `✗ ${describeProblem(error, config.discordApiUrl)}`, isHealthy: false }
  }
}
