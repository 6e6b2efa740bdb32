// One worker process of a peer: worker.js PEER PART, started by slice.js. Says "ready", and on
// request at which moments of the monotonic clock its handler was entered.
const [peer, part] = process.argv.slice(2);
const { work } = await import(`./${peer}.js`);
let entries = [];

await work(process.env.PEER_URL, part, (id) => {
    if (id !== undefined) entries.push([id, Number(process.hrtime.bigint())]);
});
process.on("message", () => {
    process.send(entries);
    entries = [];
});
process.on("disconnect", () => process.exit());
process.send("ready");
