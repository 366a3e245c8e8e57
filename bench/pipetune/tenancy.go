package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/bench/wholemachine"
	"github.com/tandem-tune/tandem/e2e/launch"
)

// unseenEvery says which part of the jobs is of workloads that nobody tuned
// before: 20%, as in section 6.4.5.
const unseenEvery = 5

// tenancyPasses is the budget of a job's study, where the command line has none.
const tenancyPasses = 12

// job is a study that somebody wants, at some time.
type job struct {
	Workload string  `json:"workload"`
	Seen     bool    `json:"seen"`
	Arrival  float64 `json:"arrival"`
	Response float64 `json:"response_seconds"`
	Accuracy float64 `json:"accuracy"`
}

// day is what became of all jobs under one arm.
type day struct {
	Arm        string  `json:"arm"`
	Repetition int     `json:"repetition"`
	Passes     int     `json:"passes"`
	Scale      float64 `json:"scale"`
	Commit     string  `json:"commit"`
	Load       float64 `json:"load"`
	Seconds    float64 `json:"seconds"`
	Joules     float64 `json:"joules"`
	Jobs       []job   `json:"jobs"`
}

func (o options) daysFile() string { return o.inFolder("tenancy.jsonl") }

// tenancy lets studies arrive at random on one server with one worker, the same
// ones at the same times under every arm, and measures how long each waits for
// its answer.
func tenancy(ctx context.Context, o options) error {
	if o.arms == "" {
		o.arms = "v1,v2,seen"
	}
	fielded, err := o.fielded()
	if err != nil {
		return err
	}
	if o.workloads == "" {
		o.set = "full"
	}
	if o.passes == 0 {
		o.passes = tenancyPasses
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if len(chosen) < 2 {
		return errors.New("a mix needs two workloads at least: the last one is what nobody has seen")
	}
	if _, err := launch.Build(ctx, o.inFolder("bin")); err != nil {
		return err
	}
	seen, unseen := chosen[:len(chosen)-1], chosen[len(chosen)-1]
	if err := errors.Join(o.ready(ctx, chosen), o.prepareMix(ctx, seen)); err != nil {
		return err
	}
	for repetition := o.first; repetition < o.first+o.repetitions; repetition++ {
		jobs := arrivals(o, seen, unseen, repetition)
		shuffle := rand.New(rand.NewPCG(uint64(repetition), 2))
		shuffle.Shuffle(len(fielded), func(i, j int) { fielded[i], fielded[j] = fielded[j], fielded[i] })
		for _, a := range fielded {
			if a.tool != byTandem {
				return fmt.Errorf("%s is no server for many studies: leave it out of -arms", a.name)
			}
			if err := o.live(ctx, a, seen, day{Arm: a.name, Repetition: repetition, Passes: o.passes, Scale: o.scale, Commit: commit(ctx), Jobs: slices.Clone(jobs)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareMix learns the workloads that were seen before.
func (o options) prepareMix(ctx context.Context, seen []workload) error {
	for number, w := range seen {
		if _, err := os.Stat(o.truthFile(w)); err == nil {
			continue
		}
		if err := o.learn(ctx, w, firstTruthSeed+number); err != nil {
			return fmt.Errorf("ground truth of %s: %w", w.name, err)
		}
	}
	return nil
}

// arrivals draws a repetition's jobs: exponential times between them, workloads
// in turn, every fifth the unseen one.
func arrivals(o options, seen []workload, unseen workload, repetition int) []job {
	generator := rand.New(rand.NewPCG(uint64(repetition), 1))
	var jobs []job
	at, turn := 0.0, 0
	for number := range o.jobs {
		if number > 0 {
			at += generator.ExpFloat64() * o.interarrival
		}
		one := job{Workload: unseen.name, Arrival: at}
		if (number+1)%unseenEvery != 0 {
			one.Workload, one.Seen = seen[turn%len(seen)].name, true
			turn++
		}
		jobs = append(jobs, one)
	}
	return jobs
}

// live has all jobs of a day arrive at one server.
func (o options) live(ctx context.Context, a arm, seen []workload, d day) (err error) {
	var files []string
	if a.truth == everything {
		for _, w := range seen {
			files = append(files, o.truthFile(w))
		}
	}
	d.Load = loadAverage()
	s, err := openSite(ctx, o, a.slots, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	meter := wholemachine.Start()
	failures := make(chan error, len(d.Jobs))
	for number := range d.Jobs {
		go func() { failures <- o.serve(ctx, s, a, &d.Jobs[number], d.Repetition*1000+number) }()
	}
	for range d.Jobs {
		err = errors.Join(err, <-failures)
	}
	if err != nil {
		return err
	}
	seconds, energy, _ := meter.Stop()
	d.Seconds, d.Joules = seconds, energy.Joules
	fmt.Printf("%-5s %d: %d jobs in %.1f s, mean response %.1f s, load before %.2f\n", d.Arm, d.Repetition, len(d.Jobs), d.Seconds, mean(d.responses("")), d.Load)
	return add(o.daysFile(), d)
}

// serve waits for a job's time, orders its study and waits for the answer.
func (o options) serve(ctx context.Context, s *site, a arm, j *job, seed int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(j.Arrival * float64(time.Second))):
	}
	w, err := pick(workloads(), []string{j.Workload}, func(w workload) string { return w.name })
	if err != nil {
		return err
	}
	began := time.Now()
	name := studyName(w[0], a, seed)
	file, err := o.document(w[0], a, name, seed)
	if err != nil {
		return err
	}
	if _, err := s.client.CreateStudy(ctx, file, "application/json"); err != nil {
		return err
	}
	if _, err := s.finished(ctx, name, time.Duration(o.patience*float64(time.Second))); err != nil {
		return err
	}
	j.Response = time.Since(began).Seconds()
	best, err := recommended(ctx, s.client, name, a)
	j.Accuracy = best.Accuracy
	return err
}

// responses are the jobs' response times; "seen" and "unseen" select.
func (d day) responses(which string) []float64 {
	var list []float64
	for _, one := range d.Jobs {
		if which == "" || one.Seen == (which == "seen") {
			list = append(list, one.Response)
		}
	}
	return list
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// tenancyReport prints the response times; nothing if none were measured.
func tenancyReport(o options, out io.Writer) error {
	days, err := load[day](o.daysFile())
	if err != nil || len(days) == 0 {
		return err
	}
	fmt.Fprint(out, "\n**Many studies on one server** (mean response time in seconds of each repetition; medians of the repetitions)\n\n")
	fmt.Fprint(out, "| arm | n | all jobs | seen | unseen | ratio to v1 | ratio to v2 | all done s | J |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, a := range arms() {
		var all, seen, unseen, done, joules []float64
		ratios := map[string][]float64{}
		for _, d := range days {
			if d.Arm != a.name {
				continue
			}
			all, seen, unseen = append(all, mean(d.responses(""))), append(seen, mean(d.responses("seen"))), append(unseen, mean(d.responses("unseen")))
			done, joules = append(done, d.Seconds), append(joules, d.Joules)
			for _, other := range days {
				if other.Repetition == d.Repetition && other.Passes == d.Passes && other.Scale == d.Scale && len(other.Jobs) == len(d.Jobs) {
					ratios[other.Arm] = append(ratios[other.Arm], mean(d.responses(""))/mean(other.responses("")))
				}
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", a.name, len(all), spread(all, 1), spread(seen, 1), spread(unseen, 1),
				spread(ratios["v1"], 2), spread(ratios["v2"], 2), spread(done, 0), spread(joules, 0))
		}
	}
	return nil
}
