import { h } from 'preact'
import { amount, rate, words } from './state.js'
import { Empty, Section, Spark, Table } from './parts.jsx'

const rowsOf = (known, kind) => Object.entries(known.counts)
  .filter(([name, count]) => name.startsWith(`${kind}/`) && count > 0)
  .map(([name, count]) => {
    const [, role, what] = name.split('/')
    return { key: name, cells: [words(what), role, rate(known.rates[name]), amount(count),
      { text: '', show: <Spark values={known.history[name]} /> }] }
  })

export function Traffic({ known, filter }) {
  const columns = (what) => [what, 'Role', { name: 'Packets', number: true },
    { name: 'In all', number: true }, 'Last minute']
  return (
    <div>
      <Section title="What became of packets">
        <Table caption="Packets by outcome" columns={columns('Outcome')} filter={filter}
          rows={rowsOf(known, 'outcome')}
          empty={<Empty why={'No packet has come to a program of this node since it was loaded.'}
            command="sextant doctor" />} />
      </Section>
      <Section title="Drops">
        <Table caption="Drops by reason" columns={columns('Reason')} filter={filter}
          rows={rowsOf(known, 'drop')}
          empty={<Empty why="No packet was dropped since the programs were loaded."
            command="sextant status --output json" />} />
      </Section>
    </div>
  )
}

export function Events({ known, filter, since }) {
  return (
    <Section title="Events">
      <Table caption="Events, the latest first" filter={filter}
        columns={['Time', 'What', 'Status', 'Why']}
        rows={known.events.map((e) => ({ key: e.number, cells: [
          new Date(e.time).toLocaleTimeString(),
          ['service', 'backend', 'policy', 'path', 'list', 'sid', 'flow']
            .filter((k) => e[k]).map((k) => `${k} ${e[k]}`).join(', '), e.status,
          e.reason ?? ''] }))}
        empty={<Empty why={`Nothing has happened to services, backends and paths since this page ` +
          `was opened at ${since.toLocaleTimeString()}.`} command="sextant monitor" />} />
    </Section>
  )
}
