// Findings of "doctor".

export interface Finding {
  /** `!` may be intended, `✗` must be fixed. */
  mark: '✓' | '!' | '✗'
  text: string
  details: string[]
}

export interface DoctorReport {
  text: string
  isHealthy: boolean
}

export function good(text: string): Finding {
  return { mark: '✓', text, details: [] }
}

export function doubtful(text: string, advice: string): Finding {
  return { mark: '!', text, details: [advice] }
}

export function bad(text: string, advice: string): Finding {
  return { mark: '✗', text, details: [advice] }
}

export function renderFindings(channel: string, findings: Finding[]): DoctorReport {
  const lines = findings.flatMap(({ mark, text, details }) => [
    `${mark} ${channel}: ${text}`,
    ...details.map((detail) => `    ${detail}`),
  ])
  return { text: lines.join('\n'), isHealthy: findings.every(({ mark }) => mark !== '✗') }
}
