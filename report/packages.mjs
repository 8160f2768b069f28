// The packages of package-lock.json in a folder of the build tree: installed when they are not
// there yet or when the lock file has changed. Tests that need them skip where they cannot be had.
import {spawnSync} from 'node:child_process';
import {copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const kHere = dirname(fileURLToPath(import.meta.url));
const kStamp = 'installed.lock'; // a copy of the lock file that node_modules was made from
const kInstallTimeout_ms = 180_000;
export const kSkipped = 77;

export function skip(reason) {
  console.log(`SKIPPED: ${reason}`);
  process.exit(kSkipped);
}

export function argument(name, fallback) {
  const at = process.argv.indexOf(name);
  return at < 0 ? fallback : process.argv[at + 1];
}

function installed(directory, lock) {
  const stamp = join(directory, kStamp);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lock;
}

// Does report/node_modules hold what the lock file says? npm keeps its own list in there.
function installedHere(lock) {
  const list = join(kHere, 'node_modules', '.package-lock.json');
  if (!existsSync(list)) return false;
  const wanted = JSON.parse(lock).packages;
  const present = Object.entries(JSON.parse(readFileSync(list, 'utf8')).packages);
  return present.length > 0 &&
    present.every(([path, {version}]) => wanted[path]?.version === version);
}

// The folder with node_modules: this one if it is up to date, else the one given by --packages,
// where they are installed first. Skips the test if they are not to be had.
export function packagesOrSkip() {
  const [major] = process.versions.node.split('.').map(Number);
  if (major < 18) skip(`node ${process.versions.node} is too old: 18 or newer is needed`);
  const lock = readFileSync(join(kHere, 'package-lock.json'), 'utf8');
  if (installedHere(lock)) return kHere;
  const directory = resolve(argument('--packages', kHere));
  if (directory === kHere) skip('the packages are not installed: run npm ci in report/');
  if (installed(directory, lock)) return directory;
  mkdirSync(directory, {recursive: true});
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(kHere, file), join(directory, file));
  }
  const npm = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
                        {cwd: directory, encoding: 'utf8', timeout: kInstallTimeout_ms});
  if (npm.error) skip(`npm cannot be run: ${npm.error.message}`);
  if (npm.status !== 0) {
    skip(`npm ci failed: ${npm.stderr.trim().split('\n').slice(0, 3).join(' ')}`);
  }
  writeFileSync(join(directory, kStamp), lock);
  return directory;
}
