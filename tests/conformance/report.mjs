// Judges the results of the conformance suite in one leg: `report.mjs LEG RESULTS BASELINE`.
// Failures and warnings count alike, except in the scenarios that BASELINE lists; those must not pass.

import { readdirSync, readFileSync } from 'node:fs';

const [leg, results, baseline] = process.argv.slice(2);

const log = readFileSync(`${results}.log`, 'utf8');
const scenarios = [...log.matchAll(/^[✓✗] (\S+): \d+ passed, \d+ failed$/gm)].map((line) => line[1]);
if (scenarios.length === 0) {
  console.log(`${leg}: the suite did not run\n${log}`);
  process.exit(1);
}

// `LEG SCENARIO reason`
const lines = readFileSync(baseline, 'utf8').split('\n').map((line) => line.split(/\s+/));
const known = new Set(lines.filter(([of]) => of === leg).map(([, scenario]) => scenario));

// `server-SCENARIO-TIME/checks.json`
const directories = new Map(
  readdirSync(results).map((name) => [name.match(/^server-(.+)-\d{4}-\d\d-\d\dT/)?.[1], name])
);

function checks(scenario) {
  const directory = directories.get(scenario);
  return directory === undefined
    ? [{ id: scenario, status: 'FAILURE', errorMessage: 'the scenario did not run to its end' }]
    : JSON.parse(readFileSync(`${results}/${directory}/checks.json`, 'utf8'));
}

let isGood = true;
for (const scenario of scenarios) {
  const { SUCCESS = [], FAILURE = [], WARNING = [], SKIPPED = [] } = Object.groupBy(
    checks(scenario),
    (check) => check.status
  );
  const faults = [...FAILURE, ...WARNING];
  const isKnown = known.delete(scenario);
  const isExpected = isKnown === faults.length > 0;
  isGood &&= isExpected;
  const verdict = isExpected ? (isKnown ? 'known' : 'ok   ') : 'FAIL ';
  console.log(
    `${leg} ${verdict} ${scenario}: ${SUCCESS.length} passed, ${FAILURE.length} failed, ` +
      `${WARNING.length} warnings, ${SKIPPED.length} skipped`
  );
  if (!isExpected && isKnown) {
    console.log(`    passes now: take it out of ${baseline}`);
  }
  if (!isExpected && !isKnown) {
    for (const { id, status, errorMessage } of faults) {
      console.log(`    ${status} ${id}: ${errorMessage}`);
    }
  }
}
for (const scenario of known) {
  console.log(`${leg} FAIL  ${scenario}: in ${baseline}, but there is no such scenario`);
  isGood = false;
}
process.exit(isGood ? 0 : 1);
