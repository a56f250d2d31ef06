// Judges what the conformance suite saw in one leg: `report.mjs LEG RESULTS OPEN`.
// Every failure and warning counts, but in a scenario that OPEN lists; one that passes must not be listed.

import { readdirSync, readFileSync } from 'node:fs';

const [leg, results, open] = process.argv.slice(2);

const log = readFileSync(`${results}.log`, 'utf8');
const ran = [...log.matchAll(/^[✓✗] (\S+): \d+ passed, \d+ failed$/gm)].map(([, scenario]) => scenario);
if (ran.length === 0) {
  console.log(`${leg}: the suite did not run\n${log}`);
  process.exit(1);
}

const lines = readFileSync(open, 'utf8').split('\n');
const allowed = new Set(
  lines.filter((line) => line.startsWith(`${leg} `)).map((line) => line.split(/\s+/)[1])
);

// The directory of a scenario is `server-NAME-TIME`.
const directories = new Map(
  readdirSync(results).map((name) => [name.match(/^server-(.+)-\d{4}-\d\d-\d\dT/)?.[1], name])
);

function checks(scenario) {
  const directory = directories.get(scenario);
  if (directory === undefined) {
    return [{ id: scenario, status: 'FAILURE', errorMessage: 'the scenario did not run to its end' }];
  }
  return JSON.parse(readFileSync(`${results}/${directory}/checks.json`, 'utf8'));
}

let isGood = true;
for (const scenario of ran) {
  const seen = checks(scenario);
  const count = (status) => seen.filter((check) => check.status === status).length;
  const faults = seen.filter((check) => check.status === 'FAILURE' || check.status === 'WARNING');
  const passes = faults.length === 0;
  const isAllowed = allowed.delete(scenario);
  const counts = `${count('SUCCESS')} passed, ${count('FAILURE')} failed, ${count('WARNING')} warnings, ${count('SKIPPED')} skipped`;
  const verdict = passes ? 'ok  ' : isAllowed ? 'open' : 'FAIL';
  console.log(`${leg} ${verdict} ${scenario}: ${counts}`);
  if (passes && isAllowed) {
    console.log(`    it passes: take it out of ${open}`);
  }
  if (!passes && !isAllowed) {
    for (const { id, status, errorMessage } of faults) {
      console.log(`    ${status} ${id}: ${errorMessage}`);
    }
  }
  isGood &&= passes !== isAllowed;
}
for (const scenario of allowed) {
  console.log(`${leg} FAIL ${scenario}: ${open} lists it, and it did not run`);
  isGood = false;
}
process.exit(isGood ? 0 : 1);
