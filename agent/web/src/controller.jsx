import { h } from 'preact'
import { useState } from 'preact/hooks'
import { write } from './api.js'
import { may, percent } from './state.js'
import { Empty, Section, Table, stateCell } from './parts.jsx'
import { Pin, flowText } from './paths.jsx'
import { Picture, networkGraph } from './topology.jsx'

const way = (path) => path?.join(' → ') ?? ''

const age = (ms) => ms === null ? 'never' : ms < 10000 ? `${Math.round(ms)} ms`
  : `${Math.round(ms / 1000)} s`

// network is what links say of the picture: both directions of a link are one line.
function network(links) {
  const names = [...new Set(links.flatMap((l) => [l.from, l.to]))].sort()
  const lines = new Map()
  for (const l of links) {
    const key = [l.from, l.to].sort().join('\n')
    const line = lines.get(key) ?? { from: l.from, to: l.to, rate: 0, state: 'up' }
    line.rate = Math.max(line.rate, l.occupancy)
    line.note = `fullest queue ${percent(line.rate, 1)}`
    if (!l.up) line.state = 'down'
    lines.set(key, line)
  }
  return networkGraph(names, [...lines.values()], names[0])
}

export function ControllerNetwork({ data, filter }) {
  const links = data.links
  const empty = <Empty why="The controller's topology has no links."
    command="sextant path links" />
  return (
    <div>
      <Picture name="Network" graph={links.length ? network(links) : undefined} filter={filter}
        empty={empty} />
      <Section title="Telemetry of links">
        <Table caption="Links" filter={filter} columns={['From', 'To', 'State',
          { name: 'Queue', number: true }, { name: 'Weight', number: true },
          { name: 'Last report', number: true }]}
          rows={links.map((l) => ({ key: `${l.from}>${l.to}>${l.number}`, cells: [l.from, l.to,
            stateCell(l.up ? 'up' : 'down'), percent(l.occupancy, 1),
            l.weight?.toFixed(3) ?? '–', age(l.ageMs)] }))} empty={empty} />
      </Section>
    </div>
  )
}

export function Reroutes({ data, caller, filter, say }) {
  const [pinning, setPinning] = useState(false)
  const unpin = async (flow) => {
    try {
      await write('DELETE', '/v1/pins', { flow })
      say(`Reports can move ${flowText(flow)} again.`)
    } catch (error) {
      say(error.message)
    }
  }
  return (
    <div>
      <Section title="Flows">
        {may(caller, 'operate') && <p>
          <button type="button" onClick={() => setPinning(true)}>Pin a flow…</button></p>}
        <Table caption="Flows that reports were about" filter={filter}
          columns={['Flow', 'From', 'To', 'Path', { name: 'Moves', number: true }, 'State',
            'Change']}
          rows={data.flows.map((f) => ({ key: flowText(f.flow), cells: [flowText(f.flow), f.from,
            f.to, way(f.path) || 'routing chooses', f.moves,
            f.pinned ? 'pinned' : f.state ? stateCell(f.state) : '–',
            f.pinned && may(caller, 'operate') ? { text: '', show: <button type="button"
              onClick={() => unpin(f.flow)}
              aria-label={`Unpin ${flowText(f.flow)}`}>Unpin</button> } : ''] }))}
          empty={<Empty why="No report has come about a flow yet." command="sextant path flows" />}
        />
      </Section>
      <Section title="Reroutes">
        <Decisions caption="Moves, the latest first" decisions={data.moves} filter={filter}
          empty={<Empty why="No flow was moved yet." command="sextant path reroutes" />} />
        <details>
          <summary>All decisions</summary>
          <Decisions caption="Decisions, the latest first" decisions={data.decisions}
            filter={filter} empty={<Empty why={'The controller has decided nothing yet: no ' +
              'telemetry asked for it.'} command="sextant controller status" />} />
        </details>
      </Section>
      {pinning && <Pin title="Pin a flow" field="Routers, in the order of travel" hint="r1 r4 r2"
        close={() => setPinning(false)}
        says={'The flow gets this path and keeps it, whatever telemetry says, until it is ' +
          'unpinned; no other flow moves. If a link of it fails, the flow fails with it.'}
        send={(flow, path) => write('PUT', '/v1/pins', { flow, path })}
        done={(text) => { setPinning(false); say(text) }} />}
    </div>
  )
}

const Decisions = ({ caption, decisions, filter, empty }) => (
  <Table caption={caption} filter={filter} columns={['Time', 'Flow', 'Verdict', 'To', 'Why']}
    rows={decisions.toReversed().map((d) => ({ key: d.number, cells: [
      new Date(d.at).toLocaleTimeString(), flowText(d.flow), stateCell(d.verdict),
      way(d.path), d.reason] }))} empty={empty} />
)
