import {
  type APIActionRowComponent,
  type APIButtonComponentWithCustomId,
  type APIMessage,
  ButtonStyle,
  ComponentType,
} from 'discord.js'
import { BUTTON_ACTIONS, type ButtonAction } from '../types.js'

const LABELS: Record<ButtonAction, string> = { stop: 'Stop', retry: 'Retry' }
const STYLES = { stop: ButtonStyle.Danger, retry: ButtonStyle.Primary } as const

/** A row with one button. It carries the message it is about, and so still works after a restart. */
export function button(action: ButtonAction, messageId: string): APIActionRowComponent<APIButtonComponentWithCustomId> {
  const custom_id = `${action}:${messageId}`
  const one: APIButtonComponentWithCustomId = {
    type: ComponentType.Button,
    style: STYLES[action],
    label: LABELS[action],
    custom_id,
  }
  return { type: ComponentType.ActionRow, components: [one] }
}

export function readButton(customId: string): { action: ButtonAction; messageId: string } | undefined {
  const [name, messageId] = customId.split(':')
  const action = BUTTON_ACTIONS.find((known) => known === name)
  return action !== undefined && messageId ? { action, messageId } : undefined
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
