package study_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// world is a server without HTTP: a service on a store that outlives it. It is
// used inside a synctest bubble, so its clock is the bubble's.
type world struct {
	t       testing.TB
	ctx     context.Context
	store   study.Store
	logs    journal.LogStore
	random  *rand.Rand
	service *study.Service
}

func newWorld(t testing.TB, seed uint64) *world {
	kept := memory.New()
	w := &world{t: t, ctx: t.Context(), store: kept, logs: kept, random: rand.New(rand.NewPCG(seed, 1))}
	w.start()
	return w
}

// start makes a new service on the store, as a restarted server does.
func (w *world) start() {
	w.t.Helper()
	w.service = study.New(w.store, w.logs, study.Options{Now: time.Now, Random: w.random.Uint64, LeaseSeconds: 60, HeartbeatSeconds: 10})
	if err := w.service.Start(w.ctx); err != nil {
		w.t.Fatalf("start: %v", err)
	}
}

// defaultFile is a study of three rungs: 1, 3 and 9 epochs.
const defaultFile = `
name: example
command: [train]
objective: [{metric: accuracy, direction: maximize}]
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: 27}
`

// changed is the default file with lines replaced. Nothing of the system is tuned in it
// unless a line says so.
func changed(replace ...string) (definition.Definition, error) {
	file := strings.NewReplacer(replace...).Replace(defaultFile)
	if !strings.Contains(file, "system:") {
		file += "system: off\n"
	}
	return studyfile.Parse([]byte(file), studyfile.YAML)
}

// create makes a study from the default file with lines replaced.
func (w *world) create(replace ...string) protocol.StudyView {
	w.t.Helper()
	def, err := changed(replace...)
	if err != nil {
		w.t.Fatal(err)
	}
	view, err := w.service.CreateWarm(w.ctx, def, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

func (w *world) register(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// lease asks for a trial and does not wait; nil means that there is none.
func (w *world) lease(worker string) *protocol.Lease {
	w.t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker})
	if err != nil {
		w.t.Fatal(err)
	}
	return reply.Lease
}

func (w *world) mustLease(worker string) *protocol.Lease {
	w.t.Helper()
	lease := w.lease(worker)
	if lease == nil {
		w.t.Fatal("there was nothing to lease")
	}
	return lease
}

// report sends an epoch with the accuracy the parameter x gives it.
func (w *world) report(lease *protocol.Lease, epoch int) (protocol.Directive, error) {
	return w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 2,
		Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)},
		Energy:  &trial.Energy{Joules: 3, Method: "estimate: test"},
	})
}

// accuracy grows with the epoch and is best at x = 0.7.
func accuracy(lease *protocol.Lease, epoch int) trial.Float {
	x, _ := lease.Params["x"].Number()
	return trial.Float((1 - (x-0.7)*(x-0.7)) * (1 - 1/float64(epoch+1)))
}

func (w *world) mustReport(lease *protocol.Lease, epoch int) protocol.Directive {
	w.t.Helper()
	directive, err := w.report(lease, epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	return directive
}

func (w *world) checkpoint(lease *protocol.Lease, epoch int) error {
	artifact := fmt.Sprintf("%064x", epoch)
	w.service.Uploaded(w.ctx, artifact, 10, false)
	return w.service.CommitCheckpoint(w.ctx, lease.Trial, protocol.CheckpointCommit{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Artifact: artifact, Bytes: 10,
	})
}

func (w *world) finish(lease *protocol.Lease, outcome protocol.Outcome) (protocol.FinishReply, error) {
	return w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome})
}

// train runs a lease to its budget, with a checkpoint at the end, and says how
// many epochs were trained.
func (w *world) train(lease *protocol.Lease) int {
	w.t.Helper()
	epochs := 0
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		directive := w.mustReport(lease, epoch)
		epochs++
		wanted := protocol.Continue
		if epoch == lease.Budget.Epochs {
			wanted = protocol.Finish
		}
		if directive.Action != wanted {
			w.t.Fatalf("epoch %d of %d was answered %q, want %q", epoch, lease.Budget.Epochs, directive.Action, wanted)
		}
	}
	if err := w.checkpoint(lease, lease.Budget.Epochs); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
		w.t.Fatal(err)
	}
	return epochs
}

// trial is the stored trial.
func (w *world) trial(id trial.ID) trial.Trial {
	w.t.Helper()
	stored, err := w.store.Trial(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return stored
}

func (w *world) view(name string) protocol.StudyView {
	w.t.Helper()
	view, err := w.service.Study(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

// sleep lets time pass, with the ticks a server makes.
func (w *world) sleep(span time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		time.Sleep(time.Second)
		if err := w.service.Tick(w.ctx); err != nil {
			w.t.Fatal(err)
		}
	}
}
