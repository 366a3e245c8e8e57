package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/system"
)

// method is a similarity function under test.
type method struct {
	name      string
	clusterer similarity.Clusterer
}

func methods() []method {
	return []method{
		{"agglomerative (the default)", nil},
		{"k-means, K by silhouette", similarity.KMeans{}},
		{"k-means, K = 2 (the thesis's)", similarity.KMeans{K: 2}},
	}
}

// rates counts answers.
type rates struct {
	asked, right, wrong int // matched with runs of its own workload, of another one
	strangers, rejected int
	confusion           map[string]map[string]int
}

func evaluate(file, fixed string) error {
	runs, err := load(file)
	if err != nil {
		return err
	}
	fmt.Printf("%d runs of %d workloads, %d configurations\n\n", len(runs), len(known(runs)), len(configurations()))
	fmt.Print("| similarity function | profile of | runs | matches its own workload | another workload | new workload is rejected |\n|---|---|---|---|---|---|\n")
	var first rates
	for i, by := range methods() {
		for _, variant := range []string{same, larger, neighbour} {
			for _, single := range []bool{false, true} {
				r := by.judge(runs, variant, single)
				if r.asked == 0 {
					continue
				}
				if i == 0 && variant == same && !single {
					first = r
				}
				what := "all its epochs"
				if single {
					what = "one epoch"
				}
				fmt.Printf("| %s | %s | %s | %s of %d | %s | %s of %d |\n", by.name, what, variant,
					percent(r.right, r.asked), r.asked, percent(r.wrong, r.asked), percent(r.rejected, r.strangers), r.strangers)
			}
		}
	}
	first.print(known(runs))
	drift(runs)
	spreads(runs)
	if fixed != "" {
		return save(fixed, fix(runs))
	}
	return nil
}

// known are the workloads of the runs, in the order of the list.
func known(runs []run) []string {
	return slices.DeleteFunc(workloads(), func(name string) bool {
		return !slices.ContainsFunc(runs, func(r run) bool { return r.Workload == name })
	})
}

func percent(part, all int) string {
	if all == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(all))
}

// judge asks for every run of the variant, what it is like among the other
// undisturbed runs, with its workload and without it.
func (by method) judge(runs []run, variant string, single bool) rates {
	r := rates{confusion: map[string]map[string]int{}}
	for i, one := range runs {
		if one.Variant != variant {
			continue
		}
		known, others := by.memory(runs, i, ""), by.memory(runs, i, one.Workload)
		for _, asked := range one.queries(single) {
			found := known.Match(asked.configuration, asked.features, "")
			answer := "new"
			if found.Similar {
				answer = majority(found.Members)
			}
			r.asked++
			switch answer {
			case one.Workload:
				r.right++
			case "new":
			default:
				r.wrong++
			}
			if r.confusion[one.Workload] == nil {
				r.confusion[one.Workload] = map[string]int{}
			}
			r.confusion[one.Workload][answer]++
			r.strangers++
			if !others.Match(asked.configuration, asked.features, "").Similar {
				r.rejected++
			}
		}
	}
	return r
}

// memory has the undisturbed runs but one, and but a workload.
func (by method) memory(runs []run, left int, without string) *similarity.Memory {
	m := similarity.NewMemory(similarity.Options{Clusterer: by.clusterer})
	for i, one := range runs {
		if i != left && one.Variant == same && one.Workload != without {
			m.Put(one.record())
		}
	}
	return m
}

// record is what a server would keep; the ID carries the workload's name, for
// the judge only.
func (r run) record() similarity.Record {
	record := similarity.Record{ID: fmt.Sprintf("%s/%d", r.Workload, r.Number), Updated: time.Unix(int64(r.Number), 0)}
	for _, one := range r.queries(false) {
		record.Cells = append(record.Cells, similarity.Cell{Configuration: one.configuration, Profiles: one.epochs, Features: one.features})
	}
	return record
}

type query struct {
	configuration system.Configuration
	features      map[string]float64
	epochs        int
}

// queries are the run's mean profiles by configuration, or its single epochs.
func (r run) queries(single bool) []query {
	var list []query
	for _, one := range r.Epochs {
		features := similarity.Features(one.Profile)
		at := slices.IndexFunc(list, func(q query) bool { return q.configuration.Equal(one.Configuration) })
		if at < 0 || single {
			list = append(list, query{one.Configuration, features, 1})
			continue
		}
		q := &list[at]
		for name, x := range features {
			q.features[name] = (q.features[name]*float64(q.epochs) + x) / float64(q.epochs+1)
		}
		q.epochs++
	}
	return list
}

func majority(members []similarity.Record) string {
	votes := map[string]int{}
	for _, one := range members {
		name, _, _ := strings.Cut(one.ID, "/")
		votes[name]++
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

func (r rates) print(rows []string) {
	columns := append(slices.Clone(rows), "new")
	fmt.Printf("\n| is, and was taken for | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Printf("| %s |", row)
		for _, column := range columns {
			if n := r.confusion[row][column]; n > 0 {
				fmt.Printf(" %d |", n)
			} else {
				fmt.Print(" |")
			}
		}
		fmt.Println()
	}
}

// spreads prints for each feature the pooled standard deviation among runs of a
// workload, and that of the workloads' means, under one configuration.
func spreads(runs []run) {
	values := map[string]map[string][]float64{} // by feature, by workload and configuration
	for _, one := range runs {
		if one.Variant != same {
			continue
		}
		for _, q := range one.queries(false) {
			for name, x := range q.features {
				if values[name] == nil {
					values[name] = map[string][]float64{}
				}
				key := q.configuration.Key() + "/" + one.Workload
				values[name][key] = append(values[name][key], x)
			}
		}
	}
	fmt.Print("\n| feature | spread within workloads | between them |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		within, freedom := 0.0, 0.0
		means := map[string][]float64{} // by configuration
		for key, list := range values[name] {
			configuration, _, _ := strings.Cut(key, "/")
			mean, squares := moments(list)
			means[configuration] = append(means[configuration], mean)
			within, freedom = within+squares, freedom+float64(len(list)-1)
		}
		between, degrees := 0.0, 0.0
		for _, list := range means {
			_, squares := moments(list)
			between, degrees = between+squares, degrees+float64(len(list)-1)
		}
		fmt.Printf("| %s | %.3f | %.3f |\n", name, math.Sqrt(within/max(1, freedom)), math.Sqrt(between/max(1, degrees)))
	}
}

// moments are the mean and the sum of the squared differences to it.
func moments(list []float64) (mean, squares float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		squares += (x - mean) * (x - mean)
	}
	return mean, squares
}

// drift asks for each second epoch under a configuration, whether it drifted
// from the first one, and so for an epoch of each other workload.
func drift(runs []run) {
	known := methods()[0].memory(runs, -1, "")
	var asked, falsely, switched, noticed int
	for _, one := range runs {
		if one.Variant != same {
			continue
		}
		for _, first := range one.queries(true)[:len(one.Epochs)/2] {
			mean := similarity.Cell{Configuration: first.configuration, Profiles: 1, Features: first.features}
			for _, other := range runs {
				if other.Variant != same || other.Number != one.Number {
					continue
				}
				for _, second := range other.queries(true)[len(other.Epochs)/2:] {
					if !second.configuration.Equal(first.configuration) {
						continue
					}
					drifted := known.Drifted(mean, second.features)
					if other.Workload == one.Workload {
						asked, falsely = asked+1, falsely+count(drifted)
					} else {
						switched, noticed = switched+1, noticed+count(drifted)
					}
				}
			}
		}
	}
	fmt.Printf("\nDrift: %s of %d epochs of the same run were taken for another workload, %s of %d epochs of another workload were noticed.\n",
		percent(falsely, asked), asked, percent(noticed, switched), switched)
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// fixture is what similarity/testdata has of the undisturbed runs: the features
// of each epoch, in the order of their names.
type fixture struct {
	Features []string     `json:"features"`
	Epochs   []fixedEpoch `json:"epochs"`
}

type fixedEpoch struct {
	Workload string    `json:"workload"`
	Run      int       `json:"run"`
	Threads  float64   `json:"threads"`
	Cores    float64   `json:"cores"`
	Values   []float64 `json:"values"`
}

func fix(runs []run) fixture {
	var f fixture
	for _, one := range runs {
		if one.Variant != same {
			continue
		}
		for _, q := range one.queries(true) {
			if f.Features == nil {
				f.Features = slices.Sorted(maps.Keys(q.features))
			}
			e := fixedEpoch{Workload: one.Workload, Run: one.Number}
			e.Threads, _ = q.configuration[system.CPUThreads].Number()
			e.Cores, _ = q.configuration[system.Cores].Number()
			for _, name := range f.Features {
				e.Values = append(e.Values, math.Round(q.features[name]*1e4)/1e4)
			}
			f.Epochs = append(f.Epochs, e)
		}
	}
	return f
}
