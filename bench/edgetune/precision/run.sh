#!/bin/sh
# Trains four networks, and prints how each precision of them does on this machine.
#
#     bench/edgetune/precision/run.sh TANDEM PYTHON FOLDER
#
# PYTHON has torch, numpy, onnx, onnxruntime and the client. FOLDER is new. Beside
# that, estimates of the same files are printed, without any calibration.
set -eu
tandem=$(realpath "$1")
bin=$(realpath -s "$(dirname "$2")")
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$3"
cd "$3"
"$tandem" serve --data data --listen 127.0.0.1:7411 >server.txt 2>server.log &
server=$!
trap 'kill $server $worker 2>/dev/null' EXIT
sleep 1
until grep -q TANDEM_TOKEN= server.txt; do sleep 1; done
TANDEM_SERVER=http://127.0.0.1:7411
TANDEM_TOKEN=$(sed -n 's/^ *export TANDEM_TOKEN=//p' server.txt)
TANDEM_ONNXRUNTIME=$("$2" -c 'import os, onnxruntime; print(os.path.join(os.path.dirname(onnxruntime.__file__), "capi"))')
export TANDEM_SERVER TANDEM_TOKEN TANDEM_ONNXRUNTIME
"$tandem" worker --slots 1 --probe never --scratch scratch --path "$bin" --allow-read "$here/../../../examples" >worker.txt 2>&1 &
worker=$!
"$tandem" study create "$here/study.yaml"
"$tandem" study watch precisions
for trial in 0 1 2 3; do
	until [ "$("$tandem" study deployments precisions --trial $trial --json | grep -c '"measured": {')" -ge 4 ]; do sleep 2; done
	"$tandem" study show precisions >/dev/null
	echo
	uptime
	"$tandem" study deployments precisions --trial $trial
	"$tandem" study artifacts precisions $trial --output models-$trial >/dev/null
	for model in models-$trial/*.onnx; do
		echo "$model: $("$tandem" edge deploy "$model" --device this-machine --json | grep -m1 -A1 '"latency_seconds"' | tr -d '\n')"
	done
done
