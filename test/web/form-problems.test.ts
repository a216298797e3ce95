import { expect, it } from 'vitest'
import { formProblems } from '../../web/src/form-problems.js'

const FIELDS = ['model', 'allowed_tools', 'git.url']

it('are shown next to their fields', () => {
  const problems = [
    { path: 'allowed_tools.0', message: 'invalid tool' },
    { path: 'allowed_tools.1', message: 'invalid, too' },
    { path: 'git.url', message: 'too long' },
  ]
  const { words, of } = formProblems({ error: 'Invalid request.', problems }, FIELDS)
  expect([words, of('allowed_tools'), of('git.url'), of('model')]).toEqual([
    'Not saved. Check the marked fields.',
    'invalid tool; invalid, too',
    'too long',
    undefined,
  ])
})

it('are shown above the form if one is about something else, or about no field', () => {
  const problems = [{ path: 'pod.name', message: 'is not valid' }]
  expect([
    formProblems({ error: 'pod.name: is not valid', problems }, FIELDS).words,
    formProblems({ error: 'The project shop is in use.' }, FIELDS).words,
    formProblems({}, FIELDS).words,
  ]).toEqual(['pod.name: is not valid', 'The project shop is in use.', undefined])
})
