#!/usr/bin/env bash
# Creates a study and acts as its worker, with nothing but HTTP. It needs curl, jq and
# sha256sum, a running server (TANDEM_SERVER), and an admin token in TANDEM_TOKEN. It writes
# two small files into the folder that it is started in. The rules: docs/protocol.md.
set -euo pipefail

server=${TANDEM_SERVER:-http://127.0.0.1:7171}

# One logical call: --retry repeats it with the same key on 429, 503 and broken connections.
call() {
  method=$1 path=$2; shift 2
  curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --request "$method" \
       --header "Authorization: Bearer $TANDEM_TOKEN" \
       --header "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" \
       "$server/api/v1$path" "$@"
}
json() { call "$1" "$2" --header 'Content-Type: application/json' --data "$3"; }

curl --silent --fail "$server/healthz"                    # {"status":"ok"}

# /preview shows the plan of a study file, or its faults, and creates nothing.
cat > by-hand.yaml <<'YAML'
name: by-hand
objective: {metric: accuracy, direction: maximize}
space:
  learning_rate: {type: float, low: 1e-4, high: 1e-1, log: true}
budget: {epochs: {min: 1, max: 3}, eta: 3}
search: {method: bohb, seed: 7, brackets: 1}
stop: {trials: 3}
YAML

file() { call POST "$1" --header 'Content-Type: application/yaml' --data-binary @by-hand.yaml; }
file /preview | jq '.plan | {trials, epochs}'            # {"trials": 3, "epochs": 5}
file /studies | jq --raw-output '.id, .status'                # k3vqh8w2mz running
json POST /studies/by-hand/enqueue '{"configurations":[{"learning_rate":0.01}]}' | jq .waiting          # 1: it is tried first

# Register a worker, take a trial, and report its only epoch.
worker=curl-worker
json POST /workers '{"id":"curl-worker","name":"by hand","slots":1,"machine":{"host":"here","cores":1}}'
                                                          # {"lease_seconds":60,"heartbeat_seconds":10}
take() { json POST /leases "{\"worker\":\"$worker\",\"study\":\"by-hand\",\"wait_seconds\":5}" | jq .lease; }
report() {  # epoch, accuracy
  json POST "/trials/$trial/reports" \
    "{\"lease_epoch\":$lease_epoch,\"epoch\":$1,\"metrics\":{\"accuracy\":$2},\"seconds\":0.5}" | jq --raw-output .action
}
hold() { trial=$(jq --raw-output .trial_id <<<"$lease") lease_epoch=$(jq .lease_epoch <<<"$lease"); }

lease=$(take); hold
jq '{number, rung, params, budget, first_epoch}' <<<"$lease"
report 1 0.71                                             # finish: one epoch is the whole budget of rung 0
json POST "/trials/$trial/log" "{\"lease_epoch\":$lease_epoch,\"offset\":0,\"text\":\"one epoch, by hand\"}"
call GET /studies/by-hand/trials/0/log                    # one epoch, by hand

# Upload its state, commit it, and finish. A heartbeat in between keeps the lease.
printf 'weights after epoch 1' > checkpoint
hash=$(sha256sum checkpoint | cut -d ' ' -f 1)
bytes=$(wc -c < checkpoint)
call PUT "/artifacts/$hash" --header 'Content-Type: application/octet-stream' --data-binary @checkpoint
json POST "/trials/$trial/checkpoint" "{\"lease_epoch\":$lease_epoch,\"epoch\":1,\"artifact\":\"$hash\",\"bytes\":$bytes}"
json POST "/workers/$worker/heartbeat" "{\"leases\":[{\"trial_id\":\"$trial\",\"lease_epoch\":$lease_epoch}]}"
                                                          # {"lost":[],"directives":{"...":{"action":"finish",...}}}
finish() { json POST "/trials/$trial/finish" "{\"lease_epoch\":$lease_epoch,\"outcome\":\"$1\"}" | jq --raw-output .state; }
finish budget_reached                                     # paused: it may be promoted

# A late write of the same lease is refused.
json POST "/trials/$trial/reports" "{\"lease_epoch\":$lease_epoch,\"epoch\":1,\"metrics\":{\"accuracy\":0.99}}" | jq .code || true
                                                          # "lease_lost", with 409

# After two more trials the search promotes the best of the three.
call POST /studies/by-hand/pause | jq --raw-output .status   # paused: nobody gets a trial
call POST /studies/by-hand/resume | jq --raw-output .status  # running
lease=$(take); hold; report 1 0.64; finish budget_reached
lease=$(take); hold; report 1 '"NaN"'; finish budget_reached

lease=$(take); hold
jq '{number, rung, budget, first_epoch, lease_epoch, checkpoint}' <<<"$lease"
call GET "/artifacts/$(jq --raw-output .checkpoint.artifact <<<"$lease")"      # weights after epoch 1
report 2 0.78                                             # continue
report 3 0.83                                             # finish
finish budget_reached                                     # completed

# The next request ends the study.
json POST /leases "{\"worker\":\"$worker\",\"study\":\"by-hand\"}"             # {"study_finished":true}
call GET /studies/by-hand/recommendation | jq '{status, best: .best.value, params: .best.params, notes}'
call GET '/studies/by-hand/trials?sort=rank' | jq --raw-output '.trials[] | "\(.rank) \(.number) \(.state) \(.results[-1].values[0])"'
call GET '/studies/by-hand/export?format=csv'
curl --silent --no-buffer --max-time 1 --header "Authorization: Bearer $TANDEM_TOKEN" \
     "$server/api/v1/studies/by-hand/events?after=3" | grep '^event:' | sort | uniq --count || true
call DELETE "/workers/$worker"
