package tandem_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	tandem "github.com/tandem-tune/tandem/clients/go"
)

// A function is tuned in this process. The server's address and token come from
// TANDEM_SERVER and TANDEM_TOKEN.
func ExampleStudy_Optimize() {
	ctx := context.Background()
	client, err := tandem.Connect(tandem.Options{})
	if err != nil {
		log.Fatal(err)
	}
	study, err := client.OpenOrCreateStudy(ctx, tandem.Definition{
		Name:       "parabola",
		Objectives: tandem.Minimize("loss"),
		Space:      []tandem.Parameter{tandem.Float("x", -10, 10)},
		Search:     map[string]any{"seed": 7}, // it decides alike each time
	})
	if err != nil {
		log.Fatal(err)
	}
	err = study.Optimize(ctx, func(_ context.Context, trial *tandem.Trial) (float64, error) {
		x := trial.Float("x")
		return (x - 3) * (x - 3), nil
	}, tandem.Trials(40))
	if err != nil {
		log.Fatal(err)
	}
	best, err := study.Best(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(best.Value < 1)
	// Output: true
}

// Who runs the trials elsewhere asks for them, and tells what they brought.
func ExampleStudy_Ask() {
	ctx := context.Background()
	client, err := tandem.Connect(tandem.Options{})
	if err != nil {
		log.Fatal(err)
	}
	study, err := client.OpenOrCreateStudy(ctx, tandem.Definition{
		Name:       "asked",
		Objectives: tandem.Maximize("score"),
		Space:      []tandem.Parameter{tandem.Categorical("size", "small", "large")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	trial, err := study.Ask(ctx)
	if err != nil {
		log.Fatal(err)
	}
	state, err := study.Tell(ctx, trial, float64(len(trial.Categorical("size"))))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state)
	// Output: completed
}

// A program that a worker starts asks for its trial; by hand it runs alone.
func ExampleFromEnvironment() {
	trial, err := tandem.FromEnvironment(context.Background())
	if errors.Is(err, tandem.ErrNotInTrial) {
		var end func()
		trial, end, err = tandem.Alone(map[string]any{"rate": 0.5}, 2)
		defer end()
	}
	if err != nil {
		log.Fatal(err)
	}
	loss := 1.0
	for epoch := range trial.Epochs() {
		loss *= trial.Float("rate")
		if err := trial.Report(epoch, tandem.Metrics{"loss": loss}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// epoch 1: map[loss:0.5]
	// epoch 2: map[loss:0.25]
}
