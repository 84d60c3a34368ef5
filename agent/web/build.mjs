// Builds the console: one script, one style sheet, one page, in bundle/, which is committed.
import { build } from 'esbuild'
import { copyFileSync } from 'node:fs'

const out = process.argv[2] ?? 'bundle'
await build({
  entryPoints: { console: 'src/main.jsx' }, outdir: out, bundle: true, minify: true,
  format: 'iife', target: 'es2022', jsxFactory: 'h', jsxFragment: 'Fragment',
  legalComments: 'none', charset: 'utf8',
  banner: { js: '/* with Preact, copyright 2015-present Jason Miller, MIT License */' },
})
copyFileSync('index.html', `${out}/index.html`)
