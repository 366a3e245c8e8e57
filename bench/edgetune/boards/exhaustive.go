package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// setting is one on a board; times are by pass.
type setting struct{ batch, threads int }

// compare measures all settings, and says what the recommended ones lose.
func (b *bench) compare(ctx context.Context, found map[int]deployed) error {
	fmt.Println("| board | networks | regret: median (least to most) | within 3% | the same setting again |\n|---|---|---|---|---|")
	for _, one := range boards() {
		var regrets, noise []float64
		within := 0
		for network := range min(b.exhaustive, b.networks) {
			times, err := b.all(ctx, one, network)
			if err != nil {
				return err
			}
			first, second := map[setting]float64{}, map[setting]float64{}
			for at, list := range times {
				first[at], second[at] = median(list[:len(list)/2]), median(list[len(list)/2:])
			}
			best := setting{}
			for at, seconds := range first {
				if least, ok := first[best]; !ok || seconds < least {
					best = at
				}
				noise = append(noise, 100*(max(seconds, second[at])/min(seconds, second[at])-1))
			}
			c := found[network][one.name].Configuration
			regret := 100 * (second[setting{c.BatchSize, c.Cores}]/second[best] - 1)
			if regrets = append(regrets, regret); regret <= 3 {
				within++
			}
		}
		fmt.Printf("| %s | %d | %s%% | %d | %s%% |\n", one.name, len(regrets), spread(regrets), within, spread(noise))
	}
	return nil
}

// all measures a sample's seconds in all settings on the board, in passes.
func (b *bench) all(ctx context.Context, one board, network int) (map[setting][]float64, error) {
	times := map[setting][]float64{}
	for range b.passes {
		batches, threads := rand.Perm(b.batches), rand.Perm(one.threads)
		line := one.limited(b.binary, "edge", "run", b.model(network), "--onnxruntime", b.library, "--memory", one.memory, "--seconds", "0.5", "--json", "--batch", numbers(batches), "--threads", numbers(threads))
		out, err := exec.CommandContext(ctx, line[0], line[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%v: %w", line, err)
		}
		var result struct {
			Cells []struct {
				Batch   int `json:"batch"`
				Threads int `json:"threads"`
				Latency struct {
					P50 float64 `json:"p50_seconds"`
				} `json:"latency"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(out, &result); err != nil {
			return nil, err
		}
		for _, cell := range result.Cells {
			at := setting{cell.Batch, cell.Threads}
			times[at] = append(times[at], cell.Latency.P50/float64(cell.Batch))
		}
	}
	return times, nil
}

// numbers are those from 1, in the order.
func numbers(order []int) string {
	var list []string
	for _, n := range order {
		list = append(list, strconv.Itoa(n+1))
	}
	return strings.Join(list, ",")
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	if len(list) == 0 {
		return 0
	}
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

func spread(list []float64) string {
	if len(list) == 0 {
		return "no"
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", median(list), slices.Min(list), slices.Max(list))
}
