// Package starts answers: whose fault is it that a command fails before it reports, its
// own or its worker's? Decision 13 has the reasons. It decides on values: what follows
// for the study and its workers is in the [Judge] that has judged.
package starts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// startsInARow is how many trials have to fail alike on one worker.
	startsInARow = 2
	// FirstExclusion is how long a worker is excluded at first, and how long a trial
	// waits for another worker; each time in a row it is excluded twice as long.
	FirstExclusion = 10 * time.Minute
	// mostErrors bounds the classes of errors that are remembered of a study.
	mostErrors = 1000
	// mostStarts bounds the failed starts that a trial has.
	mostStarts = 16
	// mostWorkers is how many different workers may fail to start a trial without one
	// of them being blamed.
	mostWorkers = 3
)

// Known is what failed starts have told of a study's workers and errors since it was
// loaded. It is never changed in place.
type Known struct {
	rows   map[string]row      // by the worker's id
	errors map[string]verdicts // by class
}

// row are the trials that failed alike on a worker, with none between that
// reported there.
type row struct {
	class  string
	trials []int
}

// verdicts counts by whose fault an error was: of trials that failed alike on
// two machines, and of trials that reported on another worker.
type verdicts struct{ trials, nodes int }

// ofTrials reports whether all that is known says that no worker brings the error about.
func (v verdicts) ofTrials() bool { return v.trials > 0 && v.nodes == 0 }

// Of is what the trials of a study that is loaded tell: on each worker the last
// error, and of which trials.
func Of(trials []trial.Trial) Known {
	var failed []trial.FailedStart
	numbers := map[string]map[string][]int{}
	for _, t := range trials {
		for _, one := range t.FailedStarts {
			at := one.WorkerID
			if failed = append(failed, one); numbers[at] == nil {
				numbers[at] = map[string][]int{}
			}
			numbers[at][one.Error] = append(numbers[at][one.Error], t.Number)
		}
	}
	slices.SortStableFunc(failed, func(a, b trial.FailedStart) int { return a.At.Compare(b.At) })
	rows := make(map[string]row, len(numbers))
	for _, one := range failed {
		rows[one.WorkerID] = row{class: one.Error, trials: numbers[one.WorkerID][one.Error]}
	}
	return Known{rows: rows}
}

func (k Known) clone() *Known {
	now := Known{rows: map[string]row{}, errors: map[string]verdicts{}}
	maps.Copy(now.rows, k.rows)
	if len(k.errors) < mostErrors {
		maps.Copy(now.errors, k.errors)
	}
	return &now
}

// Judge judges one start of a trial. The zero value judges nothing: for studies that
// scripts drive, whose trials are no commands of a worker's.
type Judge struct {
	Study string // its id
	Node  pool.Node
	Now   time.Time
	// Retries is how often a trial may fail.
	Retries int
	// Elsewhere reports whether another worker could try the trial.
	Elsewhere func(trial.Trial) bool
	// Excluded are the exclusions from the study, those that are over among them.
	Excluded []pool.Exclusion
	Known    Known

	// Learned is what is known then; nil: nothing new. Exclude and Readmit are what
	// changes for workers, and Entries what is stored of that.
	Learned          *Known
	Exclude, Readmit []pool.Exclusion
	Entries          []journal.PoolEntry
}

// Hosts are the machines on which the trials have run.
func Hosts(trials []trial.Trial) (hosts []string) {
	for _, t := range trials {
		if t.Host != "" && !slices.Contains(hosts, t.Host) {
			hosts = append(hosts, t.Host)
		}
	}
	return hosts
}

// Failed decides what becomes of a trial whose command failed before it reported
// anything. It is its own failure where it failed alike on another machine, or failed
// again where others succeed, or nobody else could try it; else again says that it is
// queued again. why is the reason with what follows from it.
func (j *Judge) Failed(t trial.Trial, reason string) (now trial.Trial, again bool, why string) {
	if j.Elsewhere == nil {
		return t, false, reason
	}
	t, before, here := j.note(t, reason)
	line := j.rowWith(t, here)
	elsewhere := j.Elsewhere(t)
	alike, repeated := "", false // alike is the other worker on which it failed so
	for _, one := range before {
		switch same := one.Error == here.Error; {
		case same && one.WorkerID == here.WorkerID:
			repeated = len(line.trials) == 1
		case same && (one.Host != here.Host || !elsewhere):
			alike = one.Worker
		}
	}
	if alike == "" && !repeated && elsewhere && workersOf(t.FailedStarts) < mostWorkers {
		return t, true, reason + j.suspect(line, reason)
	} else if len(before) == 0 && !elsewhere {
		t.FailedStarts = nil // there is nobody to compare with
	}
	for _, one := range before {
		if !one.Counted {
			t.Failures = min(t.Failures+1, max(t.Failures, j.Retries))
		}
	}
	for i := range t.FailedStarts {
		t.FailedStarts[i].Counted = true
	}
	if alike != "" {
		reason += j.clear(here, alike)
	}
	return t, false, reason
}

// note adds the failed start to the trial's, in place of any on the same worker.
func (j *Judge) note(t trial.Trial, reason string) (now trial.Trial, before []trial.FailedStart, here trial.FailedStart) {
	here = trial.FailedStart{WorkerID: j.Node.ID, Worker: j.Node.Name, Host: j.Node.Host, Error: errorClass(reason, j.Node), At: j.Now}
	before = t.FailedStarts
	t.FailedStarts = append(slices.DeleteFunc(slices.Clone(before), func(one trial.FailedStart) bool { return one.WorkerID == here.WorkerID }), here)
	t.FailedStarts = t.FailedStarts[max(0, len(t.FailedStarts)-mostStarts):]
	return t, before, here
}

// workersOf counts the workers, of which one that is started again is no other.
func workersOf(failed []trial.FailedStart) int {
	names := map[pool.Node]bool{}
	for _, one := range failed {
		names[pool.Node{Host: one.Host, Name: one.Worker}] = true
	}
	return len(names)
}

// rowWith is the row of failures on the worker with that of the trial.
func (j *Judge) rowWith(t trial.Trial, here trial.FailedStart) row {
	line := j.Known.rows[j.Node.ID]
	if line.class != here.Error {
		line = row{class: here.Error}
	}
	if !slices.Contains(line.trials, t.Number) {
		line.trials = append(slices.Clip(line.trials), t.Number)
	}
	return line
}

// suspect notes the row, and excludes the worker from the study where it is long
// enough; it returns what to say of that.
func (j *Judge) suspect(line row, reason string) string {
	known := j.Known.clone()
	known.rows[j.Node.ID] = line
	j.Learned = known
	if len(line.trials) < startsInARow || known.errors[line.class].ofTrials() {
		return ""
	}
	worker, name := j.Node.ID, j.Node.Name
	one := pool.Exclusion{Study: j.Study, Worker: worker, Name: name, Host: j.Node.Host, Error: line.class, Since: j.Now.Round(0).UTC(), Times: 1}
	span := FirstExclusion
	for _, earlier := range j.Excluded {
		switch {
		case earlier.Worker == worker && j.Now.Before(earlier.Until):
			return "\n" + earlier.Reason
		case earlier.Host == one.Host && earlier.Name == name:
			one.Times = max(one.Times, earlier.Times+1)
		}
	}
	for range one.Times - 1 {
		span = min(2*span, allocator.LongestExclusion)
	}
	one.Until = one.Since.Add(span)
	shown := line.trials[max(0, len(line.trials)-3):]
	one.Reason = fmt.Sprintf("worker %s failed trials %s of the study in the same way before their first report: %s; "+heldWords+"%s: mend it and start it again, or start another worker",
		name, strings.Trim(strings.ReplaceAll(fmt.Sprint(shown), " ", ", "), "[]"), trial.FirstLine(reason), one.Until.Format("15:04:05 UTC"))
	j.Exclude = append(j.Exclude, one)
	j.Entries = append(j.Entries, journal.Entry(allocator.ExclusionEntry, allocator.ExclusionName(one), one))
	return "\n" + one.Reason
}

// heldWords are part of the reason of each exclusion.
const heldWords = "it gets none of it until "

// Held is the part of a trial's reason that says that a worker gets no more trials of the
// study for a while; empty if there is none.
func Held(reason string) string {
	last := reason[strings.LastIndexByte(reason, '\n')+1:]
	if strings.HasPrefix(last, "worker ") && strings.Contains(last, heldWords) {
		return last
	}
	return ""
}

// clear notes that an error was a trial's own, as it failed alike on two machines, and
// takes back what workers were blamed for it.
func (j *Judge) clear(here trial.FailedStart, alike string) string {
	known := j.Known.clone()
	verdicts := known.errors[here.Error]
	verdicts.trials++
	known.errors[here.Error] = verdicts
	if verdicts.ofTrials() {
		maps.DeleteFunc(known.rows, func(_ string, row row) bool { return row.class == here.Error })
		j.readmit(func(one pool.Exclusion) bool { return one.Error == here.Error })
	}
	j.Learned = known
	return fmt.Sprintf("\nit failed alike on %s and %s before it reported, so it is a failure of its own", alike, here.Worker)
}

// Reported notes that a trial has reported under its lease: its worker can run the
// study.
func (j *Judge) Reported(t trial.Trial) trial.Trial {
	if j.Elsewhere == nil {
		return t
	}
	_, rowed := j.Known.rows[j.Node.ID]
	if len(t.FailedStarts) > 0 || rowed {
		known := j.Known.clone()
		delete(known.rows, j.Node.ID)
		for _, one := range t.FailedStarts {
			if verdicts := known.errors[one.Error]; !one.Counted && one.WorkerID != j.Node.ID {
				verdicts.nodes++
				known.errors[one.Error] = verdicts
			}
		}
		j.Learned = known
	}
	j.readmit(func(one pool.Exclusion) bool { return one.Worker == j.Node.ID })
	t.FailedStarts = nil
	return t
}

// readmit takes exclusions from the study back.
func (j *Judge) readmit(which func(pool.Exclusion) bool) {
	for _, one := range j.Excluded {
		if which(one) {
			j.Readmit = append(j.Readmit, one)
			j.Entries = append(j.Entries, journal.PoolEntry{Kind: allocator.ExclusionEntry, Name: allocator.ExclusionName(one)})
		}
	}
}

// WorkersOwn notes a start that failed as the worker itself says for its own sake,
// which is never a failure of the trial's. It returns the reason with what follows.
func (j *Judge) WorkersOwn(t trial.Trial, reason string) (trial.Trial, string) {
	says := strings.HasPrefix(reason, protocol.CannotRun) || strings.HasPrefix(reason, protocol.GPUFailed)
	if !says || j.Elsewhere == nil {
		return t, reason
	}
	noted, _, here := j.note(t, reason)
	if !j.Elsewhere(noted) {
		return t, reason
	}
	noted.FailedStarts[len(noted.FailedStarts)-1].Counted = true
	return noted, reason + j.suspect(j.rowWith(t, here), reason)
}

// mostClass bounds a class of errors, in bytes.
const mostClass = 300

// aside is what an error says in brackets, such as a PATH or how much memory there was.
var aside = regexp.MustCompile(`\([^()]*\)`)

// errorClass is an error without what differs each time or on each worker: its first line
// without what is in brackets and the worker's name, in which a word with a digit or a
// path stands for all such words. Exit codes and signals stay.
func errorClass(reason string, at pool.Node) string {
	line := strings.ReplaceAll(aside.ReplaceAllString(trial.FirstLine(reason), ""), "worker "+at.Name, "worker")
	kept := ""
	for _, prefix := range [...]string{"exit code ", "ended by signal "} {
		if rest, found := strings.CutPrefix(line, prefix); found {
			number := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			kept, line = prefix+rest[:number], rest[number:]
		}
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t'\"`()[]{}<>,;=", r) })
	for i, word := range words {
		if strings.ContainsAny(word, "0123456789/") || word == at.Host {
			words[i] = "#"
		}
	}
	class := kept + " " + strings.Join(words, " ")
	return strings.ToValidUTF8(class[:min(len(class), mostClass)], "")
}
