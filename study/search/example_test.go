package search_test

import (
	"fmt"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// A search is asked for work and told results. Here two trials are measured on the
// first of two rungs; the better one is promoted.
func ExampleNew() {
	method, err := search.New(search.Settings{
		Method: "grid", Seed: 1, GridPoints: 2, Eta: 2, Brackets: 1, MaxTrials: 2, Maximize: []bool{true},
		Space: space.Space{Parameters: []space.Parameter{{Name: "momentum", Kind: space.Training, Type: space.FloatType, Low: 0, High: 0.9}}},
		Rungs: []budget.Rung{
			{Index: 0, Budget: budget.Budget{Epochs: 1, DataFraction: 1}},
			{Index: 1, Budget: budget.Budget{Epochs: 2, DataFraction: 1}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for number, accuracy := range []trial.Float{0.8, 0.9} {
		actions, _ := method.Handle(search.Event{Kind: search.Request})
		fmt.Println(actions[0].Kind, "trial", actions[0].Trial, "on rung", actions[0].Rung)
		_, _ = method.Handle(search.Event{Kind: search.Measured, Trial: number, Rung: 0, Values: []trial.Float{accuracy}})
	}
	actions, _ := method.Handle(search.Event{Kind: search.Request})
	fmt.Println(actions[0].Kind, "trial", actions[0].Trial, "to rung", actions[0].Rung)
	// Output:
	// create trial 0 on rung 0
	// create trial 1 on rung 0
	// promote trial 1 to rung 1
}
