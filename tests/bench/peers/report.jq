# The rounds of tests/bench/peers.sh, objects with one figure a name, as what it prints: medians, and
# ratios of figures of the same round.
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def hundredths: . * 100 | round / 100;
def whole_or_hundredths(name): if name | endswith(" ms") then hundredths else round end;
# "drain, pg-boss" and "latency, pg-boss, p50 ms" are measured against ours of the same kind.
def ours(name): name | sub("^(?<part>[a-z]+), [^,]+"; "\(.part), commandbus");

. as $rounds
| [$rounds[] | keys_unsorted[]] | reduce .[] as $name ([]; if index([$name]) then . else . + [$name] end)
| . as $names
| reduce $names[] as $name ({};
    [$rounds[][$name] | values] as $all
    | .[$name] = {value: ($all | median | whole_or_hundredths($name)),
                  rounds: ($all | map(whole_or_hundredths($name)))})
| reduce ($names[] | select(ours(.) != .)) as $name (.;
    [$rounds[] | select(has($name)) | .[ours($name)] / .[$name]] as $all
    | .["ours / theirs: \($name)"] = {ratio: ($all | median | hundredths), rounds: ($all | map(hundredths))})
