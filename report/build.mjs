// Builds dist/report.html: one file with its script and style inside, which a content security
// policy pins by their hashes and keeps from fetching anything.
//
//   node build.mjs [--packages DIR] [--out FILE]
//
// DIR holds node_modules (default: this folder). The output depends on the sources and on
// package-lock.json alone: no paths, no dates.
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const kHere = dirname(fileURLToPath(import.meta.url));

export async function loadPackage(packages, name) {
  const require = createRequire(join(packages, 'package.json'));
  return import(pathToFileURL(require.resolve(name)).href);
}

function hashOf(text) {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

async function bundle(esbuild, packages, entry) {
  const result = await esbuild.build({
    entryPoints: [join(kHere, entry)],
    absWorkingDir: kHere,
    nodePaths: [join(packages, 'node_modules')],
    bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none',
    format: 'iife', target: ['chrome102', 'firefox115', 'safari16.4'],
    jsx: 'automatic', jsxImportSource: 'preact', tsconfigRaw: '{}',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

// The page as text. Throws if a part could end its element early or hide the exporter's mark.
export async function buildPage(packages) {
  const loaded = await loadPackage(packages, 'esbuild');
  const esbuild = loaded.default ?? loaded;
  const script = await bundle(esbuild, packages, 'src/main.tsx');
  const style = await bundle(esbuild, packages, 'src/style.css');
  if (/<\/script|<!--|@DWELL_DATA@/i.test(script)) throw new Error('markup or mark in the script');
  if (/<\/style|@DWELL_DATA@/i.test(style)) throw new Error('markup or mark in the style');
  const parts = {
    '%SCRIPT_HASH%': hashOf(script), '%STYLE_HASH%': hashOf(style),
    '%STYLE%': style, '%SCRIPT%': script,
  };
  const template = readFileSync(join(kHere, 'page.html'), 'utf8');
  return template.replace(/%(SCRIPT|STYLE)(_HASH)?%/g, (mark) => parts[mark]);
}

function option(name, fallback) {
  const at = process.argv.indexOf(name);
  return at < 0 ? fallback : resolve(process.argv[at + 1]);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const out = option('--out', join(kHere, 'dist', 'report.html'));
  const page = await buildPage(option('--packages', kHere));
  mkdirSync(dirname(out), {recursive: true});
  writeFileSync(out, page);
  console.log(`${out}: ${Buffer.byteLength(page)} bytes`);
}
