package launchertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Fake is an engine in memory with four cores, for tests in simulated time. Its workers
// do what the command line of a [Site]'s worker does, without a process.
type Fake struct {
	place string // of the workers' files
	mutex sync.Mutex
	pace  *time.Ticker
	jobs  []*fakeJob
	// lag is after how long it lists what it took.
	lag time.Duration
}

type fakeJob struct {
	launcher.Job
	name     string // of the launcher
	shape    launcher.Shape
	options  engine.Options
	taken    time.Time
	began    time.Time
	stop     protocol.Cause // asked to end
	vanished bool
}

// NewFake returns an engine whose workers have the folder, and that works until the
// context ends.
func NewFake(ctx context.Context, place string) *Fake {
	f := &Fake{place: place, pace: time.NewTicker(step)}
	go func() {
		defer f.pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-f.pace.C:
				f.advance()
			}
		}
	}()
	return f
}

// step is how often it looks at its workers.
const step = 50 * time.Millisecond

// sleep lets a long time pass, in which it looks rarely.
func (f *Fake) sleep(long time.Duration) {
	f.pace.Reset(time.Minute)
	time.Sleep(long)
	f.pace.Reset(step)
}

// Open returns the engine for a launcher.
func (f *Fake) Open(options engine.Options) launcher.Engine { return &fakeEngine{f, options} }

type fakeEngine struct {
	*Fake
	options engine.Options
}

// Launch takes the order.
func (e *fakeEngine) Launch(_ context.Context, order launcher.Order) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if slices.Contains(order.Shape.Options, fakeRefused) {
		return errors.New("this queue takes no jobs")
	}
	for i := range order.Count {
		job := &fakeJob{name: e.options.Name, shape: order.Shape, options: e.options, taken: time.Now()}
		job.Job = launcher.Job{ID: fmt.Sprint(len(e.jobs) + 1), Launch: order.Launch(i), Shape: order.Shape.Name, State: launcher.Pending, Why: "waits for one of four cores"}
		e.jobs = append(e.jobs, job)
	}
	return nil
}

const fakeRefused = "--refuse"

// List returns the launcher's jobs.
func (e *fakeEngine) List(context.Context) (list []launcher.Job, err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, job := range e.jobs {
		if job.name == e.options.Name && !job.vanished && time.Since(job.taken) >= e.lag {
			list = append(list, job.Job)
		}
	}
	return list, nil
}

// Cancel takes jobs back.
func (e *fakeEngine) Cancel(_ context.Context, ids []string) error {
	for _, id := range ids {
		e.stop(id, protocol.Cancelled)
	}
	return nil
}

// Doctor finds nothing.
func (e *fakeEngine) Doctor(context.Context) []launcher.Finding { return nil }

// stop has a job end for the cause. A node that is lost says nothing to its worker.
func (f *Fake) stop(id string, cause protocol.Cause) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, job := range f.jobs {
		switch {
		case job.ID != id || job.State == launcher.Ended:
		case job.State == launcher.Pending || cause == protocol.NodeFailed:
			job.end(cause, "")
		case job.stop == "":
			job.stop = cause
			f.write("term."+job.Launch, "\n")
		}
	}
}

// forget has the engine know nothing of a job any more, which ends.
func (f *Fake) forget(id string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, job := range f.jobs {
		if job.ID == id {
			job.end(protocol.Finished, "")
			job.vanished = true
		}
	}
}

func (j *fakeJob) end(cause protocol.Cause, said string) {
	j.State, j.Cause, j.Why = launcher.Ended, cause, cause.Words()
	if said != "" {
		j.Why += ": " + said
	}
}

func (f *Fake) write(name, content string) {
	if err := os.WriteFile(filepath.Join(f.place, name), []byte(content), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
}

func (f *Fake) read(name string) (string, bool) {
	content, err := os.ReadFile(filepath.Join(f.place, name))
	return string(content), err == nil
}

// advance starts what fits, and ends what is over.
func (f *Fake) advance() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	free := 4
	for _, job := range f.jobs {
		if job.State != launcher.Running {
			continue
		}
		free -= job.shape.Cores
		code, told := f.read("end." + job.Launch)
		_, all := f.read("end")
		switch {
		case job.stop != "":
			job.end(job.stop, "")
		case told && strings.TrimSpace(code) != "0":
			said, _ := f.read("say." + job.Launch)
			job.end(protocol.Crashed, spoken(said))
		case told || all:
			job.end(protocol.Finished, "")
		case time.Since(job.began) >= job.shape.TimeLimit:
			job.end(protocol.TimeLimit, "")
		}
	}
	for _, job := range f.jobs {
		if job.State == launcher.Pending && job.shape.Cores <= free {
			free -= job.shape.Cores
			f.start(job)
		}
	}
}

// spoken is the last that a worker said of itself.
func spoken(said string) (last string) {
	for line := range strings.Lines(said) {
		if text, is := strings.CutPrefix(line, "tandem: "); is {
			last = strings.TrimSpace(text)
		}
	}
	return last
}

// start does what the script of [engine.Options] and a worker do.
func (f *Fake) start(job *fakeJob) {
	job.State, job.Node, job.Why, job.began = launcher.Running, "fake1", "", time.Now()
	o := job.options
	environment := "HOME=" + o.Home + "\nPATH=" + o.Path + "\n"
	for _, line := range job.shape.Setup {
		environment += strings.ReplaceAll(strings.TrimPrefix(line, "export "), "'", "") + "\n"
	}
	f.write("env."+job.Launch, environment)
	words := append([]string{"--scratch", "/tmp/tandem-" + job.Launch}, o.Worker[2:]...)
	words = append(words, "--slots", fmt.Sprint(job.shape.Trials), "--end-at", (job.shape.TimeLimit - time.Minute).String())
	if len(job.shape.Labels) > 0 {
		words = append(words, "--label", selector.Shown(job.shape.Labels))
	}
	if len(job.shape.Taints) > 0 {
		words = append(words, "--taint", strings.Join(job.shape.Taints, ","))
	}
	words = append(words, "--token-file", string(o.Enrolments)+"/"+job.Launch, "--launch", job.Launch)
	f.write("args."+job.Launch, strings.Join(words, "\n")+"\n")
}
