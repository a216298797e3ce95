import {
  type APIActionRowComponent,
  type APIButtonComponentWithCustomId,
  type APIMessage,
  ButtonStyle,
  ComponentType,
} from 'discord.js'
import { BUTTON_ACTIONS, type ButtonAction, type Question } from '../types.js'

export type Row = APIActionRowComponent<APIButtonComponentWithCustomId>

const BUTTON_STYLES = {
  stop: { label: 'Stop', style: ButtonStyle.Danger },
  retry: { label: 'Retry', style: ButtonStyle.Primary },
  continue: { label: 'Continue', style: ButtonStyle.Primary },
  allow: { label: 'Allow', style: ButtonStyle.Success },
  always: { label: 'Always allow this', style: ButtonStyle.Secondary },
  deny: { label: 'Deny', style: ButtonStyle.Danger },
} as const satisfies Record<ButtonAction, object>

/** A row with one button. It carries the id of its message, so it still works after a restart. */
export function button(action: ButtonAction, messageId: string): Row {
  return rowOf([action], messageId)
}

/** The answers to a question. */
export function answerButtons({ id, canRemember }: Question): Row {
  return rowOf(canRemember ? ['allow', 'always', 'deny'] : ['allow', 'deny'], id)
}

function rowOf(actions: ButtonAction[], id: string): Row {
  const components = actions.map((action) => ({
    type: ComponentType.Button as const,
    ...BUTTON_STYLES[action],
    custom_id: `${action}:${id}`,
  }))
  return { type: ComponentType.ActionRow, components }
}

/** `id` is the id of the message or question the button belongs to. */
export function readButton(customId: string): { action: ButtonAction; id: string } | undefined {
  const [name, id] = customId.split(':')
  const action = BUTTON_ACTIONS.find((known) => known === name)
  return action !== undefined && id ? { action, id } : undefined
}

export function hasButton(
  { components = [] }: Pick<APIMessage, 'components'>,
  action: ButtonAction,
  id: string,
): boolean {
  return components.some(
    (row) =>
      row.type === ComponentType.ActionRow &&
      row.components.some((one) => 'custom_id' in one && one.custom_id === `${action}:${id}`),
  )
}
