// Where nodes of a picture are. A place that was given is never taken back, so that what runs does
// not move what is seen.

const places = new Map() // by picture: { byNode, used }

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

// place returns the column and row of each node: nodes in the order of their names, and new ones
// below those that are there.
export function place(picture, nodes) {
  if (!places.has(picture)) places.set(picture, { byNode: new Map(), used: new Map() })
  const { byNode, used } = places.get(picture)
  const order = new Intl.Collator('en', { numeric: true })
  for (const { id, column } of nodes.toSorted((a, b) => order.compare(a.id, b.id))) {
    if (byNode.has(id)) continue
    const row = used.get(column) ?? 0
    used.set(column, row + 1)
    byNode.set(id, { column, row })
  }
  const rows = Math.max(1, ...used.values())
  const columns = Math.max(0, ...[...byNode.values()].map((p) => p.column)) + 1
  return { at: byNode, used, rows, columns }
}
