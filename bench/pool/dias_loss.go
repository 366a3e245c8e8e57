package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/workers/approximation"
)

// table is a CSV file by the names of its columns.
type table struct {
	at   map[string]int
	rows [][]string
}

// readTable reads a CSV file, packed or not.
func readTable(path string) (t table, err error) {
	file, err := os.Open(path)
	if err != nil {
		return t, fmt.Errorf("the data are not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	reader := csv.NewReader(file)
	if filepath.Ext(path) == ".gz" {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return t, err
		}
		reader = csv.NewReader(unpacked)
	}
	rows, err := reader.ReadAll()
	if err != nil || len(rows) == 0 {
		return t, fmt.Errorf("%s: %d rows, %w", path, len(rows), err)
	}
	t.at, t.rows = map[string]int{}, rows[1:]
	for i, name := range rows[0] {
		t.at[name] = i
	}
	return t, nil
}

// number is that of a row's column; NaN where there is none.
func (t table) number(row []string, column string) float64 {
	value, err := strconv.ParseFloat(row[t.at[column]], 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// lossTable has what dropping a share of the data costs on Fashion-MNIST.
type lossTable struct {
	// accuracy has, for each configuration and each of the fractions, the value
	// that a search sees, exam the test's.
	accuracy, exam [][]float64
}

var fractions = []float64{0.0625, 0.125, 0.25, 0.5, 1}

// measureLosses reads the recorded trainings, prints what dropping costs, and
// how that compares with the estimate that a running study makes from its rungs.
func measureLosses(data string) (lossTable, error) {
	rows, err := readTable(filepath.Join(data, "own_fmnist_budget", "fmnist_mlp_epoch_x_fraction.csv.gz"))
	if err != nil {
		return lossTable{}, err
	}
	value, exam := map[string][]float64{}, map[string][]float64{}
	var order []string
	for _, row := range rows.rows {
		if rows.number(row, "epoch") != 9 {
			continue
		}
		name := row[rows.at["config"]]
		if value[name] == nil {
			value[name], exam[name] = make([]float64, len(fractions)), make([]float64, len(fractions))
			order = append(order, name)
		}
		at := slices.Index(fractions, rows.number(row, "fraction"))
		value[name][at], exam[name][at] = rows.number(row, "val_acc"), rows.number(row, "test_acc")
	}
	var t lossTable
	for _, name := range order {
		t.accuracy, t.exam = append(t.accuracy, value[name]), append(t.exam, exam[name])
	}
	t.print()
	return t, nil
}

// within is the value at a share of the data: between the fractions that were
// recorded it is interpolated by the logarithm.
func within(values []float64, share float64) float64 {
	at := len(fractions) - 2
	for at > 0 && share < fractions[at] {
		at--
	}
	part := math.Log(share/fractions[at]) / math.Log(fractions[at+1]/fractions[at])
	return values[at] + part*(values[at+1]-values[at])
}

// best are the configurations that a search would keep: the best share by what
// it sees with all data.
func (t lossTable) best(share float64) []int {
	order := make([]int, len(t.accuracy))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return -compare(t.accuracy[a][len(fractions)-1], t.accuracy[b][len(fractions)-1])
	})
	return order[:int(share*float64(len(order)))]
}

func compare(a, b float64) int {
	switch {
	case a < b || math.IsNaN(a):
		return -1
	case a > b:
		return 1
	}
	return 0
}

// losses are what the configurations lose by a drop.
func (t lossTable) losses(configurations []int, drop float64) []float64 {
	var list []float64
	for _, c := range configurations {
		list = append(list, t.accuracy[c][len(fractions)-1]-within(t.accuracy[c], 1-drop))
	}
	slices.Sort(list)
	return list
}

// mean is what is lost on average by those that a search would keep.
func (t lossTable) mean(drop float64) float64 {
	list, sum := t.losses(t.best(0.25), drop), 0.0
	for _, one := range list {
		sum += one / float64(len(list))
	}
	return sum
}

// winner is what is lost by choosing with less data and training the chosen
// with all of it, in test accuracy; and without training it again.
func (t lossTable) winner(drop float64) (retrained, kept float64) {
	chosen, full := 0, t.best(1)[0]
	for c := range t.accuracy {
		if within(t.accuracy[c], 1-drop) > within(t.accuracy[chosen], 1-drop) {
			chosen = c
		}
	}
	top := t.exam[full][len(fractions)-1]
	return top - t.exam[chosen][len(fractions)-1], top - within(t.exam[chosen], 1-drop)
}

// learned is the curve that a study makes of the results of its best
// configurations at two rungs, a quarter and half of the data.
func (t lossTable) learned() (approximation.Curve, error) {
	var pairs []approximation.Pair
	for _, c := range t.best(0.25) {
		pairs = append(pairs, approximation.Pair{Less: 9 * 0.25, More: 9 * 0.5, Low: t.accuracy[c][2], High: t.accuracy[c][3]})
	}
	return approximation.FitCurve(pairs)
}

func (t lossTable) print() {
	fmt.Printf("\n### What dropping costs, measured\n\nFashion-MNIST, %d configurations of a network, 9 epochs; accuracy in points, of the best quarter; between the recorded shares interpolated by the logarithm. Winner: test accuracy lost by choosing with less data.\n\n", len(t.accuracy))
	fmt.Println("| dropped | mean | in nine of ten | estimated from the rungs below | its bound | winner, as it is | winner, trained again with all data |\n|---|---|---|---|---|---|---|")
	curve, err := t.learned()
	if err != nil {
		fmt.Println("no curve:", err)
		return
	}
	best := t.best(0.25)
	for _, drop := range []float64{0.1, 0.2, 0.4, 0.5} {
		all := t.losses(best, drop)
		retrained, kept := t.winner(drop)
		fmt.Printf("| %.0f%% | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", 100*drop, 100*t.mean(drop), 100*all[len(all)*9/10], 100*curve.Loss(drop), 100*curve.Bound(drop), 100*kept, 100*retrained)
	}
}
