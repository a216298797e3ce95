// What the agent is told at a heartbeat, and how its answer is parsed: the two must agree.

/** The word with which the agent says there is nothing to report. */
export const HEARTBEAT_TOKEN = 'HEARTBEAT_OK'

/** The most text that may accompany the word and still not count as news. */
const QUIET_CHARACTERS = 300

/** A check should not print more than this. */
const CHECK_CHARACTERS = 8_000

/** For the system prompt, ahead of the content of heartbeat.md. */
export const HEARTBEAT_CONTRACT = `The gateway wakes you from time to time, without anybody having written. Look at what is \
listed here, and do what it says. When nothing needs the person's attention, answer with ${HEARTBEAT_TOKEN} and nothing \
else: then nobody is disturbed. Otherwise leave that word out and write what the person should know; it is sent to them \
as a message. Do not repeat what you have told them before, and do not make up work.`

/** The prompt of a heartbeat. `found` is the output of the operator's check. */
export function heartbeatPrompt(found: string): string {
  const asked = `Heartbeat: look at your list under "Heartbeat". If nothing needs attention, answer ${HEARTBEAT_TOKEN}.`
  if (found === '') return asked
  const cut = found.length > CHECK_CHARACTERS ? `${found.slice(0, CHECK_CHARACTERS)}\n[… cut …]` : found
  return `${asked}\n\nA check that ran before has printed:\n\n${cut}`
}

/** Whether heartbeat.md contains anything besides headings, comments and empty list items. */
export function hasTasks(markdown: string): boolean {
  return markdown
    .replaceAll(/<!--[\s\S]*?(?:-->|$)/g, '')
    .split('\n')
    .some((line) => !/^\s*#{1,6}(?:\s|$)/.test(line) && /[\p{L}\p{N}]/u.test(line))
}

/**
 * The part of an answer meant for the person; undefined if there is none. A file or a link next to the word counts as
 * news.
 */
export function readHeartbeatAnswer(answer: string, hasFiles: boolean): string | undefined {
  const text = answer.trim()
  const rest = text.replace(AT_THE_START, '').replace(AT_THE_END, '').trim()
  if (hasFiles || /https?:\/\//i.test(rest)) return rest
  const isAcknowledged = rest !== text
  return rest === '' || (isAcknowledged && rest.length <= QUIET_CHARACTERS) ? undefined : rest
}

// Including the marks that agents like to put around a word, and a full stop after it.
const AT_THE_START = new RegExp(`^[*_\`"'~([]{0,4}${HEARTBEAT_TOKEN}(?![A-Za-z0-9])[*_\`"'~.!)\\]]{0,4}`)
const AT_THE_END = new RegExp(`(?<![A-Za-z0-9])[*_\`"'~([]{0,4}${HEARTBEAT_TOKEN}[*_\`"'~.!)\\]]{0,4}$`)
