// DBOS: workflows from a queue that is polled, each step with a checkpoint.
import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import pg from "pg";

const name = "bench";

const pool = 20;

// Its defaults (it polls a queue every second), but for a larger pool; and for the latency once
// more with a queue that is polled as often as makes sense. That is another queue: one whose
// interval is changed only comes near to it poll by poll.
const queues = {
    jobs: {},
    eager: { minPollingIntervalMs: 10 },
};
const queueOf = (part) => (part === "latency, polling every 10 ms" ? "eager" : "jobs");

const nothing = async () => {};

// The steps of PaymentWorkflow: bookFx and bookRisk are commands to another domain with us, and
// steps in the same process here.
async function five(payment) {
    for (const step of ["validate", "bookFx", "enrich", "bookRisk", "execute"])
        await DBOS.runStep(nothing, { name: step });
    return payment.id;
}

export async function work(url, part, entered) {
    DBOS.setConfig({
        name,
        systemDatabaseUrl: url,
        systemDatabasePoolSize: pool,
        applicationVersion: "1",
        logLevel: "error",
    });
    DBOS.registerWorkflow(async (data) => entered(data.id), { name: "noop" });
    DBOS.registerWorkflow(five, { name: "five" });
    await DBOS.launch();
    const queue = queueOf(part);
    await DBOS.registerQueue(queue, { ...queues[queue], onConflict: "always_update" });
}

export async function sender(url, part) {
    const quiet = { info() {}, debug() {}, warn: console.error, error: console.error };
    const client = await DBOSClient.create({
        systemDatabaseUrl: url,
        applicationName: name,
        systemDatabasePoolSize: 8,
        logger: quiet,
    });
    const db = new pg.Client(url);
    await db.connect();
    const workflowName = part === "five" ? "five" : "noop";
    const enqueue = (data) => client.enqueue({ queueName: queueOf(part), workflowName }, data);
    const some = async (status) =>
        (await db.query("SELECT FROM dbos.workflow_status WHERE status = $1 LIMIT 1", [status]))
            .rowCount > 0;
    return {
        fill: async (n, data) => {
            for (let left = n; left > 0; left -= 50)
                await Promise.all(Array.from({ length: Math.min(left, 50) }, () => enqueue(data)));
        },
        send: (id) => enqueue({ id }),
        isEmpty: async () => !(await some("ENQUEUED")) && !(await some("PENDING")),
        close: async () => {
            await db.end();
            await client.destroy();
        },
    };
}
