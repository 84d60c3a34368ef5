import { h } from 'preact'
import { address, amount, rate } from './state.js'
import { layers, place } from './layout.js'
import { Empty, Section, Table, stateCell } from './parts.jsx'

// A graph has nodes { id, name, column, state, view, note } and links { from, to, rate, state }.

// edgeGraph is an edge with its services and their backends.
export function edgeGraph(node, known) {
  const nodes = [{ id: '1 clients', name: 'clients', column: 0 },
    { id: `2 ${node}`, name: node, column: 1, state: 'up', view: 'traffic' }]
  const links = []
  for (const s of known.sample.services) {
    if (!s.edge) continue
    const id = `service ${s.name}`
    const taking = s.edge.backends.some((b) => b.effective === 'up')
    nodes.push({ id, name: s.name, column: 2, view: 'services', filter: s.name,
      state: s.edge.panic ? 'failing' : taking ? 'up' : 'down' })
    links.push({ from: `2 ${node}`, to: id, rate: known.rates[`service/edge/${s.name}`] })
    for (const b of s.edge.backends) {
      const backend = `backend ${b.sid}`
      if (!nodes.some((n) => n.id === backend)) {
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

const width = 168
const height = 58
const box = { width: 124, height: 34 }
const maxDrawn = 500

// Picture draws a graph; its table says the same.
export function Picture({ name, graph, filter, empty }) {
  if (!graph?.nodes.length) return <Section title={name}>{empty}</Section>
  const drawn = graph.nodes.slice(0, maxDrawn)
  const { at, used, rows, columns } = place(name, drawn)
  const centre = (id) => {
    const p = at.get(id)
    const offset = (rows - used.get(p.column)) / 2
    return { x: 16 + p.column * width + box.width / 2,
      y: 12 + (p.row + offset) * height + box.height / 2 }
  }
  const label = new Map(graph.nodes.map((n) => [n.id, n.name]))
  const most = Math.max(1, ...graph.links.map((l) => l.rate ?? 0))
  const links = graph.links.filter((l) => at.has(l.from) && at.has(l.to))
  return (
    <Section title={name}>
      <div class="scroll" tabindex="0" role="region" aria-label={`picture: ${name}`}>
        <svg class="picture" role="group" aria-label={name}
          width={columns * width} height={rows * height + 12}
          viewBox={`0 0 ${columns * width} ${rows * height + 12}`}>
          {links.map((l) => {
            const [a, b] = [centre(l.from), centre(l.to)]
            const bend = a.x === b.x ? 46 : 0
            const middle = (a.x + b.x) / 2 + bend
            return (
              <path key={`${l.from}>${l.to}`} class={`link ${l.state ?? ''}`}
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
              <text x={c.x} y={c.y + 4}>{n.name.length > 16 ? `${n.name.slice(0, 15)}…` : n.name}
              </text>, <title>{n.name}{n.state ? `: ${n.state}` : ''}</title>]
            return n.view
              ? <a key={n.id} class={`node ${n.state ?? ''}`} href={address(n.view, n.filter)}
                aria-label={`${n.name}${n.state ? `, ${n.state}` : ''}`}>{inside}</a>
              : <g key={n.id} class={`node ${n.state ?? ''}`}>{inside}</g>
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

export { amount }
