# The figures of tests/bench/goals.sh, objects with one benchmark each, as what it prints: each goal
# with what was measured, what it must be and what it aims at. A benchmark that was not run leaves
# its goals out.
add as $is
| [
    # name, measured, must, aim, whether less of it is better
    ["five-step processes / raw PGMQ", $is.peers["five: commandbus / raw PGMQ"].ratio, 0.06, 0.08],
    ["five-step processes / DBOS", $is.peers["five: commandbus / DBOS"].ratio, 20, 30],
    ["five steps, idle, p50 ms", $is.latency["Five, idle, start to COMPLETED p50, ms"].value,
     12, 8, true],
    ["drain with replies, 100 slots / raw PGMQ",
     $is.peers["drain: commandbus with replies / raw PGMQ"].ratio, 0.55, 0.7],
    ["drain with replies, prefetch 1000 / graphile-worker",
     $is.peers["drain: commandbus with replies and prefetch 1000 / graphile-worker"].ratio, 0.8, 1],
    ["latency at 50/s, p50 / graphile-worker",
     $is.peers["latency, p50 ms: commandbus / graphile-worker"].ratio, 1, 0.8, true],
    ["send, 8 connections / raw PGMQ", $is.send["send / pgmq.send, 8 connections"].ratio, 0.75, 0.9],
    ["send_many / pgmq.send_batch", $is.send["send_many / pgmq.send_batch"].ratio, 0.5, 0.6],
    ["payment on the demo's fleet, processor time / the tree before",
     $is.fleet["ours / against, processor time per payment"].ratio, 0.6, 0.4, true],
    ["with 1,000,000 finished / with none",
     $is.history["with 1,000,000 finished / with none"].ratio, 0.9, 1]
  ]
| map(select(.[1] != null)
      | . as [$name, $value, $must, $aim, $less]
      | def reaches(goal): if $less then $value <= goal else $value >= goal end;
        {key: $name,
         value: {value: $value, must: $must, aim: $aim,
                 met: (if reaches($aim) then "aim" elif reaches($must) then "must" else "no" end)}})
| from_entries
