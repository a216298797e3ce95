import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readMediaTokens } from '../../src/media/media-tokens.js'
import { HEARTBEAT_CONTRACT } from '../../src/prompt/heartbeat.js'
import type { MarkdownConfig } from '../../src/prompt/markdown-config-loader.js'
import { type PromptContext, SystemPromptAssembler } from '../../src/prompt/system-prompt-assembler.js'

const RUNS = { numRuns: 200 }
const KINDS: Array<PromptContext['kind']> = ['message', 'heartbeat', 'cron', 'hook', 'webhook']
/** In the order of the prompt; skills are between tools and memory. */
const ORDER = ['identity', 'soul', 'user', 'agents', 'tools', 'skills', 'memory', 'heartbeat'] as const

const anyText = fc.string({ unit: 'binary' })
const anyKind = fc.constantFrom(...KINDS)
const anySkills = fc.array(fc.record({ name: anyText, text: anyText }), { maxLength: 5 })
const anyMarkdown: fc.Arbitrary<MarkdownConfig> = fc.record(
  {
    identity: anyText,
    soul: anyText,
    user: anyText,
    memory: anyText,
    tools: anyText,
    agents: anyText,
    heartbeat: anyText,
    skills: anySkills,
  },
  { requiredKeys: ['skills'] },
)

const assemble = (markdown: MarkdownConfig, kind: PromptContext['kind'] = 'message') =>
  new SystemPromptAssembler().assemble(markdown, { kind })

describe('SystemPromptAssembler', () => {
  it('puts each file under its heading, in one order', () => {
    const skills = [
      { name: 'deploy', text: 'Use the script.\n' },
      { name: 'review', text: 'Be kind.' },
    ]
    const files = { heartbeat: 'h', memory: 'm', agents: 'a', tools: 't', user: 'u', soul: 's', identity: '\ni\n' }
    expect(assemble({ ...files, skills }, 'heartbeat')).toEqual(
      [
        ...['# Identity', 'i', '# Soul', 's', '# User', 'u', '# Agents', 'a', '# Tools', 't'],
        ...['# Skills', '## deploy', 'Use the script.', '## review', 'Be kind.'],
        ...['# Memory', 'm', '# Heartbeat', HEARTBEAT_CONTRACT, 'h'],
      ].join('\n\n'),
    )
  })

  it('is empty when nothing is there', () => {
    expect(assemble({ skills: [] })).toEqual('')
  })

  it('leaves out blank parts, with their headings', () => {
    expect(assemble({ identity: ' \n', soul: 's', memory: '', skills: [{ name: 'empty', text: '\n' }] })).toEqual(
      '# Soul\n\ns',
    )
  })

  it.each(KINDS)('for the kind %s, has the heartbeat file only when it is a heartbeat', (kind) => {
    const prompt = assemble({ soul: 's', heartbeat: 'Look at the mail.', skills: [] }, kind)
    expect(prompt.includes('Look at the mail.')).toEqual(kind === 'heartbeat')
  })

  it.each(KINDS)('for the kind %s, says before the memory how to send a file, when one can be sent', (kind) => {
    const markdown = { tools: 't', memory: 'm', skills: [{ name: 'deploy', text: 'd' }] }
    const without = assemble(markdown, kind)
    const [before, after] = new SystemPromptAssembler()
      .assemble(markdown, { kind, canSendFiles: true })
      .split(/# Files\n\n[^#]*\n\nMEDIA:<path>\n\n[^#]*\n\n(?=#)/)
    expect({ joined: `${before}${after}`, next: after?.slice(0, 11) }).toEqual({
      joined: without,
      next: '# Memory\n\nm',
    })
  })

  it('explains the line that sends a file', () => {
    const prompt = new SystemPromptAssembler().assemble({ skills: [] }, { kind: 'message', canSendFiles: true })
    expect(readMediaTokens(prompt).media).toEqual(['<path>'])
  })

  it('gives the same text for the same files, whatever order they were found in', () => {
    fc.assert(
      fc.property(anyMarkdown, anyKind, fc.boolean(), (markdown, kind, canSendFiles) => {
        const { skills, ...files } = structuredClone(markdown)
        const reversed = { skills, ...Object.fromEntries(Object.entries(files).toReversed()) }
        const context = { kind, canSendFiles }
        const [first, second] = [new SystemPromptAssembler(), new SystemPromptAssembler()]
        expect(first.assemble(reversed, context)).toEqual(second.assemble(markdown, context))
      }),
      RUNS,
    )
  })

  it('contains the text of every file and skill', () => {
    fc.assert(
      fc.property(anyMarkdown, ({ skills, ...files }) => {
        const prompt = assemble({ skills, ...files }, 'heartbeat')
        const texts = [...Object.values(files), ...skills.map(({ text }) => text)]
        expect(texts.filter((text) => !prompt.includes(text.trim()))).toEqual([])
      }),
      RUNS,
    )
  })

  it('keeps the order of the sections, whichever of them are there', () => {
    fc.assert(
      fc.property(anyMarkdown, fc.subarray([...ORDER]), (texts, present) => {
        const markdown: MarkdownConfig = { skills: [] }
        for (const name of present) {
          const text = (own: string) => `<${name}>${own.replaceAll(/[<>]/g, '')}`
          if (name === 'skills') markdown.skills = [{ name: 'one', text: text('') }]
          else markdown[name] = text(texts[name] ?? '')
        }
        const found = [...assemble(markdown, 'heartbeat').matchAll(/<(\w+)>/g)].map(([, name]) => name)
        expect(found).toEqual(present)
      }),
      RUNS,
    )
  })
})
