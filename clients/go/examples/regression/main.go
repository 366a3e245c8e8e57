// Regression tunes the training of a small model from Go: gradient descent with
// momentum, on points of a known polynomial. Trials begin with one epoch; the better
// ones go on, to nine.
//
//	tandem serve                             # prints the variable TANDEM_TOKEN
//	TANDEM_TOKEN=... go run ./examples/regression
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	tandem "github.com/tandem-tune/tandem/clients/go"
)

// model is y = W[0] + W[1] x + W[2] x², with the speed of each weight.
type model struct{ W, Speed [3]float64 }

// epoch passes once over the points, and returns the mean squared error before.
func (m *model) epoch(rate, momentum float64) float64 {
	const points = 50
	loss := 0.0
	for i := range points {
		x := 2*float64(i)/(points-1) - 1
		inputs := [3]float64{1, x, x * x}
		miss := m.W[0] + m.W[1]*x + m.W[2]*x*x - (0.5 - x + 2*x*x)
		loss += miss * miss / points
		for j, input := range inputs {
			m.Speed[j] = momentum*m.Speed[j] - rate*miss*input
			m.W[j] += m.Speed[j]
		}
	}
	return loss
}

func objective(_ context.Context, trial *tandem.Trial) (float64, error) {
	var m model
	_, err := trial.Restore(func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return json.Unmarshal(content, &m)
	})
	if err != nil {
		return 0, err
	}
	loss := 0.0
	for epoch := range trial.Epochs() {
		loss = m.epoch(trial.Float("rate"), trial.Float("momentum"))
		if err := trial.Report(epoch, tandem.Metrics{"loss": loss}); err != nil {
			return 0, err
		}
		err := trial.Checkpoint(func(path string) error {
			content, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return os.WriteFile(path, content, 0o600)
		})
		if err != nil {
			return 0, err
		}
	}
	return loss, nil
}

func run(ctx context.Context) error {
	client, err := tandem.Connect(tandem.Options{})
	if err != nil {
		return err
	}
	study, err := client.OpenOrCreateStudy(ctx, tandem.Definition{
		Name:       "regression",
		Objectives: tandem.Minimize("loss"),
		Space:      []tandem.Parameter{tandem.LogFloat("rate", 1e-4, 1), tandem.Float("momentum", 0, 0.99)},
		Epochs:     9,
		Trials:     30,
	})
	if err != nil {
		return err
	}
	if err := study.Optimize(ctx, objective); err != nil {
		return err
	}
	best, err := study.Best(ctx)
	if err != nil || best == nil {
		return err
	}
	fmt.Printf("%s: loss %.3g with %v\n", study.URL(), best.Value, best.Params)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
