package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
)

// errNoData says that the recorded tables are not on this machine.
var errNoData = errors.New("the recorded tables are not here: set TANDEM_DATA to the folder that holds own_fmnist_budget, opda and taskset")

// dataFolder is where the tables are looked for.
func dataFolder() string {
	if folder := os.Getenv("TANDEM_DATA"); folder != "" {
		return folder
	}
	return filepath.Join("..", "shared", "data")
}

// loadTables reads every problem.
func loadTables(folder string) ([]*table, error) {
	loaders := []func(string) (*table, error){loadPerceptron, loadAlexNet}
	for _, task := range []string{"LSTM128_avg_bs64", "LSTM128_bs64", "LSTM128_embed128_bs64"} {
		loaders = append(loaders, func(folder string) (*table, error) { return loadTask(folder, task) })
	}
	var tables []*table
	for _, load := range loaders {
		t, err := load(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w (%w)", errNoData, err)
		}
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	surrogates, err := loadNetworkTasks(folder)
	return append(tables, surrogates...), err
}

// unpacked calls read with the content of a packed file.
func unpacked(read func(io.Reader) error, path ...string) error {
	file, err := os.Open(filepath.Join(path...))
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	return read(content)
}

// Rounded to the nearest, its ladder would have fractions that were not recorded.
const perceptronFile = `
name: fmnist
command: [recorded]
objective: [{metric: val_acc, direction: maximize}]
space:
  lr: {type: float, low: 3e-4, high: 2, log: true}
  batch: {type: ordinal, values: [16, 32, 64, 128, 256, 512]}
  hidden: {type: int, low: 16, high: 256, log: true}
  momentum: {type: float, low: 0, high: 0.99}
  weight_decay: {type: float, low: 1e-6, high: 1e-2, log: true}
budget: {policy: multi, rounding: down, epochs: {min: 1, max: 9}, data_fraction: {min: 0.0625, max: 1}, eta: 3}
stop: {trials: 100000}
`

// cell is a place in the table of own_fmnist_budget.
type cell struct {
	fraction float64
	epoch    int
}

// loadPerceptron reads own_fmnist_budget: a perceptron on Fashion-MNIST, by
// epochs and data fraction. A trial that goes on with more data gets the values
// of one that had them from the start: what was recorded has no other.
func loadPerceptron(folder string) (*table, error) {
	var records [][]string
	err := unpacked(func(content io.Reader) (err error) {
		records, err = csv.NewReader(content).ReadAll()
		return err
	}, folder, "own_fmnist_budget", "fmnist_mlp_epoch_x_fraction.csv.gz")
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	number := func(record []string, name string) float64 {
		value, err := strconv.ParseFloat(record[column[name]], 64)
		if err != nil {
			return math.NaN()
		}
		return value
	}
	var rows []space.Configuration
	var cells []map[cell]simulator.Measurement
	index := map[string]int{}
	for _, record := range records[1:] {
		config := record[column["config"]]
		if _, known := index[config]; !known {
			index[config] = len(rows)
			rows = append(rows, space.Configuration{
				"lr": space.Float(number(record, "lr")), "batch": space.Int(int64(number(record, "batch"))),
				"hidden": space.Int(int64(number(record, "hidden"))), "momentum": space.Float(number(record, "momentum")),
				"weight_decay": space.Float(number(record, "weight_decay")),
			})
			cells = append(cells, map[cell]simulator.Measurement{})
		}
		cells[index[config]][cell{number(record, "fraction"), int(number(record, "epoch"))}] = simulator.Measurement{
			Value: number(record, "val_acc"), Seconds: number(record, "epoch_s") + number(record, "eval_s"),
		}
	}
	rows, cells = complete(rows, cells)
	return newTable("fmnist", perceptronFile, rows, func(row, epoch int, fraction float64) simulator.Measurement {
		return cells[row][cell{fraction, epoch}]
	})
}

// complete drops the configurations that were not measured everywhere.
func complete(rows []space.Configuration, cells []map[cell]simulator.Measurement) ([]space.Configuration, []map[cell]simulator.Measurement) {
	most := 0
	for _, measured := range cells {
		most = max(most, len(measured))
	}
	var keptRows []space.Configuration
	var keptCells []map[cell]simulator.Measurement
	for i, measured := range cells {
		if len(measured) == most {
			keptRows, keptCells = append(keptRows, rows[i]), append(keptCells, measured)
		}
	}
	return keptRows, keptCells
}

const alexNetFile = `
name: alexnet
command: [recorded]
objective: [{metric: top_1, direction: maximize}]
space:
  epochs: {type: int, low: 20, high: 100}
  batch_size: {type: ordinal, values: [128, 256, 512, 1024]}
  lr: {type: float, low: 5e-3, high: 50, log: true}
  peak: {type: float, low: 0, high: 0.8}
  momentum: {type: float, low: 0.7, high: 1}
  weight_decay: {type: float, low: 1e-6, high: 1e-3, log: true}
  label_smoothing: {type: float, low: 0, high: 0.5}
budget: {policy: epochs, epochs: {min: 4, max: 100}, eta: 3}
stop: {trials: 100000}
`

// tuned is one line of opda's file.
type tuned struct {
	Diverged       bool    `json:"nan_train_loss"`
	Epochs         int     `json:"epochs"`
	BatchSize      int64   `json:"batch_size"`
	LR             float64 `json:"lr"`
	Peak           float64 `json:"lr_peak_epoch"`
	Momentum       float64 `json:"momentum"`
	WeightDecay    float64 `json:"weight_decay"`
	LabelSmoothing float64 `json:"label_smoothing"`
	Curve          []struct {
		Time float64 `json:"time"`
		Top1 float64 `json:"top_1"`
	} `json:"learning_curve"`
}

// loadAlexNet reads opda: AlexNet on ImageNet. The planned length of a
// training, on which its learning rate depends, is a parameter of the space; a
// budget beyond it is paid for, and keeps the last value.
func loadAlexNet(folder string) (*table, error) {
	var rows []space.Configuration
	var lines []tuned
	err := unpacked(func(content io.Reader) error {
		for decoder := json.NewDecoder(content); decoder.More(); {
			var line tuned
			if err := decoder.Decode(&line); err != nil {
				return err
			}
			lines = append(lines, line)
			rows = append(rows, space.Configuration{
				"epochs": space.Int(int64(line.Epochs)), "batch_size": space.Int(line.BatchSize), "lr": space.Float(line.LR),
				"peak": space.Float(line.Peak / float64(line.Epochs)), "momentum": space.Float(line.Momentum),
				"weight_decay": space.Float(line.WeightDecay), "label_smoothing": space.Float(line.LabelSmoothing),
			})
		}
		return nil
	}, folder, "opda", "alexnet_tuning.jsonl.gz")
	if err != nil {
		return nil, err
	}
	return newTable("alexnet", alexNetFile, rows, func(row, epoch int, _ float64) simulator.Measurement {
		return lines[row].at(epoch)
	})
}

// typicalSeconds is the time of an epoch of a training that diverged in its
// first, and so has none recorded: about the mean of the others.
const typicalSeconds = 400

func (l tuned) at(epoch int) simulator.Measurement {
	if len(l.Curve) == 0 {
		return simulator.Measurement{Value: math.NaN(), Seconds: typicalSeconds}
	}
	last := len(l.Curve)
	m := simulator.Measurement{Value: l.Curve[min(epoch, last)-1].Top1, Seconds: l.Curve[last-1].Time / float64(last)}
	if l.Diverged && epoch > last {
		m.Value = math.NaN()
	}
	return m
}

const taskFile = `
name: NAME
command: [recorded]
objective: [{metric: loss, direction: minimize}]
space:
  learning_rate: {type: float, low: 1e-8, high: 10, log: true}
  one_minus_beta1: {type: float, low: 1e-4, high: 1, log: true}
  one_minus_beta2: {type: float, low: 1e-6, high: 1, log: true}
  epsilon: {type: float, low: 1e-10, high: 1000, log: true}
  l1: {type: float, low: 1e-8, high: 10, log: true}
  l2: {type: float, low: 1e-8, high: 10, log: true}
  linear_decay: {type: float, low: 1e-7, high: 1e-4, log: true}
  exponential_decay: {type: float, low: 1e-6, high: 1e-3, log: true}
budget: {policy: epochs, epochs: {min: 2, max: 50}, eta: 3}
stop: {trials: 100000}
`

// recorded is one configuration of taskset. NaN is no JSON: it is read as null.
type recorded struct {
	Settings map[string]float64 `json:"hp"`
	Valid    struct {
		Loss []*float64 `json:"loss"`
	} `json:"valid"`
}

func (r recorded) at(epoch int) simulator.Measurement {
	m := simulator.Measurement{Value: math.NaN(), Seconds: 1}
	if loss := r.Valid.Loss[epoch]; loss != nil {
		m.Value = *loss
	}
	return m
}

// loadTask reads one problem of taskset: an optimizer's settings for a text
// classifier. Point 0 of a curve is before the training; points 1 to 50 are
// taken as epochs, of a second each, since no time was recorded.
func loadTask(folder, task string) (*table, error) {
	var list []recorded
	err := unpacked(func(content io.Reader) error {
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return json.Unmarshal(bytes.ReplaceAll(text, []byte("NaN"), []byte("null")), &list)
	}, folder, "taskset", "FixedTextRNNClassification_imdb_patch128_"+task+".json.gz")
	if err != nil {
		return nil, err
	}
	var rows []space.Configuration
	for _, one := range list {
		row := space.Configuration{
			"one_minus_beta1": space.Float(1 - one.Settings["beta1"]), "one_minus_beta2": space.Float(1 - one.Settings["beta2"]),
		}
		for _, name := range []string{"learning_rate", "epsilon", "l1", "l2", "linear_decay", "exponential_decay"} {
			row[name] = space.Float(one.Settings[name])
		}
		rows = append(rows, row)
	}
	name := "taskset-" + strings.ToLower(strings.ReplaceAll(task, "_", "-"))
	return newTable(name, strings.Replace(taskFile, "NAME", name, 1), rows, func(row, epoch int, _ float64) simulator.Measurement {
		return list[row].at(epoch)
	})
}
