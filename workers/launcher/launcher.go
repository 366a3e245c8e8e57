// Package launcher answers: how many workers should an engine such as Slurm be asked
// for, and which orders should be taken back?
//
// A [Planner] decides from what studies want, the workers there are and the engine's
// jobs; it does no I/O. An [Engine] starts workers, never trials: which trial runs
// where stays the server's word, and the engine's state is only a hint.
package launcher

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/selector"
)

// Engine starts and ends workers.
type Engine interface {
	// Launch asks for workers. It may accept fewer than were asked for, and is not
	// called twice with one id.
	Launch(ctx context.Context, order Order) error
	// List returns the jobs of this launcher, also those that ended lately.
	List(ctx context.Context) ([]Job, error)
	// Cancel takes jobs back: those that run are asked to drain.
	Cancel(ctx context.Context, ids []string) error
	// Doctor looks at what there is for workers. It changes nothing.
	Doctor(ctx context.Context) []Finding
}

// Finding is one thing that was looked at before workers are started.
type Finding struct {
	Name string `json:"name"`
	Good bool   `json:"good"`
	Says string `json:"says"`
}

// Order asks for workers of one shape.
type Order struct {
	// ID is unique and found again in [Job].
	ID    string
	Shape Shape
	Count int
}

// Launch is what one of its workers registers with, counted from 0.
func (o Order) Launch(index int) string { return o.ID + "-" + strconv.Itoa(index) }

// MostOfOrder bounds the workers of an order: sites allow arrays of 1001 as a rule.
const MostOfOrder = 1000

// State is how far a job is.
type State string

// The states.
const (
	Pending State = "pending" // waits for the engine
	Running State = "running" // started; its worker may not be registered yet
	Leaving State = "leaving" // ends
	Ended   State = "ended"
)

// Job is one worker that an engine was asked for.
type Job struct {
	// ID is the engine's, Launch what the worker registers with.
	ID, Launch string
	Shape      string
	State      State
	Node       string
	// Why says in a sentence why it waits, or how it ended.
	Why string
	// Cause is how one ended.
	Cause protocol.Cause
}

// Blameless reports of a job that ended that it says nothing against its shape: it was
// preempted, or taken back.
func (j Job) Blameless() bool {
	return j.Cause == protocol.Preempted || j.Cause == protocol.Evicted || j.Cause == protocol.Cancelled
}

// Failed reports of a job that ended that this is no good sign.
func (j Job) Failed() bool {
	return j.Cause == protocol.NodeFailed || j.Cause == protocol.OutOfMemory || j.Cause == protocol.Crashed
}

// Shape is a kind of worker that can be ordered.
type Shape struct {
	Name string `yaml:"name"`
	// GPUs, Cores and MemoryGiB are what a worker has; GPUType is the engine's name.
	// GPUMemoryGiB is the memory of each GPU, and 0 for studies that ask for none.
	GPUs         int     `yaml:"gpus"`
	GPUType      string  `yaml:"gpu_type"`
	GPUMemoryGiB float64 `yaml:"gpu_memory_gib"`
	Cores        int     `yaml:"cores"`
	MemoryGiB    float64 `yaml:"memory_gib"`
	// Labels are those that its workers register with.
	Labels map[string]string `yaml:"labels"`
	// Taints are those that its workers register with: only trials that tolerate them
	// are worth one.
	Taints []string `yaml:"taints"`
	// Trials is how many it runs at once, which share all of that.
	Trials    int           `yaml:"trials"`
	TimeLimit time.Duration `yaml:"time_limit"`
	// Most, MostPending and MostAnHour bound how many there are at once, wait, and
	// are started in an hour.
	Most        int `yaml:"most"`
	MostPending int `yaml:"most_pending"`
	MostAnHour  int `yaml:"most_an_hour"`
	// GPUHoursADay bounds what all together take in a day (UTC); 0: no bound.
	GPUHoursADay float64 `yaml:"gpu_hours_a_day"`
	// Options are passed to the engine's command, such as --partition=gpu. Setup are
	// lines of shell that run before the worker.
	Options []string `yaml:"options"`
	Setup   []string `yaml:"setup"`
}

var launchName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

var shapeName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Complete fills in defaults and refuses what cannot be meant.
func (s Shape) Complete() (Shape, error) {
	s.Name = cmp.Or(s.Name, "worker")
	s.Cores, s.Trials = cmp.Or(s.Cores, 1), cmp.Or(s.Trials, 1)
	s.TimeLimit = cmp.Or(s.TimeLimit, 4*time.Hour)
	s.Most = cmp.Or(s.Most, 8)
	s.MostPending, s.MostAnHour = cmp.Or(s.MostPending, s.Most), cmp.Or(s.MostAnHour, max(60, 4*s.Most))
	if !shapeName.MatchString(s.Name) {
		return s, fmt.Errorf("shape %q: name must be 1 to 32 lower-case letters, digits and dashes", s.Name)
	}
	for field, value := range map[string]float64{
		"gpus": float64(s.GPUs), "cores": float64(s.Cores), "memory_gib": s.MemoryGiB, "gpu_memory_gib": s.GPUMemoryGiB, "trials": float64(s.Trials),
		"most": float64(s.Most), "most_pending": float64(s.MostPending), "most_an_hour": float64(s.MostAnHour), "gpu_hours_a_day": s.GPUHoursADay,
	} {
		if !(value >= 0 && value <= 1e6) {
			return s, fmt.Errorf("shape %s: %s is %g and must be from 0 to 1000000", s.Name, field, value)
		}
	}
	if wrong := selector.Wrong(s.Labels); wrong != "" {
		return s, fmt.Errorf("shape %s: labels %s", s.Name, wrong)
	}
	if wrong := selector.WrongTaints(s.Taints); wrong != "" {
		return s, fmt.Errorf("shape %s: taints %s", s.Name, wrong)
	}
	if s.TimeLimit < around {
		return s, fmt.Errorf("shape %s: time_limit is %v and must be at least 5m: a worker needs time to hand its trials back", s.Name, s.TimeLimit)
	}
	return s, nil
}

// Want is what a study could start now.
type Want struct {
	// Study is its name for people, StudyID what the server calls it.
	Study, StudyID string
	// Trials is how many, each with at least so much.
	Trials, GPUs, Cores int
	MemoryGiB           float64
	// Recipient is the public key whose identity its workers must hold; empty: none.
	Recipient string
	selector.Selector
}

// Fits reports whether a worker of the shape could run the trials. A study that asks for
// no GPU does not take a worker that has some: those are for the ones that do.
func (s Shape) Fits(want Want) bool {
	return (want.GPUs > 0) == (s.GPUs > 0) && s.GPUs >= want.GPUs && s.Cores >= want.Cores && (s.MemoryGiB == 0 || s.MemoryGiB >= want.MemoryGiB) && want.Suits(s.machine())
}

// around is what of the time limit goes before the first trial and behind the last.
const around = 5 * time.Minute

// machine is what its workers have.
func (s Shape) machine() selector.Machine {
	return selector.Machine{
		GPUs: slices.Repeat([]string{s.GPUType}, s.GPUs), GPUMemoryBytes: slices.Repeat([]int64{int64(s.GPUMemoryGiB * (1 << 30))}, s.GPUs), Labels: s.Labels,
		Taints: s.Taints, Left: max(s.TimeLimit-around, 1),
	}
}

// Worker is one that the server heard of lately.
type Worker struct {
	// Launch is that of the job that it is, or empty.
	Launch string
	// Trials is how many it runs, Slots how many it would.
	Trials, Slots int
}

// Seen is all that is decided about.
type Seen struct {
	Wants   []Want
	Workers []Worker
	Jobs    []Job
}

// Plan is what to do now.
type Plan struct {
	Orders []Order
	// Cancel are the ids of jobs to take back.
	Cancel []string
	// Notes say in sentences what is not done, and why.
	Notes []crew.LaunchNote
}

func bySize(a, b Shape) int {
	return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.MemoryGiB, b.MemoryGiB))
}

// Sorted returns the shapes with defaults, the smallest first.
func Sorted(shapes []Shape) ([]Shape, error) {
	if len(shapes) == 0 {
		return nil, fmt.Errorf("no shape is given: name at least one kind of worker")
	}
	list := slices.Clone(shapes)
	names := map[string]bool{}
	for i := range list {
		var err error
		if list[i], err = list[i].Complete(); err != nil {
			return nil, err
		}
		if names[list[i].Name] {
			return nil, fmt.Errorf("two shapes are named %s: give each its own name", list[i].Name)
		}
		names[list[i].Name] = true
	}
	slices.SortStableFunc(list, bySize)
	return list, nil
}
