package study

import (
	"cmp"
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

// Whose fault is it that a command fails before it reports? Decision 13 has the
// reasons for what is done here.

const (
	// startsInARow is how many trials have to fail alike on one worker.
	startsInARow = 2
	// firstExclusion is how long a worker is excluded at first, and how long a trial
	// waits for another worker; each time in a row it is excluded twice as long.
	firstExclusion = 10 * time.Minute
	// mostErrors bounds the classes of errors that are remembered of a study.
	mostErrors = 1000
	// mostStarts bounds the failed starts that a trial has.
	mostStarts = 16
)

// starts is what failed starts have told of a study's workers and errors since it was
// loaded. It is never changed in place.
type starts struct {
	rows   map[string]startRow      // by the worker's id
	errors map[string]startVerdicts // by class
}

// startRow are the trials that failed alike on a worker, with none between that
// reported there.
type startRow struct {
	class  string
	trials []int
}

// startVerdicts counts by whose fault an error was: of trials that failed alike on
// two machines, and of trials that reported on another worker.
type startVerdicts struct{ trials, nodes int }

// ofTrials reports whether all that is known says that no worker brings the error about.
func (v startVerdicts) ofTrials() bool { return v.trials > 0 && v.nodes == 0 }

// startsOf is what the trials of a study that is loaded tell: on each worker the last
// error, and of which trials.
func startsOf(trials []trial.Trial) starts {
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
	rows := make(map[string]startRow, len(numbers))
	for _, one := range failed {
		rows[one.WorkerID] = startRow{class: one.Error, trials: numbers[one.WorkerID][one.Error]}
	}
	return starts{rows: rows}
}

func (s starts) clone() *starts {
	if len(s.errors) >= mostErrors {
		s.errors = nil
	}
	s.rows, s.errors = maps.Clone(s.rows), maps.Clone(s.errors)
	if s.rows == nil {
		s.rows = make(map[string]startRow)
	}
	if s.errors == nil {
		s.errors = make(map[string]startVerdicts)
	}
	return &s
}

// starting is what a transaction needs to judge a failed start, and what it decides.
type starting struct {
	node pool.Node
	// elsewhere reports whether another worker could try the trial.
	elsewhere func(trial.Trial) bool
	// excluded are the exclusions from the study, those that are over among them.
	excluded []pool.Exclusion
	// starts is what is known then; nil: nothing new. exclude and readmit are what
	// changes for workers.
	starts           *starts
	exclude, readmit []pool.Exclusion
}

// starting looks up what judging a start of the trial needs; the zero value, which
// judges nothing, for a study that scripts drive: those are no command of a worker's.
func (s *Service) starting(r *session, t trial.Trial) starting {
	if t.State != trial.Leased || len(r.study.Definition.Command) == 0 {
		return starting{}
	}
	here := pool.Node{ID: t.Worker, Host: cmp.Or(t.Host, t.Worker), Name: t.Worker}
	if member, _, known := s.allocator.Worker(t.Worker); known {
		here = pool.NodeOf(member)
	}
	return starting{
		node: here, excluded: s.allocator.Exclusions(r.id),
		elsewhere: func(t trial.Trial) bool {
			return s.allocator.Freshest(s.ask(r, nil), t.FailedStarts, hostsOf(r.trials)) > 0
		},
	}
}

// hostsOf are the machines on which the trials have run.
func hostsOf(trials []trial.Trial) (hosts []string) {
	for _, t := range trials {
		if t.Host != "" && !slices.Contains(hosts, t.Host) {
			hosts = append(hosts, t.Host)
		}
	}
	return hosts
}

// failedLately are the failed starts of the queued trials that failed to start not long
// ago, by number.
func (r *session) failedLately(now time.Time) map[int][]trial.FailedStart {
	failed := map[int][]trial.FailedStart{}
	for _, number := range r.queue {
		starts := r.trials[number].FailedStarts
		if last := len(starts) - 1; last >= 0 && now.Sub(starts[last].At) < firstExclusion {
			failed[number] = starts
		}
	}
	return failed
}

// failedStart decides what becomes of a trial whose command failed before it reported
// anything. It is its own failure where it failed alike on another machine, or failed
// again where others succeed, or nobody else could try it.
func (tx *transaction) failedStart(t trial.Trial, reason string) (trial.Trial, error) {
	if tx.start.elsewhere == nil {
		return tx.failed(t, reason)
	}
	t, before, here := tx.noteStart(t, reason)
	row := tx.rowWith(t, here)
	elsewhere := tx.start.elsewhere(t)
	alike, again := "", false // alike is the other worker on which it failed so
	for _, one := range before {
		switch same := one.Error == here.Error; {
		case same && one.WorkerID == here.WorkerID:
			again = len(row.trials) == 1
		case same && (one.Host != here.Host || !elsewhere):
			alike = one.Worker
		}
	}
	if alike == "" && !again && elsewhere && workersOf(t.FailedStarts) < maxMachinesLost {
		why := tx.suspect(row, reason)
		return tx.state(t, trial.Queued, fmt.Sprintf("failed (no retry used, as it had not reported and another worker may start it): %s%s", reason, why))
	} else if len(before) == 0 && !elsewhere {
		t.FailedStarts = nil // there is nobody to compare with
	}
	retries := tx.session.study.Definition.Retry.Failures
	for _, one := range before {
		if !one.Counted {
			t.Failures = min(t.Failures+1, max(t.Failures, retries))
		}
	}
	for i := range t.FailedStarts {
		t.FailedStarts[i].Counted = true
	}
	if alike != "" {
		reason += tx.clear(here, alike)
	}
	return tx.failed(t, reason)
}

// noteStart adds the failed start to the trial's, in place of any on the same worker.
func (tx *transaction) noteStart(t trial.Trial, reason string) (now trial.Trial, before []trial.FailedStart, here trial.FailedStart) {
	here = trial.FailedStart{WorkerID: tx.start.node.ID, Worker: tx.start.node.Name, Host: tx.start.node.Host, Error: errorClass(reason, tx.start.node), At: tx.now}
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
func (tx *transaction) rowWith(t trial.Trial, here trial.FailedStart) startRow {
	row := tx.session.starts.rows[tx.start.node.ID]
	if row.class != here.Error {
		row = startRow{class: here.Error}
	}
	if !slices.Contains(row.trials, t.Number) {
		row.trials = append(slices.Clip(row.trials), t.Number)
	}
	return row
}

// suspect notes the row, and excludes the worker from the study where it is long
// enough; it returns what to say of that.
func (tx *transaction) suspect(row startRow, reason string) string {
	known := tx.session.starts.clone()
	known.rows[tx.start.node.ID] = row
	tx.start.starts = known
	if len(row.trials) < startsInARow || known.errors[row.class].ofTrials() {
		return ""
	}
	worker, name := tx.start.node.ID, tx.start.node.Name
	one := pool.Exclusion{Study: tx.session.id, Worker: worker, Name: name, Host: tx.start.node.Host, Error: row.class, Since: tx.now.Round(0).UTC(), Times: 1}
	span := firstExclusion
	for _, earlier := range tx.start.excluded {
		switch {
		case earlier.Worker == worker && tx.now.Before(earlier.Until):
			return "\n" + earlier.Reason
		case earlier.Host == one.Host && earlier.Name == name:
			one.Times = max(one.Times, earlier.Times+1)
		}
	}
	for range one.Times - 1 {
		span = min(2*span, allocator.LongestExclusion)
	}
	one.Until = one.Since.Add(span)
	shown := row.trials[max(0, len(row.trials)-3):]
	one.Reason = fmt.Sprintf("worker %s failed trials %s of the study in the same way before their first report: %s; it gets none of it until %s: mend it and start it again, or start another worker",
		name, strings.Trim(strings.ReplaceAll(fmt.Sprint(shown), " ", ", "), "[]"), trial.FirstLine(reason), one.Until.Format("15:04:05 UTC"))
	tx.start.exclude = append(tx.start.exclude, one)
	tx.change.Pool = append(tx.change.Pool, journal.Entry(allocator.ExclusionEntry, allocator.ExclusionName(one), one))
	return "\n" + one.Reason
}

// clear notes that an error was a trial's own, as it failed alike on two machines, and
// takes back what workers were blamed for it.
func (tx *transaction) clear(here trial.FailedStart, alike string) string {
	known := tx.session.starts.clone()
	verdicts := known.errors[here.Error]
	verdicts.trials++
	known.errors[here.Error] = verdicts
	if verdicts.ofTrials() {
		maps.DeleteFunc(known.rows, func(_ string, row startRow) bool { return row.class == here.Error })
		tx.readmit(func(one pool.Exclusion) bool { return one.Error == here.Error })
	}
	tx.start.starts = known
	return fmt.Sprintf("\nit failed alike on %s and %s before it reported, so it is a failure of its own", alike, here.Worker)
}

// started notes that a trial has reported under its lease: its worker can run the
// study.
func (tx *transaction) started(t trial.Trial) trial.Trial {
	if tx.start.elsewhere == nil {
		return t
	}
	_, rowed := tx.session.starts.rows[tx.start.node.ID]
	if len(t.FailedStarts) > 0 || rowed {
		known := tx.session.starts.clone()
		delete(known.rows, tx.start.node.ID)
		for _, one := range t.FailedStarts {
			if verdicts := known.errors[one.Error]; !one.Counted && one.WorkerID != tx.start.node.ID {
				verdicts.nodes++
				known.errors[one.Error] = verdicts
			}
		}
		tx.start.starts = known
	}
	tx.readmit(func(one pool.Exclusion) bool { return one.Worker == tx.start.node.ID })
	t.FailedStarts = nil
	return t
}

// readmit takes exclusions from the study back.
func (tx *transaction) readmit(which func(pool.Exclusion) bool) {
	for _, one := range tx.start.excluded {
		if which(one) {
			tx.start.readmit = append(tx.start.readmit, one)
			tx.change.Pool = append(tx.change.Pool, PoolEntry{Kind: allocator.ExclusionEntry, Name: allocator.ExclusionName(one)})
		}
	}
}

// workersOwn notes a start that failed as the worker itself says for its own sake,
// which is never a failure of the trial's. It returns the reason with what follows.
func (tx *transaction) workersOwn(t trial.Trial, reason string) (trial.Trial, string) {
	says := strings.HasPrefix(reason, protocol.CannotRun) || strings.HasPrefix(reason, protocol.GPUFailed)
	if !says || tx.start.elsewhere == nil {
		return t, reason
	}
	noted, _, here := tx.noteStart(t, reason)
	if !tx.start.elsewhere(noted) {
		return t, reason
	}
	noted.FailedStarts[len(noted.FailedStarts)-1].Counted = true
	return noted, reason + tx.suspect(tx.rowWith(t, here), reason)
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

// judged puts into force what a transaction decided of workers, which is durable now.
func (s *Service) judged(tx *transaction) {
	if len(tx.start.exclude)+len(tx.start.readmit) == 0 {
		return
	}
	s.allocator.Exclude(tx.start.exclude, tx.start.readmit)
	for _, one := range tx.start.exclude {
		s.options.Logger.Warn("worker excluded from a study", "worker", one.Name, "study", tx.session.study.Definition.Name, "until", one.Until, "reason", one.Reason)
	}
	s.notify()
}

// shownExclusion is the exclusion as workers and people are told.
func shownExclusion(one pool.Exclusion) protocol.Exclusion {
	return protocol.Exclusion{Reason: one.Reason, Since: one.Since, Until: one.Until}
}
