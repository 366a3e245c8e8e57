package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// trace is the demand of a cluster at each minute.
type trace struct {
	name   string
	file   string
	unit   string
	total  int
	demand []float64
}

func traces() []trace {
	return []trace{
		{name: "Helios, Earth, vc6YE", file: "helios_earth/earth_vc6YE.csv.gz", unit: "GPUs", total: 208},
		{name: "Philly", file: "helios_earth/philly_node_sequence.csv.gz", unit: "nodes", total: 420},
	}
}

// read fills in the demand: what runs and what waits, since both want GPUs.
func (t *trace) read(data string) (err error) {
	file, err := os.Open(filepath.Join(data, t.file))
	if err != nil {
		return fmt.Errorf("the trace is not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	reader := csv.NewReader(unpacked)
	header, err := reader.Read()
	if err != nil {
		return err
	}
	wanted := []string{"active"}
	if t.unit == "GPUs" {
		wanted = []string{"running_gpu_num", "pending_gpu_num"}
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		sum := 0.0
		for _, name := range wanted {
			at := slices.Index(header, name)
			if at < 0 {
				return fmt.Errorf("%s has no column %s", t.file, name)
			}
			value, err := strconv.ParseFloat(row[at], 64)
			if err != nil {
				return err
			}
			sum += value
		}
		t.demand = append(t.demand, sum)
	}
}

// day is a period of the demand, in minutes. Forecasts are judged from its end
// on, so that all of them have the same history.
const day = 1440

// forecasts trains on the first 70% of each trace, chooses the knob on the next
// 10%, and judges on the last 20%.
func forecasts(data string, runs, samples int) error {
	for _, t := range traces() {
		if err := t.read(data); err != nil {
			return err
		}
		n := len(t.demand)
		training, choosing, testing := t.demand[:n*7/10], t.demand[n*7/10:n*8/10], t.demand[n*8/10:]
		fmt.Printf("\n**%s**: %d minutes, %d %s; trained on the first 70%%, tested on the last 20%%\n\n", t.name, n, t.total, t.unit)
		fmt.Println("| | run | trained s | forecast ms | MAE at 0.5 | under at 0.5 | under at 0.9 | under at 0.9, high load | pinball | covered at 0.1, 0.5, 0.9, 0.99 |")
		fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
		first := map[string]forecast.Forecaster{}
		for _, one := range candidates(training, samples) {
			for run := range runs {
				if run > 0 && !one.drawn {
					break
				}
				f, err := one.measure(run, testing)
				if err != nil {
					return err
				}
				if run == 0 {
					first[one.name] = f
				}
			}
		}
		if err := knobs(t, first["GRU"], first["GRU, point"], choosing, testing); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a way to forecast. What is drawn differs with the seed.
type candidate struct {
	name  string
	drawn bool
	train func(seed uint64) (forecast.Forecaster, error)
}

func candidates(training []float64, samples int) []candidate {
	network := func(encoder string, point bool) func(uint64) (forecast.Forecaster, error) {
		return func(seed uint64) (forecast.Forecaster, error) {
			return forecast.Train(training, forecast.Settings{Encoder: encoder, Point: point, Samples: samples, Seed: seed})
		}
	}
	seasonal := func(period int) func(uint64) (forecast.Forecaster, error) {
		return func(uint64) (forecast.Forecaster, error) {
			return forecast.NewSeasonal(training, period, forecast.Quantiles())
		}
	}
	return []candidate{
		{"persistence", false, seasonal(0)}, {"a day ago", false, seasonal(day)},
		{"GRU", true, network(forecast.GRU, false)}, {"Bi-LSTM", true, network(forecast.BiLSTM, false)}, {"CNN", true, network(forecast.Convolutional, false)},
		{"GRU, point", true, network(forecast.GRU, true)},
	}
}

// measure trains it once, judges it and prints a line.
func (c candidate) measure(run int, testing []float64) (forecast.Forecaster, error) {
	begin := time.Now()
	f, err := c.train(uint64(run)) //nolint:gosec // a small number
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	begin = time.Now()
	const looks = 200
	for i := range looks {
		if _, err := f.Forecast(testing[:day+1+i]); err != nil {
			return nil, err
		}
	}
	each := time.Since(begin) / looks
	median, err := forecast.Judge(f, testing, day+1, 1, 0.5)
	if err != nil {
		return nil, err
	}
	high, err := forecast.Judge(f, testing, day+1, 1, 0.9)
	if err != nil {
		return nil, err
	}
	busy, err := underAtHighLoad(f, testing, 0.9)
	if err != nil {
		return nil, err
	}
	covered := "-"
	if len(median.Coverage) > 1 {
		covered = ""
		for i, q := range forecast.Quantiles() {
			if slices.Contains([]float64{0.1, 0.5, 0.9, 0.99}, q) {
				covered += fmt.Sprintf("%.2f ", median.Coverage[i])
			}
		}
	}
	fmt.Printf("| %s | %d | %.1f | %.2f | %.2f | %.1f%% | %.1f%% | %.1f%% | %.3f | %s|\n", c.name, run+1, took.Seconds(), each.Seconds()*1000,
		median.MAE, 100*median.Under, 100*high.Under, 100*busy, median.Pinball, covered)
	return f, nil
}

// underAtHighLoad is the share of minutes, of the tenth with the highest
// demand, whose demand was above the forecast.
func underAtHighLoad(f forecast.Forecaster, series []float64, quantile float64) (float64, error) {
	sorted := slices.Clone(series[day+1:])
	slices.Sort(sorted)
	high := sorted[len(sorted)*9/10]
	under, minutes := 0, 0
	for now := day; now+forecast.Horizon < len(series); now++ {
		if slices.Max(series[now+1:now+1+forecast.Horizon]) < high {
			continue
		}
		one, err := f.Forecast(series[:now+1])
		if err != nil {
			return 0, err
		}
		for minute := range forecast.Horizon {
			if actual := series[now+1+minute]; actual >= high {
				minutes++
				if actual > one.At(minute, quantile) {
					under++
				}
			}
		}
	}
	return float64(under) / float64(max(1, minutes)), nil
}

// knobs compares what is served and saved, with 25 W less by the lowest clock
// (section 4.2) of 50 W idle, an estimate, and one minute to wake up.
func knobs(t trace, chosen, point forecast.Forecaster, choosing, testing []float64) error {
	for _, power := range []struct {
		name string
		forecast.Power
	}{
		{"lowest clock: 25 of 50 W, 1 minute (estimate)", forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}},
		{"off: 0 of 50 W, 2 minutes (estimate)", forecast.Power{AwakeWatts: 50, AsleepWatts: 0, DelayMinutes: 2}},
	} {
		fmt.Printf("\n%s\n\n| %s | quantile | demand served | minutes in which all was | energy saved |\n|---|---|---|---|---|\n", power.name, t.unit)
		for _, asked := range []float64{0.9, 0.95, 0.98, 0.99, 0.999} {
			k, err := forecast.NewKnob(chosen, choosing, t.total, power.Power, asked)
			if err != nil {
				return err
			}
			play, err := k.Play(testing, k.Quantile(), 0)
			if err != nil {
				return err
			}
			fmt.Printf("| knob at %g | %.2f | %.2f%% | %.1f%% | %.1f%% |\n", asked, k.Quantile(), 100*play.Served, 100*play.Met, 100*play.Saved)
		}
		for _, margin := range []float64{0, 0.05} {
			k, err := forecast.NewKnob(point, choosing, t.total, power.Power, 0.5)
			if err != nil {
				return err
			}
			play, err := k.Play(testing, 0.5, margin)
			if err != nil {
				return err
			}
			fmt.Printf("| point forecast + %g%% | - | %.2f%% | %.1f%% | %.1f%% |\n", 100*margin, 100*play.Served, 100*play.Met, 100*play.Saved)
		}
	}
	return nil
}
