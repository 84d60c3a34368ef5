// Where nodes of a picture are. A place that was given is never taken back, so that what runs does
// not move what is seen.

const places = new Map() // by picture

// layers gives each node of a network a column: its distance from a first node.
export function layers(nodes, links, first) {
  const near = new Map(nodes.map((n) => [n, []]))
  for (const { from, to } of links) {
    near.get(from)?.push(to)
    near.get(to)?.push(from)
  }
  const column = new Map()
  for (const start of [first, ...nodes]) {
    if (!near.has(start) || column.has(start)) continue
    column.set(start, 0)
    for (const queue = [start]; queue.length;) {
      const node = queue.shift()
      for (const next of near.get(node).toSorted()) {
        if (near.has(next) && !column.has(next)) {
          column.set(next, column.get(node) + 1)
          queue.push(next)
        }
      }
    }
  }
  return column
}

// most is how many rows a column has before it gets another one beside it.
const most = (nodes) => Math.max(12, Math.ceil(Math.sqrt(nodes)))

// plan gives the columns of a picture their widths, once: what comes later goes below, or to the
// right.
function plan(nodes) {
  const counts = new Map()
  for (const { column } of nodes) counts.set(column, (counts.get(column) ?? 0) + 1)
  const rows = most(nodes.length)
  const high = Math.min(rows, Math.max(1, ...counts.values()))
  const picture = { byNode: new Map(), columns: new Map(), rows, width: 0, height: 0 }
  for (const column of [...counts.keys()].toSorted((a, b) => a - b)) {
    const count = counts.get(column)
    add(picture, column, Math.ceil(count / rows), (high - Math.min(count, rows)) / 2)
  }
  return picture
}

function add(picture, column, span, top) {
  picture.columns.set(column, { start: picture.width, span, top, used: 0 })
  picture.width += span
}

// place returns the x and y of each node, in columns and rows, and how many there are: nodes in the
// order of their names, and new ones below those that are there.
export function place(name, nodes) {
  if (!places.has(name)) places.set(name, plan(nodes))
  const picture = places.get(name)
  const order = new Intl.Collator('en', { numeric: true })
  for (const { id, column } of nodes.toSorted((a, b) => order.compare(a.id, b.id))) {
    if (picture.byNode.has(id)) continue
    if (!picture.columns.has(column)) add(picture, column, 1, 0)
    const c = picture.columns.get(column)
    const n = c.used++
    const part = Math.min(Math.floor(n / picture.rows), c.span - 1)
    const y = c.top + n - part * picture.rows
    picture.byNode.set(id, { x: c.start + part, y })
    picture.height = Math.max(picture.height, y + 1)
  }
  return { at: picture.byNode, columns: picture.width, rows: picture.height }
}
