package main

import (
	"bytes"
	"context"
	_ "embed" // the program that runs outside
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/emulator"
)

//go:embed outside.py
var outside string

// ran is what the program outside says of a setting.
type ran struct {
	Batch   int     `json:"batch"`
	Threads int     `json:"threads"`
	Seconds float64 `json:"seconds"`
}

// compare holds the emulator's runs against those of the Python package in a
// process of its own, which nothing locks in. Each is measured twice in turn, so
// that it is seen how far two measurements of the same are apart.
func (b *bench) compare(ctx context.Context, python string, paths []string) error {
	fmt.Print("| model | threads | emulator against Python: median of |ratio − 1|, most | the emulator against itself | Python against itself |\n|---|---|---|---|---|\n")
	every := map[int]*sides{}
	for _, path := range paths {
		emulated, external, err := b.twice(ctx, python, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		cells := b.cells()
		for threads := 1; threads <= b.device.Cores && threads <= 8; threads *= 2 {
			var one sides
			for i, cell := range cells {
				if cell.Threads == threads {
					one.between = append(one.between, off(least(emulated, i), least(external, i)))
					one.emulator, one.python = append(one.emulator, off(emulated[0][i], emulated[1][i])), append(one.python, off(external[0][i], external[1][i]))
				}
			}
			one.print(nameOf(path), threads)
			if every[threads] == nil {
				every[threads] = &sides{}
			}
			every[threads].add(one)
		}
	}
	for _, threads := range slices.Sorted(maps.Keys(every)) {
		every[threads].print("all", threads)
	}
	return nil
}

// sides are how far the emulator is from Python, and each from itself.
type sides struct{ between, emulator, python []float64 }

func (s *sides) add(other sides) {
	s.between, s.emulator, s.python = append(s.between, other.between...), append(s.emulator, other.emulator...), append(s.python, other.python...)
}

func (s *sides) print(name string, threads int) {
	fmt.Printf("| %s | %d | %s | %s | %s |\n", name, threads, shown(s.between), shown(s.emulator), shown(s.python))
}

// twice measures the cells of a model twice by each side, in turn.
func (b *bench) twice(ctx context.Context, python, path string) (emulated, external [2][]float64, err error) {
	for turn := range 2 {
		result, err := b.emulate(ctx, path)
		if err != nil {
			return emulated, external, err
		}
		for _, cell := range result.Cells {
			emulated[turn] = append(emulated[turn], cell.Latency.P50)
		}
		if external[turn], err = b.outside(ctx, python, path); err != nil {
			return emulated, external, err
		}
	}
	return emulated, external, nil
}

// outside has the package run the same settings.
func (b *bench) outside(ctx context.Context, python, path string) ([]float64, error) {
	arguments := []string{"-c", outside, path, strconv.FormatFloat(b.seconds, 'g', -1, 64)}
	cells := b.cells()
	for _, cell := range cells {
		arguments = append(arguments, fmt.Sprintf("%dx%d", cell.Batch, cell.Threads))
	}
	command := exec.CommandContext(ctx, python, arguments...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	said, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("-python %s: %w: %s", python, err, strings.TrimSpace(complaint.String()))
	}
	var list []ran
	if err := json.Unmarshal(said, &list); err != nil {
		return nil, fmt.Errorf("-python %s answered %q: %w", python, said, err)
	}
	return inOrder(cells, list)
}

// inOrder are the seconds of each cell, which all have to be there.
func inOrder(cells []emulator.Cell, list []ran) ([]float64, error) {
	var seconds []float64
	for i, cell := range cells {
		if i >= len(list) || list[i].Batch != cell.Batch || list[i].Threads != cell.Threads || !(list[i].Seconds > 0) {
			return nil, fmt.Errorf("the program outside did not measure a batch of %d on %d threads", cell.Batch, cell.Threads)
		}
		seconds = append(seconds, list[i].Seconds)
	}
	return seconds, nil
}

// least is the smaller of two measurements: what disturbs only ever adds.
func least(of [2][]float64, i int) float64 { return math.Min(of[0][i], of[1][i]) }

func off(a, b float64) float64 { return math.Abs(a/b - 1) }

func shown(values []float64) string {
	median, _ := quantiles(values)
	return fmt.Sprintf("%.1f%%, %.1f%%", 100*median, 100*values[len(values)-1])
}
