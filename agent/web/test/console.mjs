// Drives the console of an edge of examples/quickstart.yaml in Chromium, by roles and names:
// node console.mjs CHROMIUM ADDRESS. Prints what is wrong, and ends with 1 then.
import { open } from './browser.mjs'

const { page, wrong, check, look, view, text, end } = await open()

const node = (name) => page.getByRole('link', { name })
const places = async () => JSON.stringify(await Promise.all(['edge, up', /^web1, /, /^web2, /]
  .map((name) => node(name).first().locator('rect').evaluate((rect) =>
    [rect.getAttribute('x'), rect.getAttribute('y')]))))
await node('edge, up').waitFor()
const before = await places()
if (page.url().includes('code')) wrong.push('the address still has the code')

await view('Services')
await page.getByRole('button', { name: 'Drain web2' }).first().click()
const dialog = page.getByRole('dialog', { name: 'Drain web2 of web?' })
await dialog.getByText('web2 gets no new connections of web; those that it has go on.').waitFor()
await dialog.getByText(/of new connections go to web1, web3\.$/).waitFor()
await check('the dialog')
await page.keyboard.press('Escape')
await dialog.waitFor({ state: 'detached' })
await page.getByRole('button', { name: 'Drain web2' }).first().press('Enter')
await dialog.getByRole('button', { name: 'Drain', exact: true }).press('Enter')
await page.getByRole('status').getByText('web: web2 is draining.').waitFor()
await page.getByRole('button', { name: 'Undrain web2' }).waitFor()
await view('Overview')
await node('web2, draining').waitFor()
if (await places() !== before) wrong.push('nodes of the picture have moved')

await page.getByLabel('Filter').fill('web3')
await page.getByText('filter “web3”').waitFor()
if (!page.url().endsWith('#overview?filter=web3')) wrong.push(`the address is ${page.url()}`)
await page.getByLabel('Filter').fill('')

await view('Explain')
await text('No flow was asked about yet.')
await page.getByLabel('Source').fill('[2001:db8:c::1]:40000')
await page.getByLabel('Destination').fill('[2001:db8:80::80]:80')
await page.getByRole('button', { name: 'Explain' }).click()
await page.getByRole('list', { name: 'The way of the packet' }).first().waitFor()
await page.getByRole('group', { name: /^Headers/ }).first().getByText('IPv6').first().waitFor()
for (const [name, words] of [['Events', 'draining'],
  ['Paths', 'This node has no SR policies'], ['Traffic', 'What became of packets'],
  ['Services', 'draining'], ['Overview', 'As a table'], ['Explain', 'Explain a flow']]) {
  await view(name)
  await text(words)
  await look(name)
}
await end()
