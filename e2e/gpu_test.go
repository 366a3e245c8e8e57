package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// gpuScript holds a part of the GPU that it was given until it is let go, and
// runs out of its memory once, if told.
const gpuScript = `
echo "$CUDA_VISIBLE_DEVICES 30 2048" > "$PLACE/gpus/$$"
trap 'rm -f "$PLACE/gpus/$$"' EXIT
epoch=$TANDEM_FIRST_EPOCH
while [ "$epoch" -le "$TANDEM_EPOCHS" ]; do
	until [ -e "$PLACE/go$epoch" ]; do
		if rm "$PLACE/full" 2> /dev/null; then
			echo "torch.OutOfMemoryError: CUDA out of memory." >&2
			exit 1
		fi
		sleep 0.1
	done
	echo "{\"epoch\": $epoch, \"accuracy\": 0.5}"
	epoch=$((epoch + 1))
done
`

const gpuStudy = `
name: shares
command: [sh, %[1]s/train.sh]
environment: {PLACE: %[1]s}
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 2, max: 2}}
search: {method: random}
retry: {failures: 0}
stop: {trials: 4}
resources: {gpu_share: 0.4}
`

// TestTrialsShareGPUs: a real worker with a double of NVIDIA's driver runs two
// trials on each of its two GPUs, sees what each of them uses, and one that runs
// out of memory beside another comes back though its study allows no failure.
func TestTrialsShareGPUs(t *testing.T) {
	t.Parallel()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build the driver's double with")
	}
	place := t.TempDir()
	driver := filepath.Join(place, "libnvidia-ml.so.1")
	if said, err := exec.Command(compiler, "-shared", "-fPIC", "-o", driver, "testdata/gpus.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	if err := os.Mkdir(filepath.Join(place, "gpus"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("train.sh", gpuScript)
	put("study.yaml", fmt.Sprintf(gpuStudy, place))

	at := newSite(t, "--heartbeat-seconds", "1")
	worker, err := launch.Start(binary, append(at.environment(), "LD_LIBRARY_PATH="+place, "TANDEM_TEST_GPUS="+filepath.Join(place, "gpus")),
		"worker", "--probe", "never", "--scratch", t.TempDir(), "--slots", "6", "--sandbox", "off", "--name", "box")
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, worker)
	at.must("study", "create", filepath.Join(place, "study.yaml"))
	runs := func() []protocol.PoolRun {
		var list []protocol.PoolRun
		for _, machine := range read[protocol.Pool](t, at.must("pool", "--json")).Machines {
			list = append(list, machine.Running...)
		}
		return list
	}
	until(t, "four trials beside each other", func() bool { return len(runs()) == 4 })
	for _, run := range runs() {
		if gpu := run.GPU; gpu == nil || gpu.Share == nil || len(gpu.Beside) != 1 || gpu.Share.MemoryBytes < 6<<30 {
			t.Errorf("trial %d has %+v", run.Number, run.GPU)
		}
	}

	put("full", "")
	trials := func() []trial.Trial {
		var list []trial.Trial
		for number := range 4 {
			list = append(list, read[protocol.TrialDetail](t, at.must("study", "trial", "shares", fmt.Sprint(number), "--json")).Trial.Trial)
		}
		return list
	}
	short := func() *trial.Trial {
		for _, one := range trials() {
			if one.GPUShortage != nil {
				return &one
			}
		}
		return nil
	}
	until(t, "one out of memory", func() bool { return short() != nil })
	if one := short(); one.Failures != 0 || one.GPUShortage.Times != 1 || one.GPUShortage.NeedBytes <= 6<<30 {
		t.Errorf("it has %d failures, %+v", one.Failures, one.GPUShortage)
	}

	until(t, "what the trials use to be seen", func() bool {
		for _, run := range runs() {
			if run.GPU == nil || run.GPU.Use == nil || run.GPU.Use.Seconds < 1 {
				return false
			}
		}
		return true
	})
	put("go1", "")
	put("go2", "")
	at.must("study", "watch", "shares", "--json")
	for _, one := range trials() {
		if use := one.GPUUse; one.State != trial.Completed || use == nil || use.MemoryBytes != 2<<30 || use.Utilization < 0.29 || use.Utilization > 0.31 {
			t.Errorf("trial %d is %s, and was seen to use %+v", one.Number, one.State, use)
		}
	}
	if said := at.must("study", "trial", "shares", fmt.Sprint(short().Number)); !strings.Contains(said, "Ran out of GPU memory beside other trials 1 time") {
		t.Errorf("of it is said:\n%s", said)
	}
}
