import type { Figures, GivenProvider } from '../../../src/client/aetheel-client.js'
import type { PageProps } from '../frame/pages.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { type ChartModel, chartsOf, type Figure, type FigureRow, lastDays, rowsOf } from '../usage-model.js'
import { formatCount, formatDuration } from '../format.js'
import { Chart } from '../parts/chart.js'
import { EmptyState } from '../parts/empty-state.js'
import { ErrorNote } from '../parts/error-note.js'
import { Money } from '../parts/numbers.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { Table } from '../parts/table.js'
import { Tile, Tiles } from '../parts/tiles.js'
import { hrefOf } from '../router.js'
import { useResource } from '../use-resource.js'

const RANGES = [7, 30, 90, 365]
const DEFAULT_DAYS = 30
const GROUPS: Array<[Figures['group'], string]> = [
  ['day', 'Day (UTC)'],
  ['agent', 'Agent'],
  ['project', 'Project'],
]

/** Kept in the URL, so that a view can be bookmarked and shared. */
interface Choice {
  days: number
  group: Figures['group']
  agent: string
  project: string
}

export function UsagePage({ route: { query } }: PageProps) {
  const choice: Choice = {
    days: RANGES.find((days) => String(days) === query.get('days')) ?? DEFAULT_DAYS,
    group: GROUPS.find(([group]) => group === query.get('group'))?.[0] ?? 'day',
    agent: query.get('agent') ?? '',
    project: query.get('project') ?? '',
  }
  const around = useResource(async () => {
    const [agents, projects] = await Promise.all([api.agents.list(), api.projects.list()])
    return { agents, projects }
  }, [])
  const { agents = [], projects = [] } = around.value ?? {}
  const { value, error, reload } = useResource(
    () =>
      api.figures({
        ...lastDays(choice.days, Date.now()),
        group: choice.group,
        // The gateway rejects an unknown one with a clear error.
        ...(choice.agent !== '' && { agent: choice.agent as GivenProvider }),
        ...(choice.project !== '' && { project: choice.project }),
      }),
    [choice.days, choice.group, choice.agent, choice.project],
  )
  const names = new Map(projects.map(({ id, name }) => [id, name]))
  return (
    <Page title="Usage">
      <div class="filters">
        <Choices
          label="Range"
          name="days"
          choice={choice}
          options={RANGES.map((days) => [String(days), `${days} days`])}
        />
        <Choices label="Group by" name="group" choice={choice} options={GROUPS} />
        <Choices
          label="Agent"
          name="agent"
          choice={choice}
          options={[['', 'All'], ...agents.map(({ provider: name }) => [name, agentName(name)] as const)]}
        />
        <Choices
          label="Project"
          name="project"
          choice={choice}
          options={[['', 'All'], ...projects.map(({ id, name }) => [id, name] as const)]}
        />
      </div>
      {(error ?? around.error) !== undefined && (
        <ErrorNote
          words={error ?? around.error ?? ''}
          onRetry={() => {
            reload()
            around.reload()
          }}
        />
      )}
      {!value && error === undefined && <Skeleton />}
      {value?.total.runs === 0 && (
        <EmptyState icon="chart" title="No runs in this period">
          <p>
            Choose a longer period, or <a href={hrefOf('new')}>start a conversation</a>.
          </p>
        </EmptyState>
      )}
      {value && value.total.runs > 0 && <Charts key={JSON.stringify(choice)} figures={value} names={names} />}
    </Page>
  )
}

function Choices({
  label,
  name,
  choice,
  options,
}: {
  label: string
  name: keyof Choice
  choice: Choice
  options: ReadonlyArray<readonly [string, string]>
}) {
  const value = String(choice[name])
  return (
    <label class="inline">
      {label}
      <select
        value={value}
        onChange={(event) => {
          const next = { ...choice, [name]: event.currentTarget.value }
          const query = Object.entries(next).filter(([, chosen]) => chosen !== '')
          location.hash = `${hrefOf('usage')}?${new URLSearchParams(query.map(([key, chosen]) => [key, String(chosen)])).toString()}`
        }}
      >
        {!options.some(([option]) => option === value) && <option value={value}>{value}</option>}
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  )
}

function Charts({ figures, names }: { figures: Figures; names: ReadonlyMap<string, string> }) {
  const { total, group } = figures
  const rows = rowsOf(figures, names)
  const charts = chartsOf(rows, figures)
  return (
    <>
      <Tiles>
        <Tile title="Runs">{total.runs}</Tile>
        <Tile title="Answered">{Math.floor((100 * total.answered) / total.runs)} %</Tile>
        <Tile title="Median duration">{time(total.duration_ms.p50)}</Tile>
        <Tile title="Median first text">{time(total.first_text_ms.p50)}</Tile>
        <Tile title="Tokens in / out">
          {formatCount(total.input_tokens)} / {formatCount(total.output_tokens)}
        </Tile>
        <Tile title="Cost">
          <Money usd={total.priced_runs === 0 ? null : total.cost_usd} />
        </Tile>
      </Tiles>
      <div class="charts">
        {charts.map((model) => (
          <ChartCard key={model.title} model={model} rows={rows} total={total} group={group} />
        ))}
      </div>
    </>
  )
}

function ChartCard({
  model,
  rows,
  total,
  group,
}: {
  model: ChartModel
  rows: FigureRow[]
  total: Figure
  group: Figures['group']
}) {
  const groupTitle = { day: 'Day (UTC)', agent: 'Agent', project: 'Project' }[group]
  return (
    <section class="card stack" aria-label={model.title}>
      <h2>{model.title}</h2>
      {model.series.length === 0 ? (
        <p class="muted">None in this period.</p>
      ) : (
        <>
          <Chart
            model={model}
            labels={rows.map(({ label }) => label)}
            labelOf={group === 'day' ? shortDay : shortName}
          />
          <details>
            <summary>Table</summary>
            <Table
              caption={`${model.title} by ${group}`}
              rows={[...rows, { label: 'Total', figure: total }]}
              keyOf={({ label }) => label}
              columns={[
                { title: groupTitle, cell: ({ label }) => label },
                ...model.columns.map(({ title, value }) => ({
                  title,
                  isNumber: true,
                  cell: ({ figure }: FigureRow) => value(figure),
                })),
              ]}
            />
          </details>
        </>
      )}
    </section>
  )
}

function time(ms: number | null): string {
  return ms === null ? '–' : formatDuration(ms)
}

const LONGEST_NAME = 14

function shortName(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name
}

/** As "16 Nov". */
function shortDay(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
}
