# What must hold of rendered manifests; each function gives a line for everything that is wrong.

def pods: [.[] | select(.spec.template.spec.containers?)
    | {name: "\(.kind) \(.metadata.name)", labels: .spec.template.metadata.labels, spec: .spec.template.spec}];
def selects($labels): . as $selector | ($selector.matchLabels // $selector // {}) as $wanted
    | ($wanted | length) > 0 and ($wanted | to_entries | all(.value == $labels[.key]));

# Pod Security "restricted", and what it leaves open: numeric user, read-only root, no token, resources.
def insecure:
    pods[] | .name as $name | .spec as $pod
    | (if $pod.securityContext.runAsNonRoot != true then "runAsNonRoot" else empty end),
      (if ($pod.securityContext.runAsUser // 0) < 1000 then "no numeric user" else empty end),
      (if $pod.securityContext.seccompProfile.type != "RuntimeDefault" then "seccomp" else empty end),
      (if $pod.automountServiceAccountToken != false then "a service account token" else empty end),
      (if $pod.hostNetwork or $pod.hostPID or $pod.hostIPC then "the host's namespaces" else empty end),
      ($pod.volumes[]? | select(keys - ["name", "configMap", "secret", "emptyDir", "projected"] != []) | "volume \(.name)"),
      (($pod.containers + ($pod.initContainers // []))[]
        | (if .securityContext.allowPrivilegeEscalation != false then "allowPrivilegeEscalation" else empty end),
          (if .securityContext.readOnlyRootFilesystem != true then "a root that can be written" else empty end),
          (if .securityContext.capabilities.drop != ["ALL"] then "capabilities" else empty end),
          (if .securityContext.capabilities.add then "added capabilities" else empty end),
          (if .securityContext.privileged then "privileged" else empty end),
          (if (.resources.requests.cpu and .resources.requests.memory and .resources.limits.memory) | not then "resources" else empty end),
          (.env[]? | select(.name | test("_DATABASE_|PASSWORD|TOKEN$")) | select(has("value")) | "\(.name) is no reference to a Secret"))
    | "\($name): \(.)";

# Selectors that select nothing, or the wrong pods.
def mismatched:
    . as $all | pods as $pods
    | (.[] | select(.kind == "PodDisruptionBudget") | . as $pdb
        | [$pods[] | select(.labels as $l | $pdb.spec.selector | selects($l)).name] as $found
        | select($found != ["Deployment \($pdb.metadata.name)"]) | "PodDisruptionBudget \(.metadata.name) selects \($found)"),
      (.[] | select(.kind == "Deployment") | . as $d
        | [$pods[] | select(.labels as $l | $d.spec.selector | selects($l)).name] as $found
        | select($found != ["Deployment \($d.metadata.name)"]) | "Deployment \(.metadata.name) selects \($found)"),
      (.[] | select(.kind == "Deployment") | . as $d | .spec.template.spec.topologySpreadConstraints[]?
        | select(.labelSelector != $d.spec.selector) | "Deployment \($d.metadata.name) spreads others than its own pods"),
      (.[] | select(.kind == "Service" or .kind == "PodMonitor") | . as $s
        | [$pods[] | select(.labels as $l | ($s.spec.selector | selects($l)))] as $found
        | ([$s.spec.ports[]?.targetPort] + [$s.spec.podMetricsEndpoints[]?.port]) as $ports
        | select(($found | length) == 0 or ($found | all([.spec.containers[].ports[]?.name] | contains($ports)) | not))
        | "\(.kind) \(.metadata.name) selects \([$found[].name]), port \($ports)"),
      (.[] | select(.kind == "NetworkPolicy") | . as $policy
        | [$pods[] | select(.labels as $l | $policy.spec.podSelector | selects($l))] as $found
        | (select(($found | length) == 0) | "NetworkPolicy \(.metadata.name) selects no pod"),
          (.spec.ingress[]?.ports[]? | select(.port | type == "string") | .port as $port
            | select($found | all([.spec.containers[].ports[]?.name] | index($port) != null) | not)
            | "NetworkPolicy \($policy.metadata.name): not all its pods have a port \($port)"),
          ((.spec.ingress[]?.from[]?, .spec.egress[]?.to[]?) | select(.podSelector and (.namespaceSelector | not)) | .podSelector as $peer
            | select([$pods[] | select(.labels as $l | $peer | selects($l))] == [])
            | "NetworkPolicy \($policy.metadata.name): nobody is \($peer)"));

# The names of the policies that a pod of these labels has.
def policies($labels): [.[] | select(.kind == "NetworkPolicy") | select(.spec.podSelector | selects($labels)).metadata.name] | sort;
