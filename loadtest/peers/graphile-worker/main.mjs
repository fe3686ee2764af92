// One-time jobs on graphile-worker. Called by `campanile-loadtest peers`; the lines it prints are described in ../README.md.
//
// Settings: those that its page on performance names for the highest throughput (24 jobs at once, 25 connections, a local queue of
// 500, completions in batches without a delay), and a short poll interval, because a job that becomes due later is found by polling.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const POLL_MS = 20;
const INSERT_BATCH = 5000;
const LATE_BATCH = 10_000;
// Late bodies count until so long after the window.
const GRACE_MS = 1000;
// For completions that are still on their way.
const SETTLE_MS = 500;

const [url, mode, ...numbers] = process.argv.slice(2);
const [rate, seconds, from, warm] = numbers.map(Number);
if (mode !== "once") throw new Error(`graphile-worker has no jobs of the kind ${mode}: its cron counts in minutes`);
const until = from + seconds * 1000;
const say = (event, fields = {}) => process.stdout.write(JSON.stringify({ event, ...fields }) + "\n");

// The driver says when to go on; without it there is nothing to do.
let goOn;
const told = new Promise((resolve) => (goOn = resolve));
createInterface({ input: process.stdin }).on("line", goOn).on("close", () => process.exit(1));

const preset = {
  worker: {
    connectionString: url,
    concurrentJobs: 24,
    maxPoolSize: 25,
    pollInterval: POLL_MS,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    // It logs every job otherwise.
    logger: new Logger(() => () => {}),
  },
};
const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;
say("system", {
  version: `${version("graphile-worker")}, pg ${version("pg")}, node ${process.versions.node}`,
  settings: `concurrentJobs 24, maxPoolSize 25, localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0, pollInterval ${POLL_MS} ms, one process`,
});

const utils = await makeWorkerUtils({ preset });
await utils.migrate();
await utils.release();

// Its own function add_job sends one job a call; many at once go through the same public SQL interface, a set at a time.
// Those of the warm-up come first; they are not counted.
const jobs = rate * (seconds + warm);
const counted = rate * seconds;
const firstDue = from - warm * 1000;
const inserter = new pg.Client({ connectionString: url });
await inserter.connect();
const begin = Date.now();
for (let first = 0; first < jobs; first += INSERT_BATCH) {
  const last = Math.min(first + INSERT_BATCH, jobs) - 1;
  await inserter.query(
    `select count(*) from graphile_worker.add_jobs(array(
       select row('body', '{}'::json, null, to_timestamp(($3::float8 + floor(n * 1000.0 / $4)) / 1000.0), 1, null, 0::smallint, null)::graphile_worker.job_spec
       from generate_series($1::int, $2::int) n))`,
    [first, last, firstDue, rate],
  );
}
await inserter.end();
say("inserted", { jobs, ms: Date.now() - begin });

const late = new Float64Array(counted);
let seen = 0;
// Bodies that began since the window did, whenever they were due.
let ran = 0;
const runner = await run({
  preset,
  taskList: {
    body: (_payload, helpers) => {
      const [now, due] = [Date.now(), helpers.job.run_at.getTime()];
      if (now >= from) ran++;
      if (due >= from && due < until && seen < counted) late[seen++] = now - due;
    },
  },
  noHandleSignals: true,
});
while (seen < counted && Date.now() < until + GRACE_MS) await sleep(20);
await sleep(SETTLE_MS);
say("done", { ran });
await told;
for (let first = 0; first < seen; first += LATE_BATCH) {
  const us = Array.from(late.subarray(first, Math.min(first + LATE_BATCH, seen)), (ms) => Math.round(ms * 1000));
  say("late", { us });
}
say("end");
// Nothing is kept: the database goes next.
void runner;
process.stdout.write("", () => process.exit(0));
