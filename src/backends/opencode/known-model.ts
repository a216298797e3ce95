// OpenCode identifies a model as provider/model. People and programs also write only the model's name.

import type { AgentEvent, AgentRequest } from '../types.js'
import type { Failed } from '../engine/failures.js'
import { namesOption } from '../engine/command-args.js'
import { refusedRun } from '../engine/refusals.js'

interface ModelOptions {
  /** The configured model. */
  model?: string | undefined
  /** The models OpenCode lists, each as `provider/model`. */
  models(): Promise<string[]>
  now: () => number
}

type Run = (request: AgentRequest) => AsyncGenerator<AgentEvent, void, undefined>

export const MODEL_OPTION = { names: ['-m', '--model'], takesValue: true }
/** Anything else is refused as with every agent. */
const BARE_NAME = /^[A-Za-z\d][\w.:@-]{0,99}$/
const NAMED_MODELS = 5

/** Runs the request with the full name of its model. Refuses it if OpenCode lists no such model. */
export async function* withWholeModel(
  request: AgentRequest,
  { model: configured, models, now }: ModelOptions,
  run: Run,
): AsyncGenerator<AgentEvent, void, undefined> {
  const isInTemplate = namesOption(request.command?.args ?? [], MODEL_OPTION.names)
  const model = request.model ?? (isInTemplate ? undefined : configured)
  if (model === undefined || !BARE_NAME.test(model)) {
    yield* run(request)
    return
  }
  // A pod may have other models than this machine.
  const known = request.pod ? [] : await models()
  const whole = known.find((name) => nameIn(name) === model)
  if (whole === undefined) yield* refusedRun(unknownModel(model, known), now)
  else yield* run({ ...request, model: whole })
}

function unknownModel(model: string, known: string[]): Failed {
  const likely = known.filter((name) => nameIn(name).includes(model) || model.includes(nameIn(name)))
  const named = (likely.length > 0 ? likely : known).slice(0, NAMED_MODELS).join(', ')
  const advice = `Use provider/model, such as ${named === '' ? 'openai/gpt-4o' : named}.`
  const message = `OpenCode lists no model named ${JSON.stringify(model)}. ${advice}`
  return { reason: 'model_unknown', message, isLasting: true }
}

function nameIn(whole: string): string {
  return whole.slice(whole.indexOf('/') + 1)
}
