# The rounds of tests/bench/peers.sh, objects with one figure a name, as what it prints: medians,
# and ratios of figures of the same round.
def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;
def hundredths: . * 100 | round / 100;
def thousandths: . * 1000 | round / 1000;
def whole_or_hundredths(name): if name | endswith(" ms") then hundredths else round end;
# Of "latency, pg-boss, p50 ms": who, and what remains without it. Ratios are of those with the
# same.
def who: split(", ")[1];
def what: split(", ") | del(.[1]) | join(", ");
def is_ours: who | startswith("commandbus");

. as $rounds
| reduce ($rounds[] | keys_unsorted[]) as $name ([]; if index([$name]) then . else . + [$name] end)
| . as $names
| reduce $names[] as $name ({};
    [$rounds[][$name] | values] as $all
    | .[$name] = {value: ($all | median | whole_or_hundredths($name)),
                  rounds: ($all | map(whole_or_hundredths($name)))})
| reduce ($names[] | select(is_ours)) as $ours (.;
    reduce ($names[] | select((is_ours | not) and what == ($ours | what))) as $theirs (.;
        [$rounds[] | select(has($ours)) | .[$ours] / .[$theirs]] as $all
        | .["\($ours | what): \($ours | who) / \($theirs | who)"] =
            {ratio: ($all | median | thousandths), rounds: ($all | map(thousandths))}))
