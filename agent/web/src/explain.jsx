import { h } from 'preact'
import { useState } from 'preact/hooks'
import { get, write } from './api.js'
import { headers } from './packet.js'
import { may, words } from './state.js'
import { Empty, Fault, Section, Table, stateCell } from './parts.jsx'
import { FlowFields } from './paths.jsx'

// Explain asks the node what it does with the packets of a flow, by running its programs on them.
export function Explain({ caller }) {
  const [answer, setAnswer] = useState()
  const [fault, setFault] = useState()
  const ask = async (event) => {
    event.preventDefault()
    const form = new FormData(event.target)
    const flow = Object.fromEntries([...form].map(([k, v]) => [k, v.trim()]))
    setFault()
    try {
      setAnswer(may(caller, 'operate')
        ? (await write('POST', '/v1/explain', { flow })).items
        : [{ number: 1, packet: 'flow', trace: await get(`/v1/trace?${new URLSearchParams(flow)}`),
          why: 'The edge’s tables say this; to run its program takes the role operate.' }])
    } catch (error) {
      setAnswer()
      setFault(error)
    }
  }
  return (
    <Section title="Explain a flow">
      <p>The loaded programs run on a packet of this flow, and nothing that runs is disturbed.</p>
      <form onSubmit={ask} class="inline">
        <FlowFields />
        <button type="submit" class="main">Explain</button>
      </form>
      <Fault error={fault} />
      <div aria-live="polite">
        {answer?.map((e) => <Explained key={e.number} e={e} />)}
      </div>
      {!answer && !fault && <Empty why="No flow was asked about yet."
        command="sextant explain --help" />}
    </Section>
  )
}

const Explained = ({ e }) => (
  <article class="explained">
    <h3>{words(e.packet)} packet{e.verdict && `: ${words(e.verdict)}`}</h3>
    <p>{e.why}</p>
    <Way e={e} />
    {e.trace && <Table caption={`${words(e.packet)} packet: chain of bucket ` +
      `${e.trace.bucket} of ${e.trace.buckets}`}
      columns={['Backend', 'Place', 'State', 'SID']}
      rows={e.trace.chain.map((p, i) => ({ key: i, cells: [p.backend || 'removed', p.role,
        stateCell(p.state), p.sid] }))} />}
    {e.frame && <Header frame={e.frame} />}
    {e.copies?.map((c) => (
      <div>
        <h4>Copy on {c.list}: {words(c.verdict)}</h4>
        {c.segments && <p>{c.segments.join(' → ')}</p>}
        {c.frame && <Header frame={c.frame} />}
      </div>
    ))}
  </article>
)

// Way is where the packet goes, in the order of travel.
function Way({ e }) {
  const visits = e.offeredTo ?? e.trace?.chain.map((p) => p.backend)
  const stops = ['client', e.interface && `${e.role}, ${e.interface}`,
    ...visits ?? e.path ?? []].filter(Boolean)
  if (e.reason) stops.push(`dropped: ${words(e.reason)}`)
  return <ol class="way" aria-label="The way of the packet">{stops.map((s) => <li>{s}</li>)}</ol>
}

const Header = ({ frame }) => (
  <div class="packet" role="group" 
    aria-label="Headers as the packet leaves, outermost first">
    {headers(frame).map((header) => (
      <div class="header">
        <h4>{header.name}</h4>
        <dl>{header.fields.map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      </div>
    ))}
  </div>
)
