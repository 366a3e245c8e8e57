package study_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// picky is a store that refuses one change, the at-th, as one whose disk is full
// does. Until then the outcome of a change is open for a moment.
type picky struct {
	study.Store
	at      int
	refuses bool
	mutex   sync.Mutex // guards what follows
	changes []string   // what was handed in, in words
	refused int
	newest  *journal.Outcome
	// open is called while the outcome of the change at is open.
	open func()
}

var errRefused = problem.New(problem.Unavailable, "the disk is full")

// unwatched is the context of a call that is made beside those that are watched.
type unwatched struct{}

func (s *picky) Apply(ctx context.Context, change journal.Change) error {
	s.mutex.Lock()
	s.changes = append(s.changes, inWords(change))
	meant, open := len(s.changes) == s.at, s.open
	if meant && s.refuses {
		s.refused++
	}
	s.mutex.Unlock()
	if meant && open != nil && ctx.Value(unwatched{}) == nil {
		synctest.Wait() // whoever made it has shown what it shows
		open()
	}
	if meant && s.refuses {
		return errRefused
	}
	return s.Store.Apply(ctx, change)
}

// made is how many changes were handed in, and how many refused.
func (s *picky) made() (changes, refused int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.changes), s.refused
}

// watch has a call made while the outcome of the change at is open.
func (s *picky) watch(open func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open = open
}

// Submit is Apply beside its caller; changes take effect in their order.
func (s *picky) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	before, outcome := s.newest, journal.NewOutcome()
	s.newest = outcome
	go func() {
		if before != nil {
			_ = before.Wait()
		}
		outcome.Settle(s.Apply(ctx, change))
	}()
	return outcome
}

// inWords is what kind of change it is.
func inWords(change journal.Change) string {
	var words []string
	add := func(word string) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if change.Delete != "" {
		add("delete")
	}
	for _, event := range change.Events {
		add(string(event.Kind) + " " + event.State)
	}
	for _, write := range change.Trials {
		if n := len(write.Trial.Migrations); n > 0 && write.Trial.LeaseEpoch == write.Trial.Migrations[n-1].LeaseEpoch {
			add("leaves")
		}
	}
	for _, entry := range change.Pool {
		told := strings.Count(string(entry.Document), `"told":true`)
		add(fmt.Sprintf("%s(%t,%d)", entry.Kind, entry.Document != nil, told))
	}
	if len(change.Records)+len(change.Architectures) > 0 {
		add("knowledge")
	}
	return strings.Join(words, " ")
}

// pretending is a store of which nothing is changed.
type pretending struct{ study.Store }

func (pretending) Apply(context.Context, journal.Change) error { return nil }

func (s pretending) Submit(context.Context, journal.Change) *journal.Outcome {
	outcome := journal.NewOutcome()
	outcome.Settle(nil)
	return outcome
}

// trace is what one run of a scenario came to.
type trace struct {
	changes []string
	// Of the call whose change was refused, and repeated: its answer, and what was in
	// memory behind it, and would be behind a restart.
	answer            string
	memory, restarted []string
	end               []string
	refused           int
}

// durability plays scenarios with a store that refuses one change.
type durability struct {
	*world
	store *picky
	trace *trace
	bits  *rand.PCG
	tunes bool
}

// play runs a scenario in a world of its own, and refuses the at-th change.
func play(t *testing.T, scenario func(*durability), at int, refuses bool) *trace {
	t.Helper()
	var one trace
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		d := &durability{world: w, store: &picky{Store: w.store, at: at, refuses: refuses}, trace: &one, bits: rand.NewPCG(1, 1)}
		w.store, w.random = d.store, rand.New(d.bits)
		w.start()
		scenario(d)
		synctest.Wait()
		one.changes, one.refused, one.end = d.store.changes, d.store.refused, d.memory(w.service)
	})
	return &one
}

// settled has all that was refused loaded again, and is what is in memory then.
func (d *durability) settled() []string {
	d.t.Helper()
	synctest.Wait()
	if _, err := d.service.Studies(d.ctx); err != nil {
		d.t.Fatal(err)
	}
	return d.memory(d.service)
}

// call makes a call, and again if its change was refused. What it shows before its
// change is durable is nothing, and so is what is left of it when it is refused.
func (d *durability) call(what string, call func() (any, error)) {
	d.t.Helper()
	synctest.Wait() // what others do after the call before belongs to that one
	first, _ := d.store.made()
	bits := *d.bits
	const most = 5 // changes of one call
	if d.store.at <= first || first+most < d.store.at {
		if _, err := call(); err != nil {
			d.t.Fatalf("%s: %v", what, err)
		}
		return
	}
	before, woken := d.settled(), study.Woken(d.service)
	d.store.watch(func() {
		if woken() {
			d.t.Errorf("%s: others were woken before its change was durable", what)
		}
		compare(d.t, what+", while its change is not durable", beside(before), beside(d.memory(d.service)))
	})
	answer, err := call()
	synctest.Wait() // a worker that waited may take the trial
	d.store.watch(nil)
	if err != nil && strings.Contains(err.Error(), "the disk is full") {
		compare(d.t, what+", when its change was refused", before, d.settled())
		*d.bits = bits // ids are drawn, and may be others
		answer, err = call()
		synctest.Wait()
	}
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
	if last, _ := d.store.made(); first < d.store.at && d.store.at <= last {
		d.note(answer)
	}
}

// note keeps what the call of the refused change came to.
func (d *durability) note(answer any) {
	d.t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		d.t.Fatal(err)
	}
	d.trace.answer, d.trace.memory = string(text), d.settled()
	again := study.New(pretending{d.store.Store}, d.logs, study.Options{Now: time.Now, Random: func() uint64 { return 1 }, LeaseSeconds: 60, HeartbeatSeconds: 10})
	if err := again.Start(d.ctx); err != nil {
		d.t.Fatal(err)
	}
	d.trace.restarted = d.memory(again)
}

// beside is memory without the studies, what is being decided, and the trials that
// are kept for somebody, which have to be seen with the studies.
func beside(memory []string) []string {
	return slices.DeleteFunc(slices.Clone(memory), func(line string) bool {
		for _, prefix := range []string{".sessions", "search of ", ".allocator.state.leases.pending", ".allocator.state.leases.kept", ".allocator.state.queue.first"} {
			if strings.HasPrefix(line, prefix) {
				return true
			}
		}
		return strings.Contains(line, ".Reserved = ")
	})
}

// memory is what the service has in memory. Of tuned studies it leaves out what is computed
// from known runs when it is asked for, and kept: it says nothing that these do not.
func (d *durability) memory(service *study.Service) []string {
	return slices.DeleteFunc(study.Memory(service), func(line string) bool {
		_, of, found := strings.Cut(line, ".types[")
		return d.tunes && found && (strings.Contains(of, ".guesses[") || strings.Contains(of, ".memories[") && !strings.Contains(of, ".records["))
	})
}

// byDefault is the scenario with threads that are tuned, as they are by default.
func byDefault(scenario func(*durability)) func(*durability) {
	return func(d *durability) {
		d.tunes = true
		scenario(d)
	}
}

func compare(t testing.TB, what string, want, got []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: missing: %.300s", what, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: new: %.300s", what, line)
		}
	}
}

// TestNothingIsSeenBeforeItIsDurable refuses each kind of change once, in everything
// that happens to studies and the pool. Nothing of it is seen before it is durable,
// memory is what it was when it is refused, the repeated call has the answer that it
// has in an undisturbed run, and all goes on from there as it does in that, also
// behind a restart.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	for name, scenario := range map[string]func(*durability){
		"a life": aLife, "inferences": inferences, "a preemption": aPreemption, "an exchange": anExchange, "a move": aMove(true), "a move to who has other work": aMove(false),
		"a tuned life": byDefault(aLife), "a tuned preemption": byDefault(aPreemption),
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			for at, what := range play(t, scenario, 0, false).changes {
				if seen[what]++; seen[what] <= 2 {
					t.Run(fmt.Sprintf("%d %s", at+1, what), func(t *testing.T) {
						want, got := play(t, scenario, at+1, false), play(t, scenario, at+1, true)
						if got.refused != 1 {
							t.Fatal("nothing was refused")
						}
						if got.answer != want.answer {
							t.Errorf("the repeated call was answered\n%s\nand an undisturbed one\n%s", got.answer, want.answer)
						}
						compare(t, "behind the repeated call", want.memory, got.memory)
						compare(t, "behind a restart", want.restarted, got.restarted)
						if !strings.Contains(name, "tuned") { // what was guessed at another time is another guess
							compare(t, "at the end", want.end, got.end)
						}
					})
				}
			}
		})
	}
}

// The pool shows no trial as running before its lease is durable.
func TestThePoolShowsDurableLeases(t *testing.T) {
	looked := 0
	play(t, func(d *durability) {
		d.register("one")
		d.made()
		d.store.at, _ = d.store.made()
		d.store.at++
		running := func() int {
			found, err := d.service.Pool(d.ctx)
			if err != nil {
				t.Fatal(err)
			}
			return len(found.Machines[0].Running)
		}
		d.store.watch(func() {
			if looked++; running() > 0 {
				t.Error("it is shown before")
			}
		})
		if reply, err := d.service.Lease(d.ctx, protocol.LeaseRequest{Worker: "one"}); err != nil || reply.Lease == nil || running() != 1 {
			t.Errorf("it is not shown after: %+v, %v", reply, err)
		}
	}, 0, false)
	if looked != 1 {
		t.Errorf("looked %d times", looked)
	}
}

// made makes a study from the default file with lines replaced.
func (d *durability) made(replace ...string) (view protocol.StudyView) {
	d.t.Helper()
	if d.tunes {
		replace = append(replace, "stop: {trials: 27}", "stop: {trials: 27}\nsystem: auto")
	}
	def, err := changed(replace...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.call("a study is made", func() (any, error) {
		view, err = d.service.CreateWarm(d.ctx, def, nil)
		return view, err
	})
	return view
}

// lease asks for a trial.
func (d *durability) lease(worker string) (lease *protocol.Lease) {
	d.t.Helper()
	d.call(worker+" asks", func() (any, error) {
		reply, err := d.service.Lease(d.ctx, protocol.LeaseRequest{Worker: worker})
		lease = reply.Lease
		return reply, err
	})
	return lease
}

// report ends an epoch that took so much memory.
func (d *durability) report(lease *protocol.Lease, epoch int, of breed) (told protocol.Directive) {
	d.t.Helper()
	report := protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: trial.Float(of.seconds), Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)},
		Energy: &trial.Energy{Joules: trial.Float(of.seconds * of.watts), Method: "rapl"}, Profile: &trial.Profile{Host: map[string]trial.Float{"tree.resident_bytes": trial.Float(epoch << 20)}},
	}
	d.call(fmt.Sprintf("%s reports epoch %d", lease.Trial, epoch), func() (any, error) {
		var err error
		told, err = d.service.Report(d.ctx, lease.Trial, report)
		return told, err
	})
	return told
}

func (d *durability) save(lease *protocol.Lease, epoch int) {
	d.t.Helper()
	d.call("a checkpoint", func() (any, error) { return nil, d.checkpoint(lease, epoch) })
}

func (d *durability) end(lease *protocol.Lease, outcome protocol.Outcome) {
	d.t.Helper()
	d.call(fmt.Sprintf("%s ends: %s", lease.Trial, outcome), func() (any, error) { return d.finish(lease, outcome) })
}

// pass lets time pass, with ticks, each made again if its change was refused.
func (d *durability) pass(span time.Duration) {
	d.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		time.Sleep(time.Second)
		first, _ := d.store.made()
		err := d.service.Tick(d.ctx)
		if _, refused := d.store.made(); err != nil && refused == 1 {
			err = d.service.Tick(d.ctx)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		if last, _ := d.store.made(); first < d.store.at && d.store.at <= last {
			d.note(nil)
		}
	}
}

// aLife is of all that happens to studies and the rules of the pool on one type of
// machine.
func aLife(d *durability) {
	enrol := func(id string) {
		if _, err := d.service.RegisterWorker(d.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 4, Machine: protocol.Machine{Cores: 8, GPUs: []string{"a", "a"}}}); err != nil {
			d.t.Fatal(err)
		}
	}
	enrol("one")
	enrol("two")
	first := d.made("{min: 1, max: 9}", "{min: 2, max: 4}", "eta: 3", "eta: 2", "trials: 27", "trials: 6", "command: [train]", "command: [train]\nresources: {gpus: 1}\nretry: {failures: 1}")
	second := d.made("name: example", "name: second\npriority: 1\nstop: {trials: 3, failures: 2}", "stop: {trials: 27}", "")
	d.call("a quota", func() (any, error) { return d.service.SetQuota(d.ctx, "ada", protocol.Quota{GPUSecondsADay: 1e6}) })
	d.call("a drain", func() (any, error) { return d.service.Drain(d.ctx, "two", protocol.DrainRequest{}) })
	d.call("its end", func() (any, error) { return d.service.Undrain(d.ctx, "two") })
	d.call("a reservation", func() (any, error) {
		return d.service.Reserve(d.ctx, protocol.ReservationRequest{User: "ada", Worker: "away", To: time.Now().Add(3 * time.Minute)})
	})
	d.call("a configuration", func() (any, error) {
		return d.service.Enqueue(d.ctx, first.ID, protocol.EnqueueRequest{Configurations: []space.Configuration{{"x": space.Float(0.5)}}})
	})
	d.call("a note", func() (any, error) {
		text := "hm"
		return d.service.AnnotateStudy(d.ctx, first.ID, trial.Amendment{Note: &text})
	})

	a := d.lease("one") // of the study of the higher priority
	d.report(a, 1, swift)
	d.call("a transfer", func() (any, error) {
		return d.service.Transfer(d.ctx, second.ID, protocol.Ownership{Owner: "ada", Name: "adas"})
	})
	d.save(a, 1)
	d.end(a, protocol.Interrupted)
	a = d.lease("one") // goes on
	d.end(a, protocol.Refused)
	a = d.lease("two")
	d.end(a, protocol.Vanished)
	d.pass(2 * time.Second)
	a = d.lease("two")
	d.end(a, protocol.Vanished) // rests now
	b := d.lease("two")
	d.end(b, protocol.CommandFailed)
	c := d.lease("two")
	d.end(c, protocol.CommandFailed)
	d.pass(20 * time.Second)
	for range 3 {
		if c = d.lease("two"); c != nil {
			d.report(c, c.FirstEpoch, swift)
		}
	}
	d.call("a pause", func() (any, error) { return d.service.Pause(d.ctx, first.ID) })
	d.call("it goes on", func() (any, error) { return d.service.Resume(d.ctx, first.ID) })
	e := d.lease("one")
	for epoch := e.FirstEpoch; epoch <= e.Budget.Epochs; epoch++ {
		d.report(e, epoch, swift)
		d.save(e, epoch)
	}
	d.end(e, protocol.BudgetReached)
	e = d.lease("one")
	d.report(e, e.FirstEpoch, swift)
	d.pass(70 * time.Second) // nobody hears of it
	d.call("a stop", func() (any, error) { return d.service.Stop(d.ctx, second.ID) })
	d.pass(4 * time.Minute)
	d.lease("one")
	d.call("a deletion", func() (any, error) { return nil, d.service.Delete(d.ctx, first.ID) })
}

// single makes a study of one trial, as world.single does.
func (d *durability) single(name string, energy float64) protocol.StudyView {
	d.t.Helper()
	return d.made("name: example", fmt.Sprintf("name: %s\nplacement: {energy: %g}", name, energy),
		"{min: 1, max: 9}", "{min: 12, max: 12}", "min: 0.25, max: 1", "min: 1, max: 1", "policy: multi", "policy: epochs", "method: bohb", "method: random", "trials: 27", "trials: 1")
}

func (d *durability) enrol(id string, of breed) *runner {
	d.t.Helper()
	registration := protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{CPUModel: of.model, Cores: 2}, Probes: of.probes()}
	if _, err := d.service.RegisterWorker(d.ctx, registration); err != nil {
		d.t.Fatal(err)
	}
	return &runner{id: id, of: of}
}

// inferences are of a model that is tried on a worker's own machine, for which nobody
// else tries it.
func inferences(d *durability) {
	d.made("name: example", "name: edge\ninference: {devices: [this-machine], batch_size: {low: 1, high: 2}}")
	for _, id := range []string{"one", "two"} {
		if _, err := d.service.RegisterWorker(d.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{CPUModel: "model", Cores: 2}}); err != nil {
			d.t.Fatal(err)
		}
	}
	one, two := d.lease("one"), d.lease("two")
	var told protocol.ArchitectureReply
	for _, lease := range []*protocol.Lease{one, two} {
		d.call("a model", func() (any, error) {
			var err error
			told, err = d.service.Architecture(d.ctx, lease.Trial, architecture(d.t, lease, 8))
			return told, err
		})
		if wanted := lease == one; wanted != (len(told.Run) > 0) {
			d.t.Fatalf("it is to run %v: this shows nothing", told.Run)
		}
	}
	d.call("its inferences", func() (any, error) {
		return d.service.Inferences(d.ctx, one.Trial, protocol.InferenceReport{LeaseEpoch: one.LeaseEpoch, Key: "architecture-8", Failure: "none"})
	})
}

// aPreemption is of a trial that makes way for a study of higher priority.
func aPreemption(d *durability) {
	if _, err := d.service.RegisterWorker(d.ctx, protocol.WorkerRegistration{ID: "one", Name: "one", Slots: 1, Machine: protocol.Machine{Cores: 2}}); err != nil {
		d.t.Fatal(err)
	}
	d.made("{min: 1, max: 9}", "{min: 3, max: 9}")
	low := d.lease("one")
	d.report(low, 1, swift)
	d.save(low, 1)
	d.made("name: example", "name: urgent\npriority: 5\npreempt: true")
	d.pass(2 * time.Second)
	if told := d.report(low, 2, swift); told.Action != protocol.Pause {
		d.t.Fatalf("it is told to %s: this shows nothing", told.Action)
	}
	d.end(low, protocol.Interrupted)
	high := d.lease("one")
	d.report(high, high.FirstEpoch, swift)
}

// runner is a worker that is driven by hand.
type runner struct {
	id     string
	of     breed
	lease  *protocol.Lease
	epoch  int
	ends   time.Time
	paused bool
}

// step does what is due, and reports whether the worker was told to pause its trial.
func (r *runner) step(d *durability) (told bool) {
	d.t.Helper()
	switch {
	case r.paused:
		d.end(r.lease, protocol.Interrupted)
		r.lease, r.paused = nil, false
	case r.lease == nil:
		if r.lease = d.lease(r.id); r.lease != nil {
			r.epoch, r.ends = r.lease.FirstEpoch, time.Now().Add(time.Duration(r.of.seconds*float64(time.Second)))
		}
	case !time.Now().Before(r.ends):
		directive := d.report(r.lease, r.epoch, r.of)
		d.save(r.lease, r.epoch)
		r.epoch, r.ends, r.paused = r.epoch+1, time.Now().Add(time.Duration(r.of.seconds*float64(time.Second))), directive.Action == protocol.Pause
		if directive.Action == protocol.Finish {
			d.end(r.lease, protocol.BudgetReached)
			r.lease = nil
		}
	}
	return r.paused
}

// anExchange is of two trials that change places.
func anExchange(d *durability) {
	one, two := d.enrol("swift-1-x", swift), d.enrol("frugal-1", frugal)
	saves := d.single("saves", 1)
	one.step(d)
	hurries := d.single("hurries", 0)
	two.step(d)
	for range 150 {
		d.pass(time.Second)
		one.step(d)
		two.step(d)
	}
	for _, id := range []string{saves.ID, hurries.ID} {
		if t := d.trial(trial.ID(id + "-0")); t.State != trial.Completed || t.LeaseEpoch != 2 {
			d.t.Errorf("%s is %s under lease %d: this shows nothing", t.ID, t.State, t.LeaseEpoch)
		}
	}
}

// aMove is of a trial that moves to a worker which waits, or has stopped to by then.
func aMove(waits bool) func(*durability) {
	return func(d *durability) {
		one := d.enrol("swift-1-x", swift)
		saves := d.single("saves", 1)
		one.step(d)
		d.pass(3 * time.Second)
		one.step(d)
		two := d.enrol("frugal-1", frugal)
		ctx, leave := context.WithCancel(context.WithValue(d.ctx, unwatched{}, true))
		came := make(chan *protocol.Lease, 1)
		go func() {
			for ctx.Err() == nil {
				if reply, _ := d.service.Lease(ctx, protocol.LeaseRequest{Worker: two.id, WaitSeconds: 300}); reply.Lease != nil {
					came <- reply.Lease
					return
				}
			}
		}()
		told := false
		for i := 0; i < 60 && !told; i++ {
			d.pass(time.Second)
			told = one.step(d)
		}
		if !told {
			d.t.Fatal("it was never to move: this shows nothing")
		}
		if !waits {
			leave()
			synctest.Wait()
		}
		one.step(d) // gives it back
		d.pass(time.Second)
		if waits {
			two.lease = <-came
			two.epoch = two.lease.FirstEpoch
			two.step(d)
		}
		leave()
		if t := d.trial(trial.ID(saves.ID + "-0")); len(t.Migrations) != 1 {
			d.t.Errorf("%d moves: this shows nothing", len(t.Migrations))
		}
		d.pass(5 * time.Second)
	}
}
