package study_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
)

// networks is a study of networks with so many channels, some of which have the
// same architecture.
func networks(name string, lines ...string) []string {
	return append(named(name, append(lines, "resources: {gpus: 1}")...),
		"{x: {type: float, low: 0, high: 1}}",
		"{channels: {kind: model, type: ordinal, values: [4, 8, 16, 32, 64]}, batch_size: {type: ordinal, values: [16, 64, 256]}, x: {type: float, low: 0, high: 1}}",
		"stop: {trials: 27}", "stop: {trials: 200}", "method: bohb", "method: random")
}

func number(lease *protocol.Lease, name string) float64 {
	value, _ := lease.Params[name].Number()
	return value
}

// usedBy is what the made-up GPU shows of a network.
func usedBy(lease *protocol.Lease) *trial.GPUUse {
	work := number(lease, "channels") * number(lease, "batch_size")
	return &trial.GPUUse{
		Utilization: 0.05 + 0.9*work/(work+2000), MemoryBytes: int64(300e6 + 1e5*work), GPUMemoryBytes: 40 << 30, Seconds: 40, Alone: true, Method: trial.GPUUseByProcess,
	}
}

// tell says what the lease's script trains.
func (w *world) tell(lease *protocol.Lease) {
	w.t.Helper()
	if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(w.t, lease, int64(number(lease, "channels")))); err != nil {
		w.t.Fatal(err)
	}
}

// reportSeen reports an epoch with what was seen of the GPU.
func (w *world) reportSeen(lease *protocol.Lease, epoch int, seconds float64, use *trial.GPUUse) {
	w.t.Helper()
	if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: trial.Float(seconds), Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)}, GPUUse: use,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// trainAlone runs a lease to its budget and shows what it uses.
func (w *world) trainAlone(lease *protocol.Lease) {
	w.t.Helper()
	w.tell(lease)
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		w.reportSeen(lease, epoch, 40, usedBy(lease))
	}
	if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) learn() {
	w.t.Helper()
	if err := w.service.Learn(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// expected is what the trial is expected to use.
func (w *world) expected(lease *protocol.Lease) *protocol.GPUExpected {
	w.t.Helper()
	detail, err := w.service.TrialDetail(w.ctx, lease.StudyID, lease.Number)
	if err != nil {
		w.t.Fatal(err)
	}
	return detail.GPUExpected
}

func (w *world) wantReason(lease *protocol.Lease, words string) {
	w.t.Helper()
	found := w.expected(lease)
	if found == nil || len(found.GPUs) != 1 || found.GPUs[0].Known() || !strings.Contains(found.GPUs[0].Reason, words) {
		w.t.Errorf("trial %d (%v) is expected to use %+v, want %q", lease.Number, lease.Params, found, words)
	}
}

func TestTrainingsTeachWhatOthersUse(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(networks("networks")...)
		w.rack("worker-rack", 1, 1)
		first := w.mustLease("worker-rack")
		w.wantReason(first, "call trial.save_model")
		w.trainAlone(first)
		w.wantReason(first, "1 trainings were seen alone on such a GPU")
		trainings := map[trial.ID]bool{first.Trial: true}
		for range 40 {
			lease := w.mustLease("worker-rack")
			w.trainAlone(lease)
			trainings[lease.Trial] = true // some are promoted
		}
		w.wantReason(first, "is being learned")
		w.learn()
		// A trial whose script has not said anything yet trains what others did.
		lease := w.mustLease("worker-rack")
		found := w.expected(lease)
		if found == nil || len(found.GPUs) != 1 || !found.GPUs[0].Known() || found.Basis != "trials with the same channels train this model" || found.BatchSize != int64(number(lease, "batch_size")) ||
			found.Architecture != fmt.Sprintf("architecture-%g", number(lease, "channels")) {
			t.Fatalf("%+v", found)
		}
		one, is := found.GPUs[0], usedBy(lease)
		if math.Abs(one.Utilization-is.Utilization) > 0.1 || math.Abs(float64(one.MemoryBytes-is.MemoryBytes)) > 0.2*float64(is.MemoryBytes) || one.UtilizationLow > one.Utilization || one.UtilizationHigh < one.Utilization {
			t.Errorf("%+v, it uses %+v", one, is)
		}
		if one.GPU != "NVIDIA A100" || one.Trainings != len(trainings) || one.Unseen || one.UtilizationOff <= 0 {
			t.Errorf("%+v", one)
		}
		// Behind a restart the same is learned from what was stored, to the bit.
		w.start()
		w.rack("worker-rack", 1, 1)
		w.learn()
		if again := w.expected(lease); !reflect.DeepEqual(again, found) {
			t.Errorf("behind a restart %+v, before %+v", again, found)
		}
		pool, err := w.service.Pool(w.ctx)
		if err != nil || len(pool.GPUModels) != 1 {
			t.Fatalf("%+v, %v", pool.GPUModels, err)
		}
		model := pool.GPUModels[0]
		if model.GPU != "NVIDIA A100" || model.Trainings != len(trainings) || model.Architectures != 5 || model.LearnedFrom != len(trainings) || model.Known == nil || !strings.Contains(model.Pairs.Reason, "0 pairs were seen") {
			t.Errorf("%+v", model)
		}
	})(t)
}

// Only what was seen alone, for long enough, and of a known model teaches.
func TestWhatTeachesNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(networks("networks")...)
		w.rack("worker-rack", 6, 6)
		var leases []*protocol.Lease
		for range 6 {
			leases = append(leases, w.mustLease("worker-rack"))
		}
		for i, lease := range leases {
			use := usedBy(lease)
			switch i {
			case 0: // too short
				use.Seconds = 12
			case 1:
				use.Alone = false
			case 2:
				use.MemoryBytes = 0
			case 3:
				use = nil
			case 4: // it was said what it trains
			case 5: // it was not
			}
			if i != 5 {
				w.tell(lease)
			}
			w.reportSeen(lease, 1, 40, use)
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		pool, err := w.service.Pool(w.ctx)
		if err != nil || len(pool.GPUModels) != 1 || pool.GPUModels[0].Trainings != 1 {
			t.Errorf("%+v, %v: one training of six was to be learned from", pool.GPUModels, err)
		}
	})(t)
}

func TestAnEarlierStudyWithTheSameScriptSaysWhatIsTrained(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(networks("first")...)
		w.rack("worker-rack", 1, 1)
		for range 30 {
			w.trainAlone(w.mustLease("worker-rack"))
		}
		w.learn()
		if _, err := w.service.Stop(w.ctx, "ada:first"); err != nil {
			t.Fatal(err)
		}
		w.as(user("bob")).create(networks("his")...)
		his := w.mustLease("worker-rack")
		w.wantReason(his, "no script has said yet what it trains")
		if _, err := w.service.Stop(w.ctx, "bob:his"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(his, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.as(user("ada")).create(networks("second")...)
		hers := w.mustLease("worker-rack")
		if found := w.expected(hers); found == nil || !found.GPUs[0].Known() || !strings.Contains(found.Basis, "same channels") {
			t.Errorf("%+v", found)
		}
	})(t)
}

// Where a study does not say which parameters are the model's, trials show it.
func TestTrialsShowWhichParametersDecideTheModel(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(replaced(networks("networks"), "kind: model, ", "")...)
		w.rack("worker-rack", 1, 1)
		var leases []*protocol.Lease
		for range 30 {
			lease := w.mustLease("worker-rack")
			w.trainAlone(lease)
			leases = append(leases, lease)
		}
		w.learn()
		if found := w.expected(w.mustLease("worker-rack")); found == nil || !found.GPUs[0].Known() || found.Basis != "trials with the same channels train this model" {
			t.Errorf("%+v", found)
		}
		// Whoever looks through a link hears nothing of workers.
		linked := access.WithCaller(w.ctx, access.Caller{Sight: access.Shared, Study: leases[0].StudyID, Holder: "nobody"})
		detail, err := w.service.TrialDetail(linked, leases[0].StudyID, 0)
		if err != nil || detail.GPUExpected != nil {
			t.Errorf("%+v, %v", detail.GPUExpected, err)
		}
	})(t)
}

// What was declared and is contradicted does not count: a script that makes
// deeper networks for larger batches has batches decide, too.
func TestContradictedDeclarationsDoNotCount(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(networks("networks")...)
		w.rack("worker-rack", 1, 1)
		for range 40 {
			lease := w.mustLease("worker-rack")
			if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, int64(number(lease, "channels")*number(lease, "batch_size")))); err != nil {
				t.Fatal(err)
			}
			w.reportSeen(lease, 1, 40, usedBy(lease))
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		w.learn()
		known, why := 0, []string{}
		for range 12 {
			lease := w.mustLease("worker-rack")
			found := w.expected(lease)
			why = append(why, found.Basis)
			if found.Architecture != "" && !strings.Contains(found.Basis, "its script") {
				known++
				if want := fmt.Sprintf("architecture-%g", number(lease, "channels")*number(lease, "batch_size")); found.Architecture != want || found.Basis != "trials with the same channels, batch_size train this model" {
					t.Errorf("%v: %+v, want %s", lease.Params, found, want)
				}
			}
			if _, err := w.finish(lease, protocol.CommandFailed); err != nil {
				t.Fatal(err)
			}
		}
		if known == 0 {
			t.Errorf("of none it is known what it trains: %v", why)
		}
	})(t)
}

// replaced are the replacements with words in what comes instead changed.
func replaced(pairs []string, from, to string) []string {
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = strings.ReplaceAll(pairs[i], from, to)
	}
	return pairs
}
