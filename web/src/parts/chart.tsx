import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { type ChartModel, drawnSeries } from '../usage-model.js'
import { useColours } from '../use-colours.js'

const HEIGHT = 190
const FONT = '12px system-ui, sans-serif'
/** The maximum width of a bar. */
const WIDEST_BAR = 44

/** Contract: only a picture. The table next to it has the same data. */
export function Chart({
  model,
  labels,
  labelOf,
}: {
  model: ChartModel
  labels: string[]
  /** The label as the axis shows it. */
  labelOf: (label: string) => string
}) {
  const place = useRef<HTMLDivElement>(null)
  const [hovered, setHovered] = useState<number>()
  const colours = useColours()
  useEffect(() => {
    if (!place.current) return undefined
    const target = place.current
    const plot = draw(target, model, labels.map(labelOf), setHovered)
    const sizes = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT }))
    sizes.observe(target)
    return () => {
      sizes.disconnect()
      plot.destroy()
    }
  }, [model, labels, colours])
  const label = hovered === undefined ? undefined : labels[hovered]
  return (
    <>
      <div class="chart" role="img" aria-label={`${model.title}, a chart; the table has the same data`} ref={place} />
      <ul class="legend">
        {model.series.map(({ label: title, colour, values }) => {
          const value = hovered === undefined ? undefined : values[hovered]
          return (
            <li key={title} class={colour}>
              {title}
              {value !== undefined && value !== null && <strong>{model.format(value)}</strong>}
            </li>
          )
        })}
        {label !== undefined && <li class="at">{label}</li>}
      </ul>
    </>
  )
}

function draw(
  target: HTMLElement,
  model: ChartModel,
  labels: string[],
  onHover: (index: number | undefined) => void,
): uPlot {
  const drawn = drawnSeries(model)
  const bars = uPlot.paths.bars?.({ size: [0.7, WIDEST_BAR], radius: 0.12 })
  const axis = { stroke: colourOf(target, 'muted'), font: FONT, ticks: { show: false } }
  return new uPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: model.form === 'lines' } },
      scales: {
        x: { time: false, range: () => [-0.5, labels.length - 0.5] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 28,
          space: 64,
          incrs: [1, 2, 5, 7, 14, 30, 60, 90],
          values: (_, places) => places.map((index) => labels[index] ?? ''),
        },
        {
          ...axis,
          grid: { stroke: colourOf(target, 'line'), width: 1 },
          size: model.steps ? 76 : 48,
          ...(model.steps && { incrs: model.steps }),
          values: (_, places) => places.map((value) => model.format(value)),
        },
      ],
      series: [
        {},
        ...drawn.map(({ index }) => {
          const colour = colourOf(target, model.series[index]?.colour ?? 'muted')
          return model.form === 'lines'
            ? { stroke: colour, width: 2, points: { show: true, size: 5, fill: colour } }
            : { stroke: colour, fill: colour, width: 0, points: { show: false }, ...(bars && { paths: bars }) }
        }),
      ],
      hooks: { setCursor: [({ cursor: { idx } }) => onHover(idx ?? undefined)] },
    },
    [labels.map((_, index) => index), ...drawn.map(({ values }) => values)],
    target,
  )
}

/** The current value of a colour. The variable itself contains the colours of both themes. */
function colourOf(target: HTMLElement, name: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(--${name})`
  target.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
