// Package trace reads recorded jobs for package replay: traces of Gavel, Muri
// and Alibaba's clusters, the demand curves of Helios, studies of one's own as a
// server exports them, and files that describe machines.
//
// Its one invariant: what cannot be read is an error that names the file, the
// line, the column and the value, and what is left out of a trace, or estimated,
// is a sentence in its Notes. It reads what it is given and opens nothing.
package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Trace is jobs that were recorded.
type Trace struct {
	Jobs []replay.Job
	// Slowdown is what the trace knows of jobs on one GPU; nil where it knows
	// nothing.
	Slowdown replay.Slowdown
	// Guessed says that the trace does not tell how busy jobs keep a GPU: each counts as
	// keeping it busy all the time.
	Guessed bool
	// Notes are sentences about what was left out, and what is an estimate.
	Notes []string
}

func (t *Trace) note(format string, values ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, values...))
}

// leaveOut drops the jobs that fit on no machine, and says how many there were.
func (t *Trace) leaveOut(machines Machines) {
	small := machines.Cluster.OneOfEach()
	all := len(t.Jobs)
	t.Jobs = slices.DeleteFunc(t.Jobs, func(one replay.Job) bool { return !one.CanRun(small) })
	if left := all - len(t.Jobs); left > 0 {
		t.note("%d of %d jobs need more than any machine has (more GPUs, mostly: a job runs on one machine here) or run on none of the types: they are left out.", left, all)
	}
}

// fault is the error of a value in a file.
func fault(file string, line int, column, value, right string) error {
	if len(value) > 60 {
		value = value[:60] + "..."
	}
	return problem.New(problem.Invalid, "%s, line %d, column %s: %q %s", file, line, column, value, right)
}

// rows reads a file with a heading. The first value that cannot be read stays as
// its error.
type rows struct {
	file   string
	reader *csv.Reader
	places map[string]int
	record []string
	line   int
	err    error
}

// newRows reads the heading, which must have the columns.
func newRows(file string, in io.Reader, columns ...string) (*rows, error) {
	r := &rows{file: file, reader: csv.NewReader(in), places: map[string]int{}}
	r.reader.ReuseRecord = true
	heading, err := r.reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, problem.New(problem.Invalid, "%s is empty: its first line should name the columns %v", file, columns)
	}
	if err != nil {
		return nil, problem.New(problem.Invalid, "%s: %w", file, err)
	}
	for i, name := range heading {
		r.places[name] = i
	}
	for _, name := range columns {
		if _, has := r.places[name]; !has {
			return nil, problem.New(problem.Invalid, "%s, line 1: there is no column %q among %v: is this the format of the trace?", file, name, heading)
		}
	}
	return r, nil
}

// next goes on to the next row; false at the end, and at an error.
func (r *rows) next() bool {
	if r.err != nil {
		return false
	}
	record, err := r.reader.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil {
		r.err = problem.New(problem.Invalid, "%s: %w", r.file, err) // it names the line
		return false
	}
	r.record = record
	r.line, _ = r.reader.FieldPos(0)
	return true
}

func (r *rows) text(column string) string { return r.record[r.places[column]] }

func (r *rows) fault(column, right string) {
	if r.err == nil {
		r.err = fault(r.file, r.line, column, r.text(column), right)
	}
}

// number is a finite one of at least the least.
func (r *rows) number(column string, least float64) float64 {
	value, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil || !(value >= least) || math.IsInf(value, 0) {
		r.fault(column, fmt.Sprintf("is not a number of at least %g", least))
		return least
	}
	return value
}

// count is a whole number from 0 to a million.
func (r *rows) count(column string, least int) int {
	value, err := strconv.Atoi(r.text(column))
	if err != nil || value < least || value > 1_000_000 {
		r.fault(column, fmt.Sprintf("is not a whole number from %d to 1000000", least))
		return least
	}
	return value
}
