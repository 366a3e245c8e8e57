package queueing_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/queueing"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// load is a part of a story: jobs of two classes that come at random for so long.
type load struct {
	hours     float64
	low, high float64 // jobs an hour
}

const lowSeconds, highSeconds = 300, 60

// jobs are those of the parts, one after the other. What they take varies from half
// to one and a half times the mean.
func jobs(seed uint64, parts ...load) []queueing.Job {
	random := rand.New(rand.NewPCG(seed, 41))
	var list []queueing.Job
	begin := 0.0
	for _, part := range parts {
		end := begin + 3600*part.hours
		for class, rate := range []float64{part.low, part.high} {
			if rate == 0 {
				continue
			}
			for at := begin + 3600/rate*random.ExpFloat64(); at < end; at += 3600 / rate * random.ExpFloat64() {
				list = append(list, queueing.Job{Class: class, At: at, Seconds: []float64{lowSeconds, highSeconds}[class] * (0.5 + random.Float64())})
			}
		}
		begin = end
	}
	slices.SortFunc(list, func(a, b queueing.Job) int {
		if a.At < b.At {
			return -1
		}
		return 1
	})
	return list
}

// step is a moment at which a controller was asked.
type step struct {
	at float64
	approximation.Decision
}

// story is what a controller decided and what became of the jobs.
type story struct {
	steps  []step
	ended  []approximation.Run
	played queueing.Played
}

// controlled plays the jobs on four slots with a controller that each change of
// its state and each decision pass through.
func controlled(t *testing.T, limits approximation.Limits, list []queueing.Job, through func(at float64, s approximation.State, d approximation.Decision) (approximation.State, approximation.Decision)) story {
	t.Helper()
	var told story
	control := &queueing.Control{Limits: limits, Most: 0.5, Every: 20}
	control.Next = func(s approximation.State, o approximation.Observations) (approximation.State, approximation.Decision) {
		s, d := approximation.NextShare(s, o)
		told.steps = append(told.steps, step{o.Now, d})
		newer := slices.IndexFunc(o.Ended, func(run approximation.Run) bool {
			return len(told.ended) == 0 || run.Began+run.Seconds > told.ended[len(told.ended)-1].Began+told.ended[len(told.ended)-1].Seconds
		})
		if newer >= 0 {
			told.ended = append(told.ended, o.Ended[newer:]...)
		}
		if through != nil {
			s, d = through(o.Now, s, d)
		}
		return s, d
	}
	played, err := queueing.Engine{Slots: 4, Control: control}.Replay(list, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	told.played = played
	return told
}

// between are the shares in a span of hours: their mean, the most, and how often they
// changed.
func (s story) between(from, to float64) (mean, most float64, changes int) {
	count, last := 0.0, -1.0
	for _, one := range s.steps {
		if one.at < 3600*from || one.at >= 3600*to {
			continue
		}
		count++
		mean += one.Share
		most = max(most, one.Share)
		if last >= 0 && one.Share != last {
			changes++
		}
		last = one.Share
	}
	return mean / max(1, count), most, changes
}

// met is the mean response of the high jobs that ended in a span of hours.
func (s story) met(from, to float64) float64 {
	sum, count := 0.0, 0.0
	for _, run := range s.ended {
		if end := run.Began + run.Seconds; end >= 3600*from && end < 3600*to {
			sum, count = sum+run.Waited+run.Seconds, count+1
		}
	}
	return sum / max(1, count)
}

func (s story) verdicts() map[approximation.Verdict]int {
	counts := map[approximation.Verdict]int{}
	for _, one := range s.steps {
		counts[one.Verdict]++
	}
	return counts
}

func (s story) String() string {
	text, last := "", approximation.Decision{Share: -1}
	for _, one := range s.steps {
		if one.Share != last.Share || one.Verdict >= approximation.Raised && one.Verdict != last.Verdict {
			text += fmt.Sprintf("%.2fh %.2f v%d met %.0f/%.0f (%d)\n", one.at/3600, one.Share, one.Verdict, one.Met.Mean, one.Met.Tail, one.Met.Runs)
		}
		last = one.Decision
	}
	return text + fmt.Sprintf("low %+v\nhigh %+v\ndropped %.3f, verdicts %v", s.played.Classes[0], s.played.Classes[1], s.played.Dropped, s.verdicts())
}

// Where the limits are kept with nothing left out, nothing ever is.
func TestNothingIsLeftOutWhileLimitsAreKept(t *testing.T) {
	for seed := range uint64(effort.ByDay(t, 2, 8)) {
		told := controlled(t, approximation.Limits{Mean: 250, Tail: 500}, jobs(seed, load{24, 40, 20}), nil)
		if _, most, _ := told.between(0, 24); most > 0 || told.played.Dropped > 0 {
			t.Errorf("seed %d: up to %g was left out\n%v", seed, most, told)
		}
	}
}

// A limit that is broken under load is kept with some of the data left out, and with
// all of them again when the load is gone.
func TestAsMuchIsLeftOutAsKeepsTheLimit(t *testing.T) {
	const limit = 85
	for seed := range uint64(effort.ByDay(t, 2, 4)) {
		list := jobs(seed, load{4, 5, 5}, load{20, 44, 20}, load{8, 2, 8})
		free := controlled(t, approximation.Limits{Mean: 1e6}, list, nil)
		told := controlled(t, approximation.Limits{Mean: limit}, list, nil)
		if _, most, _ := told.between(0, 4); most > 0 {
			t.Errorf("seed %d: up to %g was left out before the load came\n%v", seed, most, told)
		}
		mean, _, _ := told.between(12, 24)
		if met, without := told.met(12, 24), free.met(12, 24); without < 1.2*limit || met > 1.1*limit || mean < 0.1 || mean > 0.45 {
			t.Errorf("seed %d: with %g left out %g s were met, and %g s without\n%v", seed, mean, met, without, told)
		}
		if _, most, _ := told.between(30, 32); most > 0 {
			t.Errorf("seed %d: long after the load %g was left out\n%v", seed, most, told)
		}
	}
}

// A limit that leaving data out cannot mend: those below ignore it, or the trainings
// take too long by themselves.
func TestNothingIsLeftOutForNothing(t *testing.T) {
	ignored := func(_ float64, s approximation.State, d approximation.Decision) (approximation.State, approximation.Decision) {
		d.Share = 0
		return s, d
	}
	for seed := range uint64(effort.ByDay(t, 2, 4)) {
		told := controlled(t, approximation.Limits{Mean: 85}, jobs(seed, load{48, 44, 20}), ignored)
		if mean, _, _ := told.between(12, 48); mean > 0.12 || told.verdicts()[approximation.Useless] == 0 {
			t.Errorf("seed %d: %g was left out, for nothing\n%v", seed, mean, told)
		}
		told = controlled(t, approximation.Limits{Mean: 50}, jobs(seed, load{24, 44, 20}), nil)
		if _, most, _ := told.between(0, 24); most > 0.3 || told.played.Dropped > 0.02 || told.verdicts()[approximation.Alone] == 0 {
			t.Errorf("seed %d: up to %g was left out though trainings take longer alone\n%v", seed, most, told)
		}
	}
}

// Loads that come and go move the share by a step at a time, with enough trainings
// in between.
func TestBurstsMoveTheShareStepByStep(t *testing.T) {
	for seed := range uint64(effort.ByDay(t, 2, 4)) {
		var parts []load
		for range 12 {
			parts = append(parts, load{1, 60, 30}, load{1, 2, 6})
		}
		list := jobs(seed, parts...)
		free := controlled(t, approximation.Limits{Mean: 1e6}, list, nil)
		told := controlled(t, approximation.Limits{Mean: 90}, list, nil)
		last := told.steps[0]
		for _, one := range told.steps {
			if one.Share == last.Share {
				continue
			}
			came := 0
			for _, job := range list {
				if job.Class == 1 && job.At >= last.at && job.At < one.at {
					came++
				}
			}
			if math.Abs(one.Share-last.Share) > approximation.Step+1e-9 && one.Verdict != approximation.Useless && one.Verdict != approximation.Alone {
				t.Errorf("seed %d: from %g to %g at once\n%v", seed, last.Share, one.Share, told)
			}
			if came < 2 && one.at-last.at < 600 {
				t.Errorf("seed %d: a step after %d trainings in %g s\n%v", seed, came, one.at-last.at, told)
			}
			last = one
		}
		_, most, changes := told.between(0, 24)
		if changes > 60 || most > 0.5 || told.met(0, 24) > free.met(0, 24) {
			t.Errorf("seed %d: %d changes, %g s met, %g s without\n%v", seed, changes, told.met(0, 24), free.met(0, 24), told)
		}
	}
}

// What is remembered is what is stored: read back at any time it goes on the same.
func TestAControllerGoesOnBehindARestart(t *testing.T) {
	list := jobs(3, load{12, 44, 20}, load{4, 2, 8})
	restarted := func(_ float64, s approximation.State, d approximation.Decision) (read approximation.State, _ approximation.Decision) {
		document, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(document, &read); err != nil {
			t.Fatal(err)
		}
		return read, d
	}
	straight, again := controlled(t, approximation.Limits{Mean: 85}, list, nil), controlled(t, approximation.Limits{Mean: 85}, list, restarted)
	if straight.played.Dropped == 0 || straight.String() != again.String() {
		t.Errorf("without a restart\n%v\nwith restarts\n%v", straight, again)
	}
}

// A training that waits breaks a limit before it has ended, whatever the short ones
// took that ended meanwhile; and one alone that waited a little does not.
