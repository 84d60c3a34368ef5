import { h, Fragment } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { matches } from './state.js'

// Empty says why there is nothing to see, and which command tells more.
export const Empty = ({ why, command }) => (
  <div class="empty" role="note">
    <p>{why}</p>
    {command && <p>More: <code>{command}</code></p>}
  </div>
)

const maxRows = 1000

// Table shows rows of cells, those that the filter leaves. A cell is a text or { text, show }; also
// is what the filter looks at beside the cells. In a narrow window each row is a block of its own,
// which the style sheet makes; the roles say that it is a table all the same.
export function Table({ caption, columns, rows, filter = '', empty }) {
  const text = (cell) => cell === undefined || cell === null ? '' : cell.text ?? String(cell)
  const left = rows.filter((row) => matches(filter, [...row.cells.map(text), row.also ?? '']))
  if (!rows.length) return empty ?? null
  return (
    <div class="scroll" tabindex="0" role="region" aria-label={caption}>
      <table role="table">
        <caption>{caption}{left.length < rows.length &&
          ` (${left.length} of ${rows.length}: filter “${filter}”)`}
        {left.length > maxRows && `; the first ${maxRows} are shown: filter`}</caption>
        <thead role="rowgroup">
          <tr role="row">{columns.map((c) => <th role="columnheader" scope="col"
            class={c.number ? 'number' : ''}>{c.name ?? c}</th>)}</tr>
        </thead>
        <tbody role="rowgroup">
          {left.slice(0, maxRows).map((row) => (
            <tr key={row.key} role="row" class={row.class}>
              {row.cells.map((cell, i) => i === 0
                ? <th role="rowheader" scope="row">{cell?.show ?? cell}</th>
                : <td role="cell" data-column={columns[i]?.name ?? columns[i]}
                  class={columns[i]?.number ? 'number' : ''}>{cell?.show ?? cell}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const colours = {
  up: 'good', healthy: 'good', active: 'good', protected: 'good', carries: 'good', used: 'good',
  answers: 'good', applied: 'good', moved: 'good', draining: 'fair', unknown: 'fair', spare: 'fair',
  trial: 'fair', waits: 'fair', degraded: 'fair', down: 'bad', failing: 'bad', invalid: 'bad',
  refused: 'bad', unprotected: 'bad', silent: 'bad', 'not used': 'fair',
}

// State is a word with a colour and a sign, so that the colour is not needed.
export const State = ({ word }) => (
  <span class={`state ${colours[word] ?? ''}`}>{word}</span>
)

export const stateCell = (word) => ({ text: word, show: <State word={word} /> })

const small = matchMedia('(max-width: 640px)')

// useNarrow says whether the window is one of a telephone, as the style sheet sees it.
export function useNarrow() {
  const [narrow, setNarrow] = useState(small.matches)
  useEffect(() => {
    const changed = () => setNarrow(small.matches)
    small.addEventListener('change', changed)
    return () => small.removeEventListener('change', changed)
  }, [])
  return narrow
}

// Spark is a line of the last rates; its numbers are in the table beside it.
export function Spark({ values = [] }) {
  if (values.length < 2) return null
  const most = Math.max(1, ...values)
  const points = values.map((v, i) =>
    `${(100 * i / (values.length - 1)).toFixed(1)},${(19 - 18 * v / most).toFixed(1)}`)
  return (
    <svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  )
}

// Dialog is open as long as it is there.
export function Dialog({ title, close, children }) {
  const ref = useRef()
  useEffect(() => ref.current.showModal(), [])
  return (
    <dialog ref={ref} aria-labelledby="dialog-title" onClose={close}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  )
}

export const Fault = ({ error }) => error
  ? <p class="fault" role="alert">{error.message}</p> : null

export const Section = ({ title, children }) => (
  <section><h2>{title}</h2>{children}</section>
)

export { Fragment }
