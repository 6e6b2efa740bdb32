#!/usr/bin/env bash
# The manifests of deploy/k8s, as kustomize renders them. CFG.2, CFG.8
# shellcheck source=tests/deploy/lib.sh
. "$(dirname "$0")/lib.sh"

checks() { jq -r -L "$deploy_tests" "include \"pods\"; $1"; }

test_every_overlay_is_known_to_kubernetes_field_by_field() {
    for overlay in "${overlays[@]}"; do
        rendered "$overlay" >"$work/manifests"
        valid "$work/manifests" || fail "$overlay: $(cat "$work/types")"
    done
}

test_every_component_is_known_to_its_operator() {
    in_copy
    for component in "${components[@]}"; do
        rendered_with "$component" production >"$work/manifests"
        valid "$work/manifests" || fail "$component: $(cat "$work/types")"
    done
}

test_what_the_overlay_offers_as_comments_fits_together() {
    in_copy
    replace deploy/k8s/overlays/production/kustomization.yaml 's|# (- ../../components/)|\1|'
    rendered production >"$work/manifests"
    valid "$work/manifests" || fail "$(cat "$work/types")"
    same "$(jq -r '[.[] | select(.apiVersion | startswith("keda") or startswith("monitoring")).kind] | sort | join(" ")' "$work/manifests")" \
        'PodMonitor PrometheusRule ScaledObject TriggerAuthentication' 'what the operators get'
    none 'in another namespace' "$(jq -r '.[] | select(.metadata.namespace != "commandbus").metadata.name' "$work/manifests")"
}

# spoilt FILE SED OVERLAY FIELD: with that typo, the check above names the field.
spoilt() {
    in_copy
    replace "deploy/k8s/$1" "$2"
    if [[ $3 == production ]]; then rendered production; else rendered_with "$3" production; fi >"$work/manifests"
    if valid "$work/manifests"; then fail "a typo in $1 is not found: $2"; fi
    grep -q "'\"$4\"' does not exist" "$work/types" || fail "the typo is not named: $(cat "$work/types")"
}
test_a_typo_in_a_deployment_is_found() {
    spoilt base/worker/deployment.yaml 's/readinessProbe:/readynessProbe:/' production readynessProbe
}
test_a_typo_deep_in_a_deployment_is_found() {
    spoilt base/worker/deployment.yaml 's/matchLabelKeys:/matchLabelsKeys:/' production matchLabelsKeys
}
test_a_typo_in_a_network_policy_is_found() { spoilt base/networkpolicy.yaml 's/namespaceSelector:/nameSpaceSelector:/' production nameSpaceSelector; }
test_a_typo_in_a_scaled_object_is_found() { spoilt components/keda/scaledobject.yaml 's/maxReplicaCount:/maxReplicas:/' keda maxReplicas; }
test_a_typo_in_an_alert_is_found() { spoilt components/alerts/prometheusrule.yaml 's/for: 2m/forr: 2m/' alerts forr; }
test_a_typo_in_a_pod_monitor_is_found() { spoilt components/podmonitor/podmonitor.yaml 's/authorization:/authorisation:/' podmonitor authorisation; }
test_a_value_of_the_wrong_type_is_found() {
    in_copy
    replace deploy/k8s/base/worker/deployment.yaml 's/terminationGracePeriodSeconds: 45/terminationGracePeriodSeconds: 45s/'
    rendered production >"$work/manifests"
    if valid "$work/manifests"; then fail 'a text where a number must be is not found'; fi
}

test_production_is_the_fleet_of_two_deployments_with_three_replicas_each() {
    same "$(rendered production | jq -c '[.[] | select(.kind == "Deployment") | [.metadata.name, .spec.replicas,
            (.spec.template.spec.containers[0].env[] | select(.name == "COMMANDBUS_PROFILE").value)]]')" \
        '[["payments-worker",3,"payments-worker"],["ratelimited-worker",3,"ratelimited-worker"]]' 'the fleet'
}

test_no_surge_and_a_fleet_limit_for_the_rate_limited_and_nobody_scales_it() {
    in_copy
    rendered_with keda production >"$work/manifests"
    of_deployment() { jq -c --arg name "$1" ".[] | select(.kind == \"Deployment\" and .metadata.name == \$name).spec | $2" "$work/manifests"; }
    same "$(of_deployment ratelimited-worker '[.replicas, .strategy.rollingUpdate.maxSurge]')" '[3,0]' 'replicas and surge'
    same "$(jq -r '.[].spec.scaleTargetRef.name? // empty' "$work/manifests")" payments-worker 'what is scaled'
    same "$(of_deployment payments-worker 'has("replicas")')" false 'replicas beside an autoscaler'
}

test_every_file_of_the_configuration_is_in_the_config_map_as_it_is() {
    rendered production | jq '.[] | select(.metadata.name | startswith("commandbus-config-")).data' >"$work/data"
    for file in "$tree"/config/*.cfg; do
        jq -j --arg file "${file##*/}" '.[$file]' "$work/data" | cmp - "$file"
    done
    same "$(jq length "$work/data")" "$(find "$tree/config" -name '*.cfg' | wc -l)" 'the number of files'
}

test_pods_are_restricted() {
    for overlay in "${overlays[@]}"; do none "$overlay" "$(rendered "$overlay" | checks insecure)"; done
}
test_a_pod_that_is_not_restricted_is_found() {
    in_copy
    replace deploy/k8s/base/worker/deployment.yaml 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/'
    same "$(rendered dev | checks insecure)" 'Deployment multipurpose-worker: a root that can be written' 'what is wrong'
}

test_selectors_select_what_they_are_for() {
    in_copy
    for overlay in dev production; do none "$overlay" "$(rendered "$overlay" | checks mismatched)"; done
    none podmonitor "$(rendered_with podmonitor production | checks mismatched)"
}
test_selectors_that_select_nobody_are_found() {
    in_copy
    replace deploy/k8s/base/worker/poddisruptionbudget.yaml 's/matchLabels:/matchLabel:/'
    replace deploy/k8s/overlays/production/networkpolicy.yaml 's/component: payments-worker/component: payment-worker/'
    rendered production | checks mismatched >"$work/wrong"
    grep -q '^PodDisruptionBudget payments-worker selects' "$work/wrong" || fail "$(cat "$work/wrong")"
    grep -q '^NetworkPolicy commandbus-from-api-clients selects no pod' "$work/wrong" || fail "$(cat "$work/wrong")"
}

# Everybody is denied what is not needed, jobs too, and only the payments-worker is asked for payments.
test_network_policies_are_those_that_each_pod_needs() {
    for overlay in "${overlays[@]}"; do
        rendered "$overlay" >"$work/$(tr / - <<<"$overlay")"
    done
    of_pods() {
        # shellcheck disable=SC2016 # for jq
        checks '. as $all | pods[] | .labels as $l | .name + ": " + ($all | policies($l) | join(" "))' <"$work/$1" | sed 's/commandbus-//g'
    }
    same "$(of_pods production)" "Deployment payments-worker: default-deny from-api-clients from-monitoring to-dns to-downstream-apis to-postgresql
Deployment ratelimited-worker: default-deny from-monitoring to-dns to-downstream-apis to-postgresql"
    # Jobs run beside the fleet, whose policies are for their label too.
    jq -s 'add' "$work"/production{,-migrate,-replay-gate} >"$work/all"
    same "$(of_pods all | grep Job)" "Job migrate: default-deny to-dns to-postgresql
Job replay-gate: default-deny to-dns to-postgresql"
    same "$(of_pods dev | grep '^Deployment simulator')" 'Deployment simulator: default-deny to-dns to-postgresql simulator-from-workers'
}

# settings_of OVERLAY WORKLOAD: what the worker says to the environment of a workload, as JSON.
settings_of() {
    local environment
    rendered "$1" | environment_of "$2" >"$work/workload"
    mkdir -p "$work/config"
    for file in $(jq -r '.files | keys[]' "$work/workload"); do
        jq -j --arg file "$file" '.files[$file]' "$work/workload" >"$work/config/$file"
    done
    mapfile -d '' -t environment < <(jq -j '.environment | to_entries[] | .key + "=" + .value + "\u0000"' "$work/workload")
    env -i "${environment[@]}" "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" --check-config --json 2>"$work/warnings"
}

test_the_grace_period_is_longer_than_the_drain_of_the_effective_configuration() {
    local seconds='capture("^(?<n>[0-9]+)(?<u>ms|s|m|h)$") | (.n | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.u]'
    while read -r overlay workload; do
        drain=$(settings_of "$overlay" "$workload" | jq ".keys[] | select(.key == \"worker.shutdown-timeout\").value | $seconds")
        rendered "$overlay" | jq -e --arg name "$workload" --argjson drain "$drain" \
            '.[] | select(.kind == "Deployment" and .metadata.name == $name).spec.template.spec
             | .terminationGracePeriodSeconds > $drain + (.containers[0].lifecycle.preStop.sleep.seconds // 0)' >/dev/null ||
            fail "$workload of $overlay would be killed while it drains for $drain s"
    done <<<'dev multipurpose-worker
production ratelimited-worker
production payments-worker'
}

test_probes_ask_what_the_worker_serves_where_it_listens() {
    rendered production | jq -e '[.[] | select(.kind == "Deployment").spec.template.spec.containers[]
        | .startupProbe.httpGet.path == "/livez" and .livenessProbe.httpGet.path == "/livez" and .readinessProbe.httpGet.path == "/readyz"
          and (.ports | any(.name == "http" and .containerPort == 9464))] | length == 2 and all' >/dev/null
    same "$(settings_of production payments-worker |
        jq -c '[.keys[] | select(.key | test("^http[.](bind|port|token-file|api-port)$|^worker.name$")).value]')" \
        '["pod","0.0.0.0",9464,"/run/secrets/commandbus/token",8080]' 'where it listens'
    # Clients of the API reach its port and no other.
    rendered production | jq -e '(.[] | select(.kind == "Deployment" and .metadata.name == "payments-worker").spec.template.spec.containers[0].ports
            | any(.name == "api" and .containerPort == 8080))
        and (.[] | select(.kind == "Service" and .metadata.name == "payments-api").spec.ports | map(.targetPort) == ["api"])
        and (.[] | select(.kind == "NetworkPolicy" and .metadata.name == "commandbus-from-api-clients").spec.ingress | map(.ports[].port) == ["api"])' >/dev/null
}

# ---- names ----

is_known() {
    ! env -i "$1=1" "$COMMANDBUS_WORKER_BIN" --config-dir "$tree/config" --profile multipurpose-worker --check-config 2>&1 |
        grep -q "unknown setting $1"
}

# Comments too: they are there to be copied.
test_every_variable_in_the_manifests_is_one_of_the_worker() {
    local names name
    names=$(grep -rhoE --include='*.yaml' --include='*.env' 'COMMANDBUS_[A-Z0-9_]+[A-Z0-9]' "$tree/deploy/k8s" | sort -u)
    (($(wc -l <<<"$names") > 20)) || fail "only $names"
    for name in $names; do is_known "$name" || fail "the worker has no variable $name"; done
    if is_known COMMANDBUS_DOMAINS_FX_CONCURENT_MESSAGES; then fail 'a typo is known'; fi
}

# S4's Deployments set these.
test_every_variable_of_s4_is_shown() {
    for name in FEATURES_{COMMAND_HANDLERS,PROCESS_EXECUTION,REPLY_PROCESSING} DOMAINS_{FX,RISK,PAYMENTS}_ENABLED \
        DOMAINS_{FX,RISK,PAYMENTS}_CONCURRENT_MESSAGES; do
        grep -rqw "COMMANDBUS_$name" "$tree/deploy/k8s/overlays/production" || fail "COMMANDBUS_$name is not shown"
    done
}

test_what_is_commented_out_says_what_the_profile_says() {
    in_copy
    for role in ratelimited payments; do
        # What the profile leaves open is the code's or the domain's: the comment shows how to say it.
        settings_of production "$role-worker" | jq -S '.keys | map(select(.value != null) | {key, value})' \
            >"$work/$role.before"
        replace "deploy/k8s/overlays/production/$role-worker/deployment.yaml" 's/# (- \{name: COMMANDBUS)/\1/'
        settings_of production "$role-worker" | jq -S --slurpfile said "$work/$role.before" \
            '.keys | map(select([.key] | inside($said[0] | map(.key))) | {key, value})' >"$work/$role.after"
        same "$(cat "$work/warnings")" '' 'what the worker has to say'
        diff "$work/$role.before" "$work/$role.after"
    done
}

run_tests
