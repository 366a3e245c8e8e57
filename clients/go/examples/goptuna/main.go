// Goptuna runs an objective that was written for goptuna with a Tandem server: only how
// the study is created is another. Start it twice, and both work on one study.
//
//	tandem serve                          # prints the variable TANDEM_TOKEN
//	TANDEM_TOKEN=... go run ./examples/goptuna
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/c-bata/goptuna"
	"github.com/tandem-tune/tandem/clients/go/goptunatandem"
)

// objective knows nothing of Tandem.
func objective(trial goptuna.Trial) (float64, error) {
	rate, err := trial.SuggestLogFloat("rate", 1e-4, 1)
	if err != nil {
		return 0, err
	}
	decay := 0.0
	schedule, err := trial.SuggestCategorical("schedule", []string{"constant", "decay"})
	if err == nil && schedule == "decay" {
		decay, err = trial.SuggestFloat("decay", 0, 0.5)
	}
	if err != nil {
		return 0, err
	}
	w, loss := 5.0, 0.0
	for step := range 10 {
		w -= rate * 2 * w
		rate *= 1 - decay
		loss = math.Abs(w)
		if err := trial.ShouldPrune(step, loss); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

func run(ctx context.Context) error {
	bridge, err := goptunatandem.New(ctx, goptunatandem.Options{})
	if err != nil {
		return err
	}
	defer bridge.Close()
	study, err := goptuna.CreateStudy("descent", bridge.StudyOptions(goptuna.StudyOptionLoadIfExists(true))...)
	if err != nil {
		return err
	}
	if err := study.Optimize(objective, 30); err != nil {
		return err
	}
	value, err := study.GetBestValue()
	if err != nil {
		return err
	}
	params, err := study.GetBestParams()
	fmt.Printf("%s: loss %.3g with %v\n", bridge.Study().URL(), value, params)
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
