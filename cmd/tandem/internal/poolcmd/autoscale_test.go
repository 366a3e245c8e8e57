package poolcmd

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
)

func TestAutoscaleRunsTheOperatorsCommands(t *testing.T) {
	t.Parallel()
	flags := autoscaleFlags{wake: "echo woken {name} {id}", sleep: "env", timeout: time.Minute, pace: demand.Pace{Steady: 2, Pause: time.Hour}}
	advice := protocol.PoolAdvice{Unit: protocol.DemandGPUs, Wanted: 4, Awake: 6, Workers: []protocol.WorkerAdvice{
		{ID: "worker-a", Name: "rack 1; rm -rf /", Silent: true, Action: "wake", Reason: "it sleeps"}, {ID: "worker-b", Name: "b", Action: "sleep", Reason: "it has ended its trials"}, {ID: "worker-c", Name: "c", Action: "drain", Reason: "the server does that"}, {ID: "worker-d", Name: "d", Action: "wake", Reason: "the server does that, too"},
	}}
	say := func() string {
		var out bytes.Buffer
		flags.act(t.Context(), advice, &out)
		return out.String()
	}
	if said := say(); !strings.Contains(said, "would run: echo woken rack 1; rm -rf / worker-a") || strings.Contains(said, "sleep b") || strings.Contains(said, "drain") || strings.Contains(said, "wake d") {
		t.Errorf("without --apply: %s", said)
	}
	flags.apply, flags.pace = true, demand.Pace{Steady: 2, Pause: time.Hour}
	if said := say(); !strings.Contains(said, "          woken rack 1; rm -rf / worker-a\n") || strings.Contains(said, "sleep b") {
		t.Errorf("the first time: %s", said)
	}
	if said := say(); !strings.Contains(said, "sleep b: it has ended its trials") || !strings.Contains(said, "TANDEM_WORKER=b\n") || !strings.Contains(said, "TANDEM_POOL_WANTED=4\n") || strings.Contains(said, "woken") {
		t.Errorf("the second time: %s", said)
	}
	advice.Workers, advice.Missing = nil, 3
	if said := say(); !strings.Contains(said, "wake more machines: 3 GPUs are wanted") || !strings.Contains(said, "woken") {
		t.Errorf("for machines that are not known: %s", said)
	}
	if said := say(); said != "" {
		t.Errorf("at once again: %s", said)
	}
	flags.wake, flags.pace = "/nowhere/wake", demand.Pace{Pause: time.Hour}
	if said := say(); !strings.Contains(said, "/nowhere/wake failed: ") {
		t.Errorf("a command that is not there: %s", said)
	}
}

func TestArgumentsOfAutoscale(t *testing.T) {
	t.Parallel()
	got := argv("  wake --name={name}   {id} ", demand.Host{Name: "--all the rest", ID: "x-1"})
	if want := []string{"wake", "--name=all the rest", "x-1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	good := autoscaleFlags{wake: "w", every: time.Minute, timeout: time.Minute, pace: demand.Pace{Steady: 1}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*autoscaleFlags){
		"both missing": func(f *autoscaleFlags) { f.wake = "" }, "--every": func(f *autoscaleFlags) { f.every = time.Second },
		"--steady": func(f *autoscaleFlags) { f.pace.Steady = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
