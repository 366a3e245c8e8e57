package groundtruth

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/system"
)

// Queries show what is known.
type Queries struct{ base *Base }

// Queries are those of the base.
func (b *Base) Queries() Queries { return Queries{b} }

// GroundTruth returns what runs taught on a type of machine, or on all types if
// it is empty. Of a type that nothing ran on, that is nothing.
func (q Queries) GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error) {
	records, err := q.base.store.Records(ctx, machine)
	return protocol.GroundTruth{Version: protocol.GroundTruthVersion, Records: records}, err
}

// GroundTruthMachines sums up what is known of each type of machine.
func (q Queries) GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error) {
	types, err := q.base.store.RecordTypes(ctx)
	if err != nil {
		return nil, err
	}
	var machines []protocol.GroundTruthMachine
	for _, machine := range types {
		records, err := q.base.store.Records(ctx, machine)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 { // else they were forgotten since
			machines = append(machines, summary(records))
		}
	}
	return machines, nil
}

// summary sums up the records of one type of machine, the oldest first.
func summary(records []similarity.Record) protocol.GroundTruthMachine {
	first, last := records[0], records[len(records)-1]
	sum := protocol.GroundTruthMachine{Machine: first.Machine, Records: len(records), Oldest: first.Updated, Newest: last.Updated}
	tried := make(map[string]bool)
	for _, record := range records {
		for _, cell := range record.Cells {
			tried[cell.Configuration.Key()] = true
			sum.Epochs += cell.Epochs
		}
	}
	sum.Configurations = len(tried)
	return sum
}

// maxRunPage bounds one page of runs.
const maxRunPage = 1000

// GroundTruthRuns sums up the runs on a type of machine, the newest first: up
// to limit of them (100 if 0) behind the offset.
func (q Queries) GroundTruthRuns(ctx context.Context, machine string, limit, offset int) (protocol.GroundTruthRuns, error) {
	records, err := q.base.store.Records(ctx, machine)
	if err != nil {
		return protocol.GroundTruthRuns{}, err
	}
	page := protocol.GroundTruthRuns{Total: len(records)}
	slices.Reverse(records)
	if limit <= 0 {
		limit = 100
	}
	first := min(max(offset, 0), len(records))
	for _, record := range records[first:min(first+min(limit, maxRunPage), len(records))] {
		page.Runs = append(page.Runs, runOf(record))
	}
	return page, nil
}

func runOf(record similarity.Record) protocol.GroundTruthRun {
	run := protocol.GroundTruthRun{ID: record.ID, Updated: record.Updated}
	had := make(map[string]bool)
	for _, cell := range record.Cells {
		had[cell.Configuration.Key()] = true
		run.Epochs += cell.Epochs
	}
	run.Configurations = len(had)
	run.Comparison = comparisonOf(record)
	return run
}

// comparisonOf compares the record's configurations by time: by epochs behind
// the first one after a start, and by first ones where those compare more; nil
// where none was timed.
func comparisonOf(record similarity.Record) *protocol.GroundTruthComparison {
	var later, first []similarity.Cell
	for _, cell := range record.Cells {
		if cell.Epochs > 0 {
			later = append(later, cell)
		}
		if cell.Firsts > 0 {
			cell.LogSeconds = cell.FirstLogSeconds
			first = append(first, cell)
		}
	}
	ofLater, ofFirst := comparison(later), comparison(first)
	if ofLater == nil || ofFirst != nil && ofFirst.Configurations > ofLater.Configurations {
		return ofFirst
	}
	return ofLater
}

// comparison compares cells by time. Those that ran beside another number of
// trials do not compare: it takes those beside the number with most, and of
// several the fewest.
func comparison(timed []similarity.Cell) *protocol.GroundTruthComparison {
	beside := make(map[int][]similarity.Cell)
	for _, cell := range timed {
		beside[cell.Neighbours] = append(beside[cell.Neighbours], cell)
	}
	var cells []similarity.Cell
	for _, neighbours := range slices.Sorted(maps.Keys(beside)) {
		if len(beside[neighbours]) > len(cells) {
			cells = beside[neighbours]
		}
	}
	if len(cells) == 0 {
		return nil
	}
	byTime := func(a, b similarity.Cell) int {
		return cmp.Or(cmp.Compare(a.LogSeconds, b.LogSeconds), cmp.Compare(a.Configuration.Key(), b.Configuration.Key()))
	}
	fastest, slowest := slices.MinFunc(cells, byTime), slices.MaxFunc(cells, byTime)
	return &protocol.GroundTruthComparison{
		Configurations: len(cells), Neighbours: fastest.Neighbours, Fastest: fastest.Configuration,
		Seconds: math.Exp(fastest.LogSeconds), SlowestSeconds: math.Exp(slowest.LogSeconds),
	}
}

// GroundTruthClusters shows the workloads known on a type of machine under the
// configuration with the key (see system.Configuration.Key), or under the one
// with most runs if it is empty. Where nothing was profiled there are none.
func (q Queries) GroundTruthClusters(ctx context.Context, machine, key string) (protocol.GroundTruthClusters, error) {
	var answer protocol.GroundTruthClusters
	types, err := q.base.store.RecordTypes(ctx)
	if err != nil || !slices.Contains(types, machine) {
		return answer, err // what nothing is known of takes no memory
	}
	known, err := q.base.Machine(ctx, machine)
	if err != nil {
		return answer, err
	}
	// The same groups, by the same names, as trials are compared with whose study
	// names no method of its own.
	known.mutex.Lock()
	defer known.mutex.Unlock()
	memory := known.memory(nil)
	byID := make(map[string]similarity.Record, memory.Len())
	for _, record := range memory.Records() {
		byID[record.ID] = record
	}
	answer.Configurations = profiled(byID)
	at := slices.IndexFunc(answer.Configurations, func(one protocol.GroundTruthConfiguration) bool { return key == "" || one.Key == key })
	if at < 0 {
		return answer, nil
	}
	answer.Configuration, answer.Runs = answer.Configurations[at].Configuration, answer.Configurations[at].Runs
	for _, cluster := range memory.Clusters(answer.Configuration) {
		answer.Workloads = append(answer.Workloads, workloadOf(cluster, byID))
	}
	return answer, nil
}

// profiled lists the configurations that epochs were profiled under, the one
// with most runs first.
func profiled(records map[string]similarity.Record) []protocol.GroundTruthConfiguration {
	found := make(map[string]protocol.GroundTruthConfiguration)
	for _, record := range records {
		seen := make(map[string]bool)
		for _, cell := range record.Cells {
			key := cell.Configuration.Key()
			if cell.Profiles == 0 || seen[key] {
				continue
			}
			seen[key] = true
			found[key] = protocol.GroundTruthConfiguration{Key: key, Configuration: cell.Configuration, Runs: found[key].Runs + 1}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b protocol.GroundTruthConfiguration) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Key, b.Key))
	})
}

// workloadOf says which configuration was mostly the fastest for the cluster.
func workloadOf(cluster similarity.ClusterView, records map[string]similarity.Record) protocol.GroundTruthWorkload {
	workload := protocol.GroundTruthWorkload{ClusterView: cluster}
	wins, configurations := make(map[string]int), make(map[string]system.Configuration)
	for _, point := range cluster.Points {
		compared := comparisonOf(records[point.ID])
		if compared == nil || compared.Configurations < 2 {
			continue
		}
		key := compared.Fastest.Key()
		workload.Compared++
		wins[key]++
		configurations[key] = compared.Fastest
	}
	for _, key := range slices.Sorted(maps.Keys(wins)) {
		if wins[key] > workload.FastestIn {
			workload.Fastest, workload.FastestIn = configurations[key], wins[key]
		}
	}
	return workload
}
