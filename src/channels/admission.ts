// `/allow` and `/disallow`: let people in while the gateway runs, in addition to those in the configuration.

import { oneLine } from '../core/one-line.js'
import type { Admissions, Person } from './types.js'

export const ADMISSION_ACTIONS = ['allow', 'disallow'] as const

export type AdmissionAction = (typeof ADMISSION_ACTIONS)[number]

interface AdmissionRequest {
  action: AdmissionAction
  /** Undefined if nobody was named, or why it is unclear who was. */
  person: Person | { problem: string } | undefined
  by: string
  /** People who were let in by a command may talk, but cannot let others in. */
  mayAdmit: boolean
  /** How the configuration gives the person access, which a command cannot change. */
  configuredAs(personId: string): string | undefined
  /** Who may use the command, as the beginning of a sentence. */
  admitters: string
}

const NAME_CHARACTERS = 80

/** The action and the rest of the line, if it is one of these commands. */
export function readAdmission(line: string): { action: AdmissionAction; argument: string } | undefined {
  const [, word = '', argument = ''] = /^\/(\S+)\s*(.*)$/s.exec(line.trim()) ?? []
  const action = ADMISSION_ACTIONS.find((known) => known === word.toLowerCase())
  return action && { action, argument: argument.trim() }
}

/** Carries the command out. Returns the answer for the person. */
export async function admit(request: AdmissionRequest, admissions: Admissions): Promise<string> {
  const { action, person, by, mayAdmit, configuredAs, admitters } = request
  if (!mayAdmit) return `${admitters} may let people in.`
  if (person === undefined) return listText(action, await admissions.list())
  if ('problem' in person) return person.problem
  const name = oneLine(person.name, NAME_CHARACTERS)
  const configured = configuredAs(person.id)
  if (action === 'allow') {
    if (configured !== undefined) return `${name} already has access (${configured}).`
    const isNew = await admissions.add({ id: person.id, name }, by)
    return isNew ? `${name} now has access. /disallow revokes it.` : `${name} was already let in.`
  }
  const isRemoved = await admissions.remove(person.id, by)
  if (configured === undefined) return isRemoved ? `${name} no longer has access.` : `${name} was not let in.`
  return `${name} still has access (${configured}). Change that in aetheel.json5 and restart the gateway.`
}

function listText(action: AdmissionAction, admitted: Awaited<ReturnType<Admissions['list']>>): string {
  const usage = `Name a person after /${action}.`
  if (admitted.length === 0) return `Nobody has been let in by /allow. ${usage}`
  const lines = admitted.map(({ personId, name, admittedBy }) => `${name} (${personId}), by ${admittedBy}`)
  return [`Let in by /allow:`, ...lines, usage].join('\n')
}
