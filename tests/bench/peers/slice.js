// One slice of a peer: slice.js PEER NAME PART N, with PEER_URL. Prints one line of JSON, figures
// by name. Measures as drain.c and latency.c do: a worker that drains is stopped while the backlog
// is filled, and the time runs from letting it go on until nothing is left.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

const [peer, name, part, count] = process.argv.slice(2);
const n = Number(count);
const rate = 50;
const { sender } = await import(`./${peer}.js`);
// As many bytes as a command of ours carries.
const data = { note: "x".repeat(300) };
const seconds = () => Number(process.hrtime.bigint()) / 1e9;

async function waitUntilEmpty(bus, worker) {
    const until = seconds() + 300;
    while (!(await bus.isEmpty())) {
        if (worker.exitCode !== null) throw new Error(`${name} has ended`);
        if (seconds() > until) throw new Error(`${name} is not done after 300 s`);
        await pause(5);
    }
}

async function drainOnce(bus, worker, jobs) {
    worker.kill("SIGSTOP");
    await bus.fill(jobs, data);
    const start = seconds();
    worker.kill("SIGCONT");
    await waitUntilEmpty(bus, worker);
    return seconds() - start;
}

// The first round warms up and is not counted.
async function drain(bus, worker) {
    await drainOnce(bus, worker, Math.ceil(n / 2));
    return { [`${part}, ${name}`]: n / (await drainOnce(bus, worker, n)) };
}

async function sendPaced(bus, jobs) {
    const sent = new Map();
    let due = seconds();
    for (let id = 0; id < jobs; id++) {
        due += (0.5 + Math.random()) / rate;
        await pause(Math.max(0, (due - seconds()) * 1000));
        await bus.send(id);
        sent.set(id, Number(process.hrtime.bigint()));
    }
    return sent;
}

async function entries(worker) {
    const answer = once(worker, "message");
    worker.send("entries");
    return (await answer)[0];
}

async function latency(bus, worker) {
    await sendPaced(bus, 50);
    await waitUntilEmpty(bus, worker);
    await entries(worker);
    const sent = await sendPaced(bus, n);
    await waitUntilEmpty(bus, worker);
    const ms = (await entries(worker)).map(([id, at]) => (at - sent.get(id)) / 1e6);
    if (ms.length !== n) throw new Error(`${name} has entered ${ms.length} of ${n}`);
    ms.sort((a, b) => a - b);
    const quantile = (q) => ms[Math.ceil(q * n) - 1];
    return {
        [`latency, ${name}, p50 ms`]: quantile(0.5),
        [`latency, ${name}, p99 ms`]: quantile(0.99),
    };
}

const worker = fork(new URL("worker.js", import.meta.url), [peer, part]);
try {
    await Promise.race([
        once(worker, "message"),
        once(worker, "exit").then(() => Promise.reject(new Error(`${name} has ended`))),
    ]);
    const bus = await sender(process.env.PEER_URL, part);
    const figures = await (part.startsWith("latency") ? latency(bus, worker) : drain(bus, worker));
    await bus.close();
    console.log(JSON.stringify(figures));
} finally {
    worker.kill("SIGCONT");
    worker.kill("SIGKILL");
}
process.exit();
