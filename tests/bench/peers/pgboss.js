// pg-boss: workers that fetch batches, by polling or woken by a notification.
import { PgBoss } from "pg-boss";
import pg from "pg";

const queue = "noop";
const polling = 0.5; // seconds; it takes nothing less

export const settings = {
    drain: {
        work: {
            batchSize: 100,
            localConcurrency: 4,
            pollingIntervalSeconds: polling,
            burstWhenBatchFull: true,
        },
    },
    // A batch, or those that came in between two looks would queue up.
    latency: { work: { batchSize: 100, localConcurrency: 4, pollingIntervalSeconds: polling } },
    "latency, notify": { notify: true, work: { batchSize: 100, localConcurrency: 4 } },
};

async function open(url, options) {
    const boss = new PgBoss({ connectionString: url, schedule: false, ...options });
    boss.on("error", (e) => console.error(e.message));
    await boss.start();
    return boss;
}

export async function work(url, part, entered) {
    const { notify = false, work } = settings[part];
    const boss = await open(url, { useListenNotify: notify });
    if (!(await boss.getQueue(queue))) await boss.createQueue(queue, { notify });
    else await boss.updateQueue(queue, { notify });
    await boss.work(queue, work, async (jobs) => {
        for (const job of jobs) entered(job.data.id);
    });
}

export async function sender(url) {
    const boss = await open(url, { supervise: false });
    const db = new pg.Client(url);
    await db.connect();
    const some = async (states) =>
        (await db.query(`SELECT FROM pgboss.job WHERE name = $1 AND ${states} LIMIT 1`, [queue]))
            .rowCount > 0;
    return {
        fill: async (n, data) => {
            for (let left = n; left > 0; left -= 1000)
                await boss.insert(queue, Array(Math.min(left, 1000)).fill({ data }));
        },
        send: (id) => boss.send(queue, { id }),
        // Done jobs stay in the table. It has an index of those that wait; active ones are looked
        // for only when none waits any more.
        isEmpty: async () => !(await some("state < 'active'")) && !(await some("state = 'active'")),
        close: async () => {
            await db.end();
            await boss.stop({ graceful: false });
        },
    };
}
