import fc from 'fast-check'
import { render } from 'preact-render-to-string'
import { describe, expect, it } from 'vitest'
import { markdownNodes, safeUrl } from '../../web/src/markdown.js'
import { Markdown } from '../../web/src/parts/markdown.js'

/** All elements that a text may become, with their attributes. */
const ALLOWED: Record<string, string[]> = {
  ...Object.fromEntries(
    ['h3', 'h4', 'h5', 'h6', 'p', 'ul', 'li', 'blockquote', 'hr', 'br', 'strong', 'em', 'del', 'code'].map((tag) => [
      tag,
      [],
    ]),
  ),
  ...Object.fromEntries(['table', 'thead', 'tbody', 'tr', 'td'].map((tag) => [tag, []])),
  th: ['scope'],
  ol: ['start'],
  div: ['class'],
  span: ['class', 'title'],
  pre: ['class', 'tabIndex'],
  a: ['href', 'target', 'rel'],
}

interface Element {
  tag: string
  attributes: Record<string, string | number | null | undefined>
}

/** The elements of a node tree. Components without hooks are called. */
function elementsOf(node: unknown): Element[] {
  if (Array.isArray(node)) return node.flatMap(elementsOf)
  if (typeof node !== 'object' || node === null) return []
  const { type, props } = node as { type: unknown; props: Record<string, unknown> }
  if (typeof type === 'function') return elementsOf((type as (props: object) => unknown)(props))
  const { children, ...attributes } = props
  return [{ tag: String(type), attributes: attributes as Element['attributes'] }, ...elementsOf(children)]
}

function problemsOf(text: string): string[] {
  return elementsOf(markdownNodes(text)).flatMap(({ tag, attributes }) => {
    const allowed = ALLOWED[tag]
    if (!allowed) return [`<${tag}>`]
    const given = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null)
    const strange = given.filter(([name]) => !allowed.includes(name)).map(([name]) => `${tag}.${name}`)
    const { href, class: names } = attributes
    const leads = href === undefined || /^(https?:\/\/|mailto:)/.test(String(href)) ? [] : [`href ${String(href)}`]
    const classes = names === undefined || /^[\w\s-]*$/.test(String(names)) ? [] : [`class ${String(names)}`]
    return [...strange, ...leads, ...classes]
  })
}

const HOSTILE = fc.constantFrom(
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '<a href="javascript:alert(1)">x</a>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt&colon;alert(1))',
  '[x](&#106;avascript:alert(1))',
  '[x]( java\u0000script:alert(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](vbscript:x "onmouseover=alert(1)")',
  '![x](javascript:alert(1))',
  '![x](https://evil.example/pixel.png)',
  '<javascript:alert(1)>',
  '[x][r]\n\n[r]: javascript:alert(1)',
  '```"><script>alert(1)</script>\nx\n```',
  '```__proto__\nx\n```',
  '`<b>`',
  '| a | <b> |\n|---|---|\n| [x](javascript:1) | y |',
  '&lt;script&gt;',
  'https://example.org/?a=1&b="><script>',
)

const PIECES = fc.oneof(
  HOSTILE,
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '> ',
    '- ',
    '1. ',
    '# ',
    '* ',
    '**',
    '_',
    '~~',
    '`',
    '```\n',
    '```html\n',
    '\n',
    '\n\n',
    '    ',
    '- [x] ',
    '[',
    '](',
    ')',
    '<',
    '>',
    '"',
    '|',
  ),
)

const TEXTS = fc.array(PIECES, { maxLength: 30 }).map((pieces) => pieces.join(''))

describe('markdown', () => {
  it('becomes only harmless elements, whatever an agent writes', () => {
    fc.assert(
      fc.property(TEXTS, (text) => {
        expect(problemsOf(text)).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('links only to web and mail addresses', () => {
    const schemes = fc.constantFrom(
      'javascript',
      'JAVASCRIPT',
      'data',
      'vbscript',
      'file',
      'blob',
      'about',
      ' javascript',
      '\tjavascript',
      'java\nscript',
    )
    fc.assert(
      fc.property(schemes, fc.string(), (scheme, rest) => {
        expect(safeUrl(`${scheme}:${rest}`)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
    expect(['https://a.example/x', 'mailto:a@b.example', '/projects', '#/now', '//evil.example'].map(safeUrl)).toEqual([
      'https://a.example/x',
      'mailto:a@b.example',
      undefined,
      undefined,
      undefined,
    ])
  })

  it.each([
    ['# Plan', '<h3>Plan</h3>'],
    ['a **b** _c_ ~~d~~ `e`', '<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>'],
    ['3. a\n4. b', '<ol start="3"><li>a</li><li>b</li></ol>'],
    ['- [x] a\n- [ ] b', '<ul><li>☑ a</li><li>☐ b</li></ul>'],
    ['a &amp; b &lt; c &#39;d&#x27;', "<p>a &amp; b &lt; c 'd'</p>"],
    ['x <b>y</b>', '<p>x &lt;b>y&lt;/b></p>'],
    [
      '![a cat](https://a.example/cat.png)',
      '<p><a href="https://a.example/cat.png" target="_blank" rel="noopener noreferrer">a cat</a></p>',
    ],
    ['[here](/x)', '<p><span title="/x">here</span></p>'],
    ['```unknown\nconst a\n```', '<pre class="code" tabindex="0"><code>const a</code></pre>'],
    [
      '```js\nconst a\n```',
      '<pre class="code" tabindex="0"><code><span class="hljs-keyword">const</span> a</code></pre>',
    ],
  ])('reads %j', (text, html) => {
    expect(render(<>{markdownNodes(text)}</>)).toBe(html)
  })

  it.each(['> ', '- ', '1. ', '_a', '**a', '[', '![', '[a](', '<div>', '`a', 'a_b*c', '\n> a'])(
    'shows 30,000 characters of %j, and loses none of its letters',
    (piece) => {
      const text = piece.repeat(30_000 / piece.length)
      const html = render(<>{markdownNodes(`${text} end`)}</>)
      expect([html.includes('end'), html.replaceAll(/<[^>]*>/g, '').match(/a/g)?.length]).toEqual([
        true,
        text.match(/a/g)?.length,
      ])
    },
  )

  it('shows part of a long text, and its end while it still grows', () => {
    const text = `first ${'x'.repeat(100_000)} last`
    const shown = [<Markdown text={text} />, <Markdown text={text} keeps="end" />].map((node) => render(node))
    expect(shown.map((html) => [html.includes('first'), html.includes('last'), html.length < 40_000])).toEqual([
      [true, false, true],
      [false, true, true],
    ])
  })
})
