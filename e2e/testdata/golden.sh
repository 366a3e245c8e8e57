#!/bin/sh
# Writes the golden data folder: what a build of some commit has stored, for
# TestADataFolderOfAnEarlierBuildGoesOn. It is made once for a version, by a build
# of that version, and not again.
#
#     e2e/testdata/golden.sh TANDEM PYTHON-CLIENT GOLDEN.tar.gz
set -eu
tandem=$1 client=$(cd "$2" && pwd) archive=$3
folder=$(mktemp -d)
trap 'kill $server $worker 2>/dev/null || true; rm -rf "$folder"' EXIT
export PYTHONPATH="$client"

cat >"$folder/train.py" <<'PYTHON'
import math
import tandem

for trial in tandem.trials():
    x, y = trial.params["x"], trial.params.get("y", 0.5)
    for epoch in trial.epochs():
        if trial.params.get("kind") == "broken" and epoch > 1:
            raise RuntimeError("this kind is broken")
        accuracy = 1 - (x - 0.3) ** 2 - (y - 0.6) ** 2 - 0.5 / epoch
        trial.report(accuracy=accuracy, cost=x + math.sin(5 * y))
PYTHON

study() { # its name, then lines that replace the usual ones
	cat >"$folder/$1.yaml" <<YAML
name: $1
command: [python3, train.py]
directory: $folder
$2
YAML
	"$tandem" study create "$folder/$1.yaml" >/dev/null
}

TANDEM_TOKEN=
"$tandem" serve --data "$folder/data" --listen 127.0.0.1:0 >"$folder/serve.log" 2>&1 &
server=$! worker=
until grep -q "More tokens" "$folder/serve.log"; do sleep 0.2; done
TANDEM_SERVER=$(sed -n 's/^Tandem answers at \([^,]*\),.*/\1/p' "$folder/serve.log")
TANDEM_TOKEN=$(sed -n 's/.*export TANDEM_TOKEN=//p' "$folder/serve.log")
export TANDEM_SERVER TANDEM_TOKEN

one='objective: {metric: accuracy, direction: maximize}'
two='objective: [{metric: accuracy, direction: maximize}, {metric: cost, direction: minimize}]'
space='space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}}'
mixed='space: {x: {type: float, low: 0.01, high: 1, log: true}, y: {type: float, low: 0, high: 1}, width: {type: int, low: 1, high: 64}, kind: {type: categorical, values: [plain, deep, broken]}}'
ladder='budget: {epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}'
flat='budget: {policy: epochs, epochs: {min: 1, max: 3}, eta: 3}'

study bohb "$one
$mixed
$ladder
search: {method: bohb, seed: 1, repeats: {trials: 2, times: 2}}
stop: {trials: 27}
retry: {failures: 0}"
for method in tpe cma-es gp random sobol; do
	study "$method" "$one
$space
$ladder
search: {method: $method, seed: 2}
stop: {trials: 18}"
done
study grid "$one
$space
$flat
search: {method: grid, grid_points: 4}"
study several "$two
$space
$ladder
search: {method: bohb, seed: 3}
stop: {trials: 18}"
study tuned "$one
$space
$ladder
system: {cpu_threads: {values: [1, 2]}}
search: {method: random, seed: 4}
stop: {trials: 12}"

"$tandem" worker --name golden --directory "$folder" --slots 2 --probe never >"$folder/worker.log" 2>&1 &
worker=$!
mkdir "$folder/data/exports"
for name in bohb tpe cma-es gp random sobol grid several tuned; do
	"$tandem" study watch "$name" >/dev/null || true
	"$tandem" study export "$name" --format json --output "$folder/data/exports/$name.json"
	"$tandem" study replay "$name" --json >"$folder/data/exports/$name.replay"
done
kill $worker && wait $worker || true
kill $server && wait $server || true
server= worker=
tar -C "$folder" -czf "$archive" data
