import { h } from 'preact'
import { address, matches, rate } from './state.js'
import { layers, place } from './layout.js'
import { Empty, Section, Table, stateCell, useNarrow } from './parts.jsx'

// A graph has nodes { id, name, column, state, view, note } and links { from, to, rate, state }.

// edgeGraph is an edge with its services and their backends.
export function edgeGraph(node, known) {
  const nodes = [{ id: '1 clients', name: 'clients', column: 0 },
    { id: `2 ${node}`, name: node, column: 1, state: 'up', view: 'traffic' }]
  const links = []
  const seen = new Set()
  for (const s of known.sample.services) {
    if (!s.edge) continue
    const id = `service ${s.name}`
    const taking = s.edge.backends.some((b) => b.effective === 'up')
    nodes.push({ id, name: s.name, column: 2, view: 'services', filter: s.name,
      state: s.edge.panic ? 'failing' : taking ? 'up' : 'down' })
    links.push({ from: `2 ${node}`, to: id, rate: known.rates[`service/edge/${s.name}`] })
    for (const b of s.edge.backends) {
      const backend = `backend ${b.sid}`
      if (!seen.has(backend)) {
        seen.add(backend)
        nodes.push({ id: backend, name: b.name, column: 3, state: b.effective,
          view: 'services', filter: b.name })
      }
      links.push({ from: id, to: backend, state: b.effective,
        rate: known.rates[`backend/${s.name}/${b.name}`] })
    }
  }
  const total = links.filter((l) => l.from === `2 ${node}`)
    .reduce((sum, l) => sum + (l.rate ?? 0), 0)
  links.unshift({ from: '1 clients', to: `2 ${node}`, rate: total })
  return { nodes, links }
}

// networkGraph is a network of routers: links { from, to, state, note }.
export function networkGraph(names, links, first) {
  const column = layers(names, links, first)
  return { links,
    nodes: names.map((name) => ({ id: name, name, column: column.get(name) ?? 0 })) }
}

const maxDrawn = 500
const manyNodes = 60
const manyLinks = 200

// sizes are those of a picture: of a place, and of the box in it.
const sizes = (nodes, narrow) => narrow
  ? { width: 91, height: 46, box: { width: 74, height: 28 }, letters: 10 }
  : nodes > manyNodes ? { width: 112, height: 34, box: { width: 84, height: 22 }, letters: 12 }
  : { width: 168, height: 58, box: { width: 124, height: 34 }, letters: 16 }

// Picture draws a graph; its table says the same.
export function Picture({ name, graph, filter, empty }) {
  const narrow = useNarrow()
  if (!graph?.nodes.length) return <Section title={name}>{empty}</Section>
  const drawn = graph.nodes.slice(0, maxDrawn)
  const { at, rows, columns } = place(name, drawn)
  const { width, height, box, letters } = sizes(drawn.length, narrow)
  const centre = (id) => ({ x: (narrow ? 1 : 16) + at.get(id).x * width + box.width / 2,
    y: 12 + at.get(id).y * height + box.height / 2 })
  const label = new Map(graph.nodes.map((n) => [n.id, n.name]))
  const most = Math.max(1, ...graph.links.map((l) => l.rate ?? 0))
  const links = graph.links.filter((l) => at.has(l.from) && at.has(l.to))
  const wanted = new Set(graph.nodes.filter((n) => matches(filter, [n.name, n.state ?? '']))
    .map((n) => n.id))
  const dim = (...ids) => ids.some((id) => wanted.has(id)) ? '' : 'dim'
  return (
    <Section title={name}>
      <div class="scroll" tabindex="0" role="region" aria-label={`picture: ${name}`}>
        <svg class={`picture ${links.length > manyLinks ? 'many' : ''}`} role="group"
          aria-label={name} width={columns * width} height={rows * height + 12}
          viewBox={`0 0 ${columns * width} ${rows * height + 12}`}>
          {links.map((l) => {
            const [a, b] = [centre(l.from), centre(l.to)]
            const bend = a.x === b.x ? 46 : 0
            const middle = (a.x + b.x) / 2 + bend
            return (
              <path key={`${l.from}>${l.to}`} class={`link ${l.state ?? ''} ${dim(l.from, l.to)}`}
                stroke-width={1 + 4 * Math.sqrt((l.rate ?? 0) / most)}
                d={`M${a.x} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${b.x} ${b.y}`}>
                <title>{`${label.get(l.from)} to ${label.get(l.to)}: ${l.note ?? rate(l.rate)}`}
                </title>
              </path>
            )
          })}
          {drawn.map((n) => {
            const c = centre(n.id)
            const inside = [
              <rect x={c.x - box.width / 2} y={c.y - box.height / 2} rx="6" {...box} />,
              <text x={c.x} y={c.y + 4}>{n.name.length > letters
                ? `${n.name.slice(0, letters - 1)}…` : n.name}
              </text>, <title>{n.name}{n.state ? `: ${n.state}` : ''}</title>]
            return n.view
              ? <a key={n.id} class={`node ${n.state ?? ''} ${dim(n.id)}`}
                href={address(n.view, n.filter)}
                aria-label={`${n.name}${n.state ? `, ${n.state}` : ''}`}>{inside}</a>
              : <g key={n.id} class={`node ${n.state ?? ''} ${dim(n.id)}`}>{inside}</g>
          })}
        </svg>
      </div>
      {graph.nodes.length > maxDrawn &&
        <p>{maxDrawn} of {graph.nodes.length} nodes are drawn; the table has all.</p>}
      <details open>
        <summary>As a table</summary>
        <Table caption={`Links of ${name}`} filter={filter}
          columns={['From', 'To', 'Load', 'State']}
          rows={graph.links.map((l) => ({ key: `${l.from}>${l.to}`,
            cells: [label.get(l.from), label.get(l.to),
              l.note ?? rate(l.rate), l.state ? stateCell(l.state) : '–'] }))}
          empty={<Empty why="There are no links." />} />
      </details>
    </Section>
  )
}

