package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/regression"
)

// compare measures what tuning by default costs a study that gains nothing: pairs of
// studies of the same trials, one with system: off and one that says nothing, in turn, on a
// server that knows the script from the second pair on.
func (o options) compare(ctx context.Context, chosen []kind) error {
	fmt.Println("| workload | pairs | system: off s | default s | default / off (95% interval) |")
	fmt.Println("|---|---|---|---|---|")
	for _, k := range chosen {
		if !k.ignores {
			continue
		}
		err := o.on(ctx, k.name, func(client *rest.Client) error {
			sums, mean, squares := map[string]float64{}, 0.0, 0.0
			for pair := range o.costs {
				took := map[string]float64{}
				for turn := range 2 {
					system := []string{"off", "auto"}[(pair+turn)%2]
					seconds, err := o.timed(ctx, client, k, pair, system)
					if err != nil {
						return err
					}
					took[system] = seconds
					sums[system] += seconds
				}
				d := math.Log(took["auto"] / took["off"])
				before := mean
				mean += (d - mean) / float64(pair+1)
				squares += (d - before) * (d - mean)
			}
			half := regression.HalfWidth(squares, o.costs)
			fmt.Printf("| %s | %d | %.1f | %.1f | %.3f (%.3f to %.3f) |\n", k.name, o.costs, sums["off"]/float64(o.costs), sums["auto"]/float64(o.costs),
				math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half))
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// timed is how long a study of a pair took, in seconds.
func (o options) timed(ctx context.Context, client *rest.Client, k kind, pair int, system string) (float64, error) {
	name := fmt.Sprintf("%s-%d-%s", k.name, pair, system)
	study := map[string]any{
		"name": name, "command": []string{o.python, "epochs.py", "--kind", k.name}, "environment": map[string]string{"PYTHONPATH": o.client},
		"objective": map[string]any{"metric": "accuracy", "direction": "maximize"},
		"space":     map[string]any{"x": map[string]any{"type": "float", "low": 0, "high": 1}},
		"budget":    map[string]any{"epochs": 9},
		"search":    map[string]any{"method": "random", "seed": pair + 1},
		"stop":      map[string]any{"trials": 8},
	}
	if system == "off" {
		study["system"] = system // the other says nothing
	}
	file, err := json.Marshal(study)
	if err != nil {
		return 0, err
	}
	view, err := trained(ctx, client, file, name)
	if err != nil {
		return 0, err
	}
	return view.Finished.Sub(view.Created).Seconds(), nil
}
