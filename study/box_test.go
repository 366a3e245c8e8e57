package study_test

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// workload is how long an epoch over the whole data takes, and what its profile
// shows.
type workload struct {
	seconds func(threads, neighbours int) float64
	name    string
	// loads is by how much longer an epoch takes with so many processes that load data; nil:
	// it does not.
	loads func(loaders int) float64
	// resident is the memory it uses, in bytes.
	resident float64
}

// slowWithTwo is LeNet-5 at batch 16 on two cores, as measured: two threads are in
// each other's way.
var slowWithTwo = workload{name: "lenet", seconds: func(threads, neighbours int) float64 {
	return map[int]float64{1: 1.21, 2: 2.02}[threads]
}}

// fastWithTwo takes all that it gets.
var fastWithTwo = workload{name: "matrices", seconds: func(threads, neighbours int) float64 { return 4 / float64(threads) }}

// box is a machine with a worker on it, in the world's time.
type box struct {
	w       *world
	id      string
	cores   int
	elastic bool
	knobs   []string
	// honours says that the script follows what it is told of its threads.
	honours bool
	// loaders is how many processes the script loads data with by itself; 0: it asks for no
	// number of them.
	loaders int
	// start is how many seconds the command takes to start, at the 10 W of one thread.
	start   float64
	running []*job
	// most is how many trials ran at once, full the most cores they asked for.
	most, full int
}

// job is a lease that is trained.
type job struct {
	lease      *protocol.Lease
	work       workload
	epoch      int
	threads    int
	loaders    int
	began, end time.Time
	neighbours int
}

func (w *world) box(elastic bool) *box {
	b := &box{w: w, id: fmt.Sprintf("box-%04d", w.random.IntN(10000)), cores: 2, elastic: elastic, honours: true}
	b.register()
	return b
}

func (b *box) register() {
	b.w.t.Helper()
	registration := protocol.WorkerRegistration{ID: b.id, Name: b.id, Slots: 1, Elastic: b.elastic,
		Machine: protocol.Machine{CPUModel: "model", Cores: b.cores, MemoryBytes: 16 << 30, Knobs: b.knobs}}
	if b.elastic {
		registration.Slots = b.cores
	}
	if _, err := b.w.service.RegisterWorker(b.w.ctx, registration); err != nil {
		b.w.t.Fatal(err)
	}
}

// train runs the workload's study to its end and says how long that took.
func (b *box) train(study string, work workload) time.Duration {
	b.w.t.Helper()
	began := time.Now()
	for !b.step(study, work) {
	}
	return time.Since(began)
}

// step starts what there is to start and ends the epoch that ends first; true
// when the study is over.
func (b *box) step(study string, work workload) bool {
	b.w.t.Helper()
	for b.elastic || len(b.running) == 0 {
		reply, err := b.w.service.Lease(b.w.ctx, protocol.LeaseRequest{Worker: b.id, Study: study})
		if err != nil {
			b.w.t.Fatal(err)
		}
		if reply.StudyFinished && len(b.running) == 0 {
			return true
		}
		if reply.Lease == nil {
			break
		}
		b.begin(&job{lease: reply.Lease, work: work, epoch: reply.Lease.FirstEpoch, threads: threadsOf(reply.Lease.System, b.cores), loaders: b.loadersOf(reply.Lease.System)})
	}
	if len(b.running) == 0 {
		b.w.t.Fatal("nothing runs and nothing is to be had")
	}
	next := b.running[0]
	for _, one := range b.running {
		if one.end.Before(next.end) {
			next = one
		}
	}
	time.Sleep(time.Until(next.end))
	b.end(next)
	return false
}

func threadsOf(configuration map[string]space.Value, otherwise int) int {
	if n, ok := configuration[system.CPUThreads].Number(); ok {
		return int(n)
	}
	return otherwise
}

// loadersOf is how many processes a script that asks loads with.
func (b *box) loadersOf(configuration map[string]space.Value) int {
	if n, ok := configuration[system.LoaderWorkers].Number(); ok {
		return int(n)
	}
	return b.loaders
}

// inForce is what the script says that it ran with.
func (j *job) inForce(reads bool) map[string]space.Value {
	said := map[string]space.Value{system.CPUThreads: space.Int(int64(j.threads))}
	if reads {
		said[system.LoaderWorkers] = space.Int(int64(j.loaders))
	}
	return said
}

func (b *box) begin(j *job) {
	if j.epoch == j.lease.FirstEpoch {
		b.running = append(b.running, j)
		b.most = max(b.most, len(b.running))
	}
	j.neighbours = len(b.running) - 1
	j.began = time.Now()
	seconds := j.work.seconds(j.threads, j.neighbours) * j.lease.Budget.DataFraction
	if j.work.loads != nil {
		seconds *= j.work.loads(j.loaders)
	}
	if j.epoch == j.lease.FirstEpoch {
		seconds *= 1.3 // it warms up
	}
	if j.epoch == j.lease.FirstEpoch {
		seconds += b.start
	}
	j.end = j.began.Add(time.Duration(seconds * float64(time.Second)))
	used := 0
	for _, one := range b.running {
		used += one.threads
	}
	b.full = max(b.full, used)
}

func (b *box) end(j *job) {
	b.w.t.Helper()
	seconds := time.Since(j.began).Seconds()
	setup, joules := trial.Float(0), 10*seconds*float64(j.threads)
	if j.epoch == j.lease.FirstEpoch {
		setup = trial.Float(max(0.001, b.start))
		joules -= 10 * b.start * float64(j.threads-1)
	}
	directive, err := b.w.service.Report(b.w.ctx, j.lease.Trial, protocol.Report{
		LeaseEpoch: j.lease.LeaseEpoch, Epoch: j.epoch, Seconds: trial.Float(seconds), SetupSeconds: setup,
		Metrics:    map[string]trial.Float{"accuracy": accuracy(j.lease, j.epoch)},
		Energy:     &trial.Energy{Joules: trial.Float(joules), Method: "estimate: test"},
		System:     j.inForce(b.loaders > 0),
		Neighbours: trial.Float(j.neighbours), Profile: j.work.profile(j.threads),
	})
	if err != nil {
		b.w.t.Fatal(err)
	}
	if directive.Action == protocol.Continue {
		if b.honours {
			j.threads, j.loaders = threadsOf(directive.System, j.threads), b.loadersOf(directive.System)
		}
		j.epoch++
		b.begin(j)
		return
	}
	for i, one := range b.running {
		if one == j {
			b.running = append(b.running[:i], b.running[i+1:]...)
			break
		}
	}
	if err := b.w.checkpoint(j.lease, j.epoch); err != nil {
		b.w.t.Fatal(err)
	}
	if _, err := b.w.finish(j.lease, protocol.BudgetReached); err != nil {
		b.w.t.Fatal(err)
	}
}

// profile is the same for a workload under a number of threads, but for a
// little noise that is not random.
func (w workload) profile(threads int) *trial.Profile {
	level := 1.0
	for _, letter := range w.name {
		level = level*1.7 + float64(letter%13)
	}
	p := &trial.Profile{Level: "user and kernel mode", Events: map[string]trial.Float{}, Host: map[string]trial.Float{"tree.resident_bytes": trial.Float(w.resident)}}
	for i, name := range []string{"page-faults", "context-switches", "cpu-migrations", "task-clock"} {
		wobble := 1 + 0.01*float64((i*7+threads*3)%5)
		p.Events[name] = trial.Float(level * float64(i+1) * float64(threads) * wobble)
	}
	return p
}
