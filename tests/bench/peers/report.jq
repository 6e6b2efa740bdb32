# The rounds of tests/bench/peers.sh, objects with one figure a name, as what it prints: medians, and
# ratios of figures of the same round.
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def hundredths: . * 100 | round / 100;
def thousandths: . * 1000 | round / 1000;
def whole_or_hundredths(name): if name | endswith(" ms") then hundredths else round end;
# Of "latency, pg-boss, p50 ms": who, and what remains without it. Ratios are of those with the same.
def who: split(", ")[1];
def what: split(", ") | del(.[1]) | join(", ");
def is_ours: who | startswith("commandbus");

. as $rounds
| [$rounds[] | keys_unsorted[]] | reduce .[] as $name ([]; if index([$name]) then . else . + [$name] end)
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
