// Drives the console of a controller of four routers in Chromium, by roles and names:
// node controller.mjs CHROMIUM ADDRESS SOURCE DESTINATION. It pins the flow to spine s2; whoever
// runs this cuts the link from s1 to r2 then, and it looks for what follows. Prints what is wrong,
// and ends with 1 then.
import { open } from './browser.mjs'

const { page, wrong, look, view, end } = await open()
const [source, destination] = process.argv.slice(4)
const flow = `${source} → ${destination} tcp`
const table = (name) => page.getByRole('table', { name })
const row = (name, ...words) => words.reduce((rows, hasText) => rows.filter({ hasText }),
  table(name).getByRole('row')).first()

await row('Links of Network', 'r1', 's1', 'up').waitFor()
const place = () => page.getByRole('group', { name: 'Network' }).locator('.node', { hasText: 's1' })
  .locator('rect').evaluate((rect) => [rect.getAttribute('x'), rect.getAttribute('y')].join())
const before = await place()

await view('Reroutes')
await page.getByRole('button', { name: 'Pin a flow…' }).click()
const dialog = page.getByRole('dialog', { name: 'Pin a flow' })
await dialog.getByText('whatever telemetry says').waitFor()
await dialog.getByLabel('Source').fill(source)
await dialog.getByLabel('Destination').fill(destination)
await dialog.getByLabel('Routers, in the order of travel').fill('r1 nowhere r2')
await dialog.getByRole('button', { name: 'Give the path' }).click()
await dialog.getByRole('alert').getByText('nowhere').waitFor()
if (!wrong.pop()?.includes('404')) wrong.push('a path that is not there is not refused as such')
await dialog.getByLabel('Routers, in the order of travel').fill('r1 s2 r2')
await dialog.getByRole('button', { name: 'Give the path' }).press('Enter')
await page.getByRole('status').getByText(`${flow} has its path.`).waitFor()
await row('Flows that reports were about', flow, 'r1 → s2 → r2', 'pinned').waitFor()

// the link is cut
await row('Moves, the latest first', 'moved', 'r1 → s2 → r2', 'down').waitFor()
await look('Reroutes')
await page.getByText('All decisions').click()
await row('Decisions, the latest first', 'pinned', 'an operator chose').waitFor()
await view('Network')
await row('Links of Network', 's1', 'r2', 'down').waitFor()
await row(/^Links$/, 's1', 'r2', 'down').waitFor()
if (await place() !== before) wrong.push('nodes of the picture have moved')
await look('Network')

await view('Reroutes')
await page.getByRole('button', { name: `Unpin ${flow}` }).click()
await page.getByRole('status').getByText(`Reports can move ${flow} again.`).waitFor()
await page.getByRole('button', { name: `Unpin ${flow}` }).waitFor({ state: 'detached' })
await end()
