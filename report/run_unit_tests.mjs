// Test: the page's modules have no type errors, and their unit tests (test/*.test.ts) pass. The
// tests are bundled first: Node 18 does not read TypeScript.
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readdirSync, rmSync, symlinkSync, existsSync, cpSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {loadPackage} from './build.mjs';
import {packagesOrSkip} from './packages.mjs';

const kHere = dirname(fileURLToPath(import.meta.url));
const packages = packagesOrSkip();
const work = mkdtempSync(join(tmpdir(), 'dwell-report-test-'));

function run(name, command, args) {
  const result = spawnSync(command, args, {cwd: work, stdio: 'inherit'});
  if (result.status !== 0) throw new Error(`${name} failed`);
}

// tsc looks for packages above the sources: a copy of them beside node_modules.
function checkTypes() {
  for (const part of ['src', 'test', 'tsconfig.json', 'package.json']) {
    cpSync(join(kHere, part), join(work, part), {recursive: true});
  }
  if (!existsSync(join(work, 'node_modules'))) {
    symlinkSync(join(packages, 'node_modules'), join(work, 'node_modules'));
  }
  run('tsc', process.execPath, [join(packages, 'node_modules', 'typescript', 'bin', 'tsc'),
                                '--noEmit', '-p', work]);
}

async function runTests() {
  const loaded = await loadPackage(packages, 'esbuild');
  const esbuild = loaded.default ?? loaded;
  const tests = readdirSync(join(kHere, 'test')).filter((name) => name.endsWith('.test.ts'));
  if (tests.length === 0) throw new Error('no unit tests found');
  const out = join(work, 'bundled');
  await esbuild.build({
    entryPoints: tests.map((name) => join(kHere, 'test', name)), outdir: out,
    nodePaths: [join(packages, 'node_modules')], outExtension: {'.js': '.mjs'},
    bundle: true, platform: 'node', format: 'esm', target: 'node18', tsconfigRaw: '{}',
    logLevel: 'warning',
  });
  run('node --test', process.execPath,
      ['--test', ...tests.map((name) => join(out, name.replace(/\.ts$/, '.mjs')))]);
}

let failed = false;
try {
  checkTypes();
  await runTests();
} catch (error) {
  console.error(error.message);
  failed = true;
} finally {
  rmSync(work, {recursive: true, force: true});
}
process.exit(failed ? 1 : 0);
