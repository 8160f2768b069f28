// Test: dist/report.html is what the sources build into, byte for byte; and they build to the same
// bytes every time.
import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {buildPage} from './build.mjs';
import {packagesOrSkip} from './packages.mjs';

const kHere = dirname(fileURLToPath(import.meta.url));

const packages = packagesOrSkip();
const built = await buildPage(packages);
const again = await buildPage(packages);
if (built !== again) {
  console.error('The page differs between two builds of the same sources.');
  process.exit(1);
}
const committed = readFileSync(join(kHere, 'dist', 'report.html'), 'utf8');
if (built !== committed) {
  console.error('report/dist/report.html is not what the sources build into. Build it again and ' +
                'commit it: cd report && npm ci && npm run build');
  process.exit(1);
}
console.log(`dist/report.html is up to date: ${Buffer.byteLength(built)} bytes`);
