#!/bin/sh
# A training script without any client: POSIX sh and awk, one JSON line an epoch.
#
# It walks down Rosenbrock's valley by gradient descent with momentum. An epoch
# is 200 steps, the data fraction scales how many of them are taken, and the
# metric is the height it got to, as a logarithm.
#
# By hand: TANDEM_PARAMS='{"learning_rate": 0.001, "momentum": 0.9}' sh train.sh
set -eu

: "${TANDEM_PARAMS:={\"learning_rate\": 0.001, \"momentum\": 0.9\}}"
: "${TANDEM_EPOCHS:=3}" "${TANDEM_FIRST_EPOCH:=1}" "${TANDEM_DATA_FRACTION:=1}"
state=${TANDEM_CHECKPOINT_DIR:+$TANDEM_CHECKPOINT_DIR/state}

# The number behind a name in a flat JSON object.
number() {
	printf '%s\n' "$TANDEM_PARAMS" | sed -n 's/.*"'"$1"'"[ ]*:[ ]*\([-+.0-9eE]*\).*/\1/p'
}

# Position and speed: where the last run ended, or the usual start.
start="-1.2 1 0 0"
if [ "$TANDEM_FIRST_EPOCH" -gt 1 ]; then
	start=$(cat "$state")
fi

echo "epochs $TANDEM_FIRST_EPOCH to $TANDEM_EPOCHS from $start" # not a JSON object: goes to the log

awk -v start="$start" -v first="$TANDEM_FIRST_EPOCH" -v last="$TANDEM_EPOCHS" \
	-v fraction="$TANDEM_DATA_FRACTION" -v new="${state:+$TANDEM_CHECKPOINT_DIR.new}" \
	-v rate="$(number learning_rate)" -v momentum="$(number momentum)" '
BEGIN {
	split(start, s, " "); x = s[1]; y = s[2]; u = s[3]; v = s[4]
	for (epoch = first; epoch <= last; epoch++) {
		for (step = 0; step < 200 * fraction; step++) {
			u = momentum * u - rate * (-2 * (1 - x) - 400 * x * (y - x * x))
			v = momentum * v - rate * (200 * (y - x * x))
			x += u; y += v
			# Out of the valley for good: said so, not hidden.
			if (x > 1e6 || x < -1e6 || y > 1e6 || y < -1e6) diverged = 1
			if (diverged) { x = y = 1e6; u = v = 0 }
		}
		height = (1 - x) ^ 2 + 100 * (y - x * x) ^ 2
		loss = diverged ? "NaN" : sprintf("%.6f", log(height + 1e-12) / log(10))
		printf "{\"epoch\": %d, \"loss\": %s}\n", epoch, loss
		fflush() # an epoch is reported when it ends, not when the script does
	}
	if (new) printf "%.17g %.17g %.17g %.17g\n", x, y, u, v > new
}'

# Ending with 0 commits what is in the checkpoint folder as the state after the
# last epoch printed. Written beside it and moved, so that it is never half a file.
if [ -n "$state" ]; then
	mv "$TANDEM_CHECKPOINT_DIR.new" "$state"
fi
