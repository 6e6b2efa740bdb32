# The slices of tests/bench/fleet.sh, as the figures that it prints: medians, and ratios of slices
# that stood side by side.
def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;
def hundredths: . * 100 | round / 100;
def value(f): {value: (map(f) | median | hundredths), rounds: map(f | hundredths)};
def processor: .server + .workers;
def fleet: {
    "payments per second": value(.rate),
    "processor time per payment, server and workers, ms": value(processor),
    "processor time per payment, server, ms": value(.server),
    "processor time per payment, workers, ms": value(.workers),
    "processor time per payment, simulator, ms": value(.simulator),
    "\(.[0].calls_name) per payment": value(.calls),
    "commits per payment": value(.commits),
    "WAL bytes per payment": value(.wal),
    "most in flight": .[-1].most
};
def of(name): map(select(.tree == name));
def against(f): [of("ours"), of("against")] | transpose | map((.[0] | f) / (.[1] | f)) |
    {ratio: (median | hundredths), rounds: map(hundredths)};

if any(.[]; .tree == "against") then
    {
        ours: (of("ours") | fleet),
        against: (of("against") | fleet),
        "ours / against, processor time per payment": against(processor),
        "ours / against, of the server": against(.server),
        "ours / against, of the workers": against(.workers),
        "ours / against, payments per second": against(.rate)
    }
else
    fleet
end
