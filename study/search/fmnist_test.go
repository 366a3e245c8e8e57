package search_test

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
)

// recorded is the table of own_fmnist_budget: real accuracies and seconds of a
// perceptron on Fashion-MNIST, by configuration, data fraction and epoch.
type recorded struct {
	configurations []space.Configuration
	points         [][]float64 // on the space's own scales
	cells          []map[cell]measurement
	cube           *space.Cube
}

type cell struct {
	fraction float64
	epoch    int
}

type measurement struct{ accuracy, seconds float64 }

// perceptron is the space that the table's configurations were drawn from.
func perceptron() space.Space {
	return space.Space{Parameters: []space.Parameter{
		{Name: "lr", Kind: space.Training, Type: space.FloatType, Low: 3e-4, High: 2, Log: true},
		{Name: "batch", Kind: space.Training, Type: space.OrdinalType, Values: []space.Value{
			space.Int(16), space.Int(32), space.Int(64), space.Int(128), space.Int(256), space.Int(512)}},
		{Name: "hidden", Kind: space.Model, Type: space.IntType, Low: 16, High: 256, Log: true},
		{Name: "momentum", Kind: space.Training, Type: space.FloatType, Low: 0, High: 0.99},
		{Name: "weight_decay", Kind: space.Training, Type: space.FloatType, Low: 1e-6, High: 1e-2, Log: true},
	}}
}

// fmnist reads the table, or skips the test where it is absent.
func fmnist(t *testing.T) recorded {
	t.Helper()
	folder := os.Getenv("TANDEM_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	file, err := os.Open(filepath.Join(folder, "own_fmnist_budget", "fmnist_mlp_epoch_x_fraction.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the recorded table own_fmnist_budget is not here; set TANDEM_DATA to its folder")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(unpacked).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	table := recorded{cube: perceptron().Cube()}
	index := map[string]int{}
	for _, row := range rows[1:] {
		get := func(name string) float64 {
			v, err := strconv.ParseFloat(row[column[name]], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		i, known := index[row[column["config"]]]
		if !known {
			i = len(table.cells)
			index[row[column["config"]]] = i
			c := space.Configuration{
				"lr": space.Float(get("lr")), "batch": space.Int(int64(get("batch"))), "hidden": space.Int(int64(get("hidden"))),
				"momentum": space.Float(get("momentum")), "weight_decay": space.Float(get("weight_decay")),
			}
			table.configurations = append(table.configurations, c)
			table.points = append(table.points, table.cube.Encode(c))
			table.cells = append(table.cells, map[cell]measurement{})
		}
		table.cells[i][cell{get("fraction"), int(get("epoch"))}] = measurement{get("val_acc"), get("epoch_s") + get("eval_s")}
	}
	return table
}

// nearest is the table's configuration closest to the one asked for.
func (r recorded) nearest(c space.Configuration) int {
	point := r.cube.Encode(c)
	best, closest := 0, math.Inf(1)
	for i, other := range r.points {
		distance := 0.0
		for d := range point {
			distance += (point[d] - other[d]) * (point[d] - other[d])
		}
		if distance < closest {
			best, closest = i, distance
		}
	}
	return best
}

// Both searches run on the recorded table in simulated time: 4 workers, epochs
// and data fraction growing together, resumed training paying the difference.
// The regret is 0 for the table's best configuration and 1 for its median one.
func TestFashionMNISTInSimulatedTime(t *testing.T) {
	table := fmnist(t)
	ladder := searchtest.Ladder(3, 3) // 1, 3 and 9 epochs
	for i, fraction := range []float64{0.125, 0.25, 1} {
		ladder[i].Budget.DataFraction = fraction
	}
	at := func(config, rung, epoch int) measurement {
		return table.cells[config][cell{ladder[rung].Budget.DataFraction, epoch}]
	}
	measure := func(c space.Configuration, rung, below int) (accuracy, seconds float64) {
		config, first := table.nearest(c), 1
		if below >= 0 {
			first = ladder[below].Budget.Epochs + 1
		}
		for epoch := first; epoch <= ladder[rung].Budget.Epochs; epoch++ {
			m := at(config, rung, epoch)
			accuracy, seconds = m.accuracy, seconds+m.seconds
		}
		return accuracy, seconds
	}
	var full []float64
	unit := 0.0 // the mean seconds of a full training
	for i, c := range table.configurations {
		_, seconds := measure(c, 2, -1)
		unit += seconds / float64(len(table.configurations))
		full = append(full, at(i, 2, 9).accuracy)
	}
	sort.Float64s(full)
	best, median := full[len(full)-1], full[len(full)/2]

	const workers, units, seeds = 4, 50, 30
	regret := func(method string, share float64) (regret, rows float64) {
		var regrets, seen []float64
		for seed := range uint64(seeds) {
			settings := search.Settings{
				Method: method, Seed: seed, Space: perceptron(), Rungs: ladder, Eta: 3,
				RandomFraction: 1. / 3, Maximize: []bool{true},
			}
			done := simulate(t, settings, world{workers: workers, measure: measure, until: share * units * unit / workers})
			visited := map[int]bool{}
			for _, o := range done {
				visited[table.nearest(o.params)] = true
			}
			won := table.nearest(winner(done).params)
			regrets = append(regrets, (best-at(won, 2, 9).accuracy)/(best-median))
			seen = append(seen, float64(len(visited)))
		}
		return mean(regrets), mean(seen)
	}
	// A table of 157 rows is soon used up: a search that asks all over the space
	// sees most rows, one that stays where it is good asks for the same again.
	// So this says how close to the best row a study comes, and less which of
	// the two methods is better.
	for _, c := range []struct{ share, within float64 }{{0.1, 0.5}, {0.3, 0.15}, {1, 0.05}} {
		bohb, rows := regret("bohb", c.share)
		random, others := regret("random", c.share)
		t.Logf("after %3.0f%% of %d full trainings, mean of %d seeds: bohb %.4f (%.0f rows seen), random %.4f (%.0f)",
			100*c.share, units, seeds, bohb, rows, random, others)
		if bohb > c.within {
			t.Errorf("after %.0f%% bohb's regret is %.4f, more than %v", 100*c.share, bohb, c.within)
		}
	}
}
