// graphile-worker: jobs are fetched by each of its workers, or many at once into a local queue.
import { Logger, run } from "graphile-worker";
import pg from "pg";

// For throughput what its documentation names for its own figures: a local queue, and outcomes of
// jobs gathered for the next round trip.
export const settings = {
    drain: {
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
    },
    latency: { concurrentJobs: 10, maxPoolSize: 12 },
};

const quiet = { error: console.error, warning: console.error, info: () => {}, debug: () => {} };

export async function work(url, part, entered) {
    await run({
        connectionString: url,
        noHandleSignals: true,
        logger: new Logger(() => (level, message) => quiet[level]?.(message)),
        taskList: { noop: async (payload) => entered(payload.id) },
        preset: { worker: { connectionString: url, ...settings[part] } },
    });
}

export async function sender(url) {
    const db = new pg.Client(url);
    await db.connect();
    return {
        fill: (n, data) =>
            db.query(
                `SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(
                     json_populate_record(NULL::graphile_worker.job_spec,
                         json_build_object('identifier', 'noop', 'payload', $2::json)))
                 FROM generate_series(1, $1::integer)))`,
                [n, data],
            ),
        send: (id) => db.query("SELECT graphile_worker.add_job('noop', $1::json)", [{ id }]),
        // From the end of the index: a job that was done is deleted.
        isEmpty: async () =>
            (await db.query("SELECT FROM graphile_worker._private_jobs ORDER BY id DESC LIMIT 1"))
                .rowCount === 0,
        close: () => db.end(),
    };
}
