# For deploy/check-limits: which workloads of rendered manifests run workers, and what limits they give together.

def named($kind; $name): map(select(.kind == $kind and .metadata.name == $name)) | first;

# "25%" of n, rounded up as Kubernetes does for a surge; or a number.
def share($n): if type == "string" then (rtrimstr("%") | tonumber) * $n / 100 | ceil else . end;

def surge($replicas):
    if .kind != "Deployment" or .spec.strategy.type == "Recreate" then 0
    else .spec.strategy.rollingUpdate.maxSurge // "25%" | share($replicas) end;

# The most replicas that an autoscaler among $all may give to this workload; null when none scales it.
def most_replicas($all):
    . as $workload | [$all[]
        | select(.kind == "ScaledObject" or .kind == "HorizontalPodAutoscaler")
        | select(.spec.scaleTargetRef.name == $workload.metadata.name and
                 (.spec.scaleTargetRef.kind // "Deployment") == $workload.kind)
        | .spec.maxReplicaCount // .spec.maxReplicas // 100] | max;

# A variable that decides about limits must be known; others are left out when they come from a Secret.
def decides: test("^COMMANDBUS_(PROFILE|CONFIG_DIR|DOMAINS_.*|FEATURES_.*)$");

def variable($all):
    if has("value") then {(.name): .value}
    elif .valueFrom.configMapKeyRef then .valueFrom.configMapKeyRef as $ref
        | ($all | named("ConfigMap"; $ref.name).data[$ref.key]) as $value
        | if $value then {(.name): $value} elif $ref.optional then {}
          else error("\(.name) comes from key \($ref.key) of ConfigMap \($ref.name), which the overlay does not have") end
    elif .valueFrom.fieldRef then {(.name): "pod"}
    elif .name | decides then error("\(.name) comes from a Secret: what it gives cannot be known here")
    else {} end;

def variables_of($all):
    if .configMapRef then .configMapRef as $ref | .prefix as $prefix
        | ($all | named("ConfigMap"; $ref.name)) as $map
        | if $map then $map.data | with_entries(.key |= ($prefix // "") + .) elif $ref.optional then {}
          else error("envFrom has ConfigMap \($ref.name), which the overlay does not have") end
    else {} end;

def environment($all):
    ([.envFrom[]? | variables_of($all)] | add // {}) + ([.env[]? | variable($all)] | add // {})
    | with_entries(select(.key | startswith("COMMANDBUS_")))
    | with_entries(if .value | test("\\$\\(") then error("\(.key) refers to another variable, which is not supported") else . end);

# The files of the ConfigMap that is mounted where the worker looks for its configuration.
def files($all; $pod):
    (.env // [] | map(select(.name == "COMMANDBUS_CONFIG_DIR").value) | first // "/etc/commandbus") as $folder
    | ([.volumeMounts[]? | select(.mountPath == $folder).name] | first) as $volume
    | ([$pod.volumes[]? | select(.name == $volume).configMap.name] | first) as $name
    | ($all | named("ConfigMap"; $name).data) // error("no ConfigMap of the overlay is mounted at \($folder)");

# Who says no command gets the image's, and that of ours is the worker.
def command: (.command // []) + (.args // []);
def is_ours: .image // "" | test("(^|/)commandbus([:@]|$)");
def is_worker: if command == [] then is_ours else command | first | endswith("commandbus-worker") end;

# Of all manifests: one object a workload that runs workers. `unknown` says why one cannot be looked at.
def workloads:
    . as $all | .[]
    | select(.kind == "Deployment" or .kind == "StatefulSet" or .kind == "DaemonSet" or .kind == "ReplicaSet") | . as $workload
    | .spec.template.spec as $pod | $pod.containers[] | select(is_worker) | . as $container
    | ($workload | most_replicas($all)) as $most
    | (if $most then $most else $workload.spec.replicas // 1 end) as $replicas
    | {name: $workload.metadata.name, kind: $workload.kind, replicas: $replicas, autoscaled: ($most != null),
       surge: ($workload | surge($replicas)), waits_for_end: ($workload.spec.strategy.type == "Recreate"),
       arguments: ($container | command[1:])}
      + try (if $workload.kind == "DaemonSet" then error("a DaemonSet has as many pods as the cluster has nodes: no limit follows")
             else {environment: ($container | environment($all)), files: ($container | files($all; $pod))} end)
        catch {unknown: .};

# Of the workloads with what the worker said to each: domains, their limits, and remarks.
def limits:
    [.[] | . as $w | select(.checked.features["command-handlers"]) | .checked.limits[]
        | {domain, fleet_limit, workload: $w.name, pods: $w.replicas, autoscaled: $w.autoscaled,
           surge: $w.surge, waits_for_end: $w.waits_for_end, slots: .concurrent_messages}]
    | group_by(.domain) | map(
        {domain: .[0].domain, workloads: map(del(.domain)),
         calls: (map(.pods * .slots) | add), rollout: (map((.pods + .surge) * .slots) | add),
         fleet_limits: (map(.fleet_limit | values) | unique)} # none said: left as the database has it
        | .fleet_limit = (.fleet_limits | max // 0)
        | .limit = (if .fleet_limit > 0 then [.calls, .fleet_limit] | min else .calls end)) as $domains
    | {domains: ($domains | map(del(.fleet_limits))),
       remarks: [$domains[]
           | (select(.fleet_limits | length > 1)
              | "\(.domain): workloads say different fleet-limits (\(.fleet_limits | join(", "))): the last to start wins"),
             (select(.fleet_limit == 0 and (.workloads | any(.waits_for_end | not)))
              | "\(.domain): no fleet-limit: \(.rollout) during a rollout, and those that Terminating pods finish"),
             (select(.fleet_limit > .calls) | "\(.domain): the fleet-limit \(.fleet_limit) is above the \(.calls) slots of its pods"),
             (select(.fleet_limit > 0 and .fleet_limit < .calls)
              | "\(.domain): the fleet-limit \(.fleet_limit) leaves \(.calls - .fleet_limit) of \(.calls) slots unused")]};

def table:
    ["domain", "workload", "pods", "surge", "slots", "calls", "rollout", "fleet-limit", "limit"],
    (.domains[] | . as $d | .workloads | to_entries[] | .value as $w
        | [$d.domain, $w.workload, "\($w.pods)\(if $w.autoscaled then " at most" else "" end)", $w.surge, $w.slots]
          + if .key == 0 then [$d.calls, $d.rollout, if $d.fleet_limit > 0 then $d.fleet_limit else "none" end, $d.limit]
            else ["", "", "", ""] end)
    | @tsv;
