// Package onefold answers: does a search of the batch size and the power limit together
// find less energy than one after the other (thesis section 7.4.1)? It reads the
// recorded trainings of Zeus.
package onefold

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// workload is a recorded training by batch size and the GPU's power limit.
type workload struct {
	name           string
	batches, watts []int64
	// seconds and joules until the target was reached; absent where it never was.
	seconds, joules map[[2]int64]float64
}

// Measure makes the workload a benchmark with one epoch: a training to the
// target. Combinations that never reach it have no value.
func (w *workload) Measure(c space.Configuration, _ int, _ float64) simulator.Measurement {
	batch, _ := c["batch_size"].Integer()
	watts, _ := c["power_limit"].Integer()
	at := [2]int64{batch, watts}
	value := w.joules[at]
	if _, fixed := c["by_time"]; fixed {
		value = w.seconds[at]
	}
	if value == 0 {
		value = math.NaN()
	}
	return simulator.Measurement{Value: value, Seconds: 1}
}

// Options are what is compared.
type Options struct {
	Folder  string // of the recorded trainings
	Methods []string
	Seeds   int
}

// Print writes a table for each method: how far above the least energy each way ends.
// The error is that of the files where these are not there.
func Print(ctx context.Context, w io.Writer, o Options) error {
	workloads, err := loadZeus(o.Folder)
	if err != nil {
		return err
	}
	for _, method := range o.Methods {
		fmt.Fprintf(w, "\n| %s: energy above the least, in %% | trials | together | first batch size by time, then power | first batch size by energy, then power |\n|---|---|---|---|---|\n", method)
		for _, one := range workloads {
			for _, trials := range []int{8, 16, 32} {
				cells := []string{one.name, strconv.Itoa(trials)}
				excess, err := one.excess(ctx, method, trials, o.Seeds)
				if err != nil {
					return fmt.Errorf("%s: %w", one.name, err)
				}
				for _, values := range excess {
					q := quartilesOf(values)
					cells = append(cells, fmt.Sprintf("%.1f (%.1f to %.1f)", q.median, q.low, q.high))
				}
				fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
			}
		}
	}
	return nil
}

// excess is by how many percent the three ways end above the least energy, by seed.
func (w *workload) excess(ctx context.Context, method string, trials, seeds int) (excess [3][]float64, err error) {
	for seed := range seeds {
		found, err := w.compare(ctx, method, trials, uint64(seed)+1) //nolint:gosec // a small number
		if err != nil {
			return excess, err
		}
		for i, joules := range found {
			excess[i] = append(excess[i], 100*(joules/w.least()-1))
		}
	}
	return excess, nil
}

// quartiles are of a list that need not be sorted, interpolated linearly.
type quartiles struct{ low, median, high float64 }

func quartilesOf(values []float64) quartiles {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		place := q * float64(len(sorted)-1)
		below := int(place)
		above := min(below+1, len(sorted)-1)
		return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
	}
	return quartiles{at(0.25), at(0.5), at(0.75)}
}

// least is the least energy there is.
func (w *workload) least() float64 {
	least := math.Inf(1)
	for _, joules := range w.joules {
		least = min(least, joules)
	}
	return least
}

// compare returns the energies that the three ways find within as many trials.
func (w *workload) compare(ctx context.Context, method string, trials int, seed uint64) ([3]float64, error) {
	var found [3]float64
	together, err := w.search(ctx, sought{method, trials, seed, w.batches, w.watts, false})
	if err != nil {
		return found, err
	}
	found[0] = w.worth(together)
	for i, byTime := range []bool{true, false} {
		first, err := w.search(ctx, sought{method, trials / 2, seed, w.batches, w.watts[len(w.watts)-1:], byTime})
		if err != nil {
			return found, err
		}
		second, err := w.search(ctx, sought{method, trials - trials/2, seed, []int64{first[0]}, w.watts, false})
		if err != nil {
			return found, err
		}
		found[i+1] = w.worth(second)
	}
	return found, nil
}

// worth is the energy of an answer. No answer is worth the worst there is.
func (w *workload) worth(at [2]int64) float64 {
	if joules, ok := w.joules[at]; ok {
		return joules
	}
	worst := 0.0
	for _, joules := range w.joules {
		worst = max(worst, joules)
	}
	return worst
}

// sought is one search: its trials, and what may be chosen.
type sought struct {
	method         string
	trials         int
	seed           uint64
	batches, watts []int64
	byTime         bool
}

// search runs a study of single trainings and returns its answer.
func (w *workload) search(ctx context.Context, s sought) ([2]int64, error) {
	mark := ""
	if s.byTime {
		mark = "\n  by_time: {values: [true]}"
	}
	file := fmt.Sprintf("name: zeus\ncommand: [recorded]\nobjective: {metric: cost, direction: minimize}\nspace:\n  batch_size: {type: ordinal, values: %s}\n  power_limit: {type: ordinal, values: %s}%s\nbudget: {epochs: 1}\nsearch: {method: %s, seed: %d}\nstop: {trials: %d, failures: 0}\n",
		listed(s.batches), listed(s.watts), mark, s.method, s.seed, s.trials)
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		return [2]int64{}, err
	}
	trace, err := simulator.Run(ctx, def, w, simulator.Options{Seed: s.seed, LeaseSeconds: 100_000})
	if err != nil || trace.Recommendation.Best == nil {
		return [2]int64{s.batches[0], s.watts[len(s.watts)-1]}, err
	}
	batch, _ := trace.Recommendation.Best.Params["batch_size"].Integer()
	watts, _ := trace.Recommendation.Best.Params["power_limit"].Integer()
	return [2]int64{batch, watts}, nil
}

func listed(values []int64) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = strconv.FormatInt(value, 10)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// record is a line of a CSV file by its heading.
type record map[string]string

func (r record) number(name string) float64 {
	value, err := strconv.ParseFloat(r[name], 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// key is what the two files of a workload are joined on.
func (r record) key() string { return r["dataset"] + ", " + r["network"] + ", " + r["optimizer"] }

func readCSV(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	var records []record
	for _, line := range lines[1:] {
		r := record{}
		for i, name := range lines[0] {
			r[name] = line[i]
		}
		records = append(records, r)
	}
	return records, nil
}

// loadZeus joins the epochs to the target (the hardest one that every run of
// at least half of the batch sizes reached, means over the runs) with the time
// and the power of an epoch on a V100.
func loadZeus(folder string) ([]*workload, error) {
	trained, err := readCSV(filepath.Join(folder, "summary_train.csv"))
	if err != nil {
		return nil, err
	}
	power, err := readCSV(filepath.Join(folder, "summary_power_v100.csv"))
	if err != nil {
		return nil, err
	}
	byKey := map[string][]record{}
	for _, r := range trained {
		byKey[r.key()] = append(byKey[r.key()], r)
	}
	var workloads []*workload
	for key, runs := range byKey {
		w := &workload{name: key, seconds: map[[2]int64]float64{}, joules: map[[2]int64]float64{}}
		epochs := toTarget(runs)
		for _, r := range power {
			batch, watts := int64(r.number("batch_size")), int64(r.number("power_limit"))
			needed, reached := epochs[batch]
			if r.key() != key || !reached && !slices.ContainsFunc(runs, func(run record) bool { return run["batch_size"] == r["batch_size"] }) {
				continue
			}
			w.batches, w.watts = append(w.batches, batch), append(w.watts, watts)
			if reached {
				at := [2]int64{batch, watts}
				w.seconds[at] = needed * r.number("time_per_epoch")
				w.joules[at] = w.seconds[at] * r.number("average_power")
			}
		}
		slices.Sort(w.batches)
		slices.Sort(w.watts)
		w.batches, w.watts = slices.Compact(w.batches), slices.Compact(w.watts)
		if len(w.joules) > 0 && len(w.batches) > 2 {
			workloads = append(workloads, w)
		}
	}
	slices.SortFunc(workloads, func(a, b *workload) int { return strings.Compare(a.name, b.name) })
	return workloads, nil
}

// toTarget returns the mean epochs to the target by batch size.
func toTarget(runs []record) map[int64]float64 {
	type sums struct{ epochs, reached, runs float64 }
	byTarget := map[string]map[int64]*sums{}
	for _, r := range runs {
		target, batch := r["target_metric"], int64(r.number("batch_size"))
		if byTarget[target] == nil {
			byTarget[target] = map[int64]*sums{}
		}
		if byTarget[target][batch] == nil {
			byTarget[target][batch] = &sums{}
		}
		s := byTarget[target][batch]
		s.runs++
		if epochs := r.number("target_epoch"); epochs > 0 {
			s.epochs, s.reached = s.epochs+epochs, s.reached+1
		}
	}
	best, hardest := map[int64]float64{}, -1.0
	for _, batches := range byTarget {
		means, total := map[int64]float64{}, 0.0
		for batch, s := range batches {
			if s.reached == s.runs {
				means[batch] = s.epochs / s.runs
				total += means[batch]
			}
		}
		// Of two targets the harder one takes more epochs.
		if 2*len(means) < len(batches) || len(means) == 0 {
			continue
		}
		if mean := total / float64(len(means)); mean > hardest {
			best, hardest = means, mean
		}
	}
	return best
}
