package analysis

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/trial"
)

func surrogateOf(forest *importance.Forest) *protocol.Surrogate {
	return &protocol.Surrogate{Trials: forest.Trials, Used: forest.Used, Explained: forest.Explained}
}

// unpredictable says why nothing is said.
func unpredictable(forest *importance.Forest, rung int) string {
	return fmt.Sprintf("rung %d: from its %d trials a surrogate predicts %.0f%% of the variance of others, which is as good as nothing: no answer is computed from it",
		rung, forest.Trials, 100*max(0, forest.Explained))
}

// caveats say how far to trust what a forest predicts.
func caveats(forest *importance.Forest, rung int, direction definition.Direction) []string {
	notes := []string{}
	if forest.Explained < 0.5 {
		notes = append(notes, fmt.Sprintf("rung %d: the surrogate predicts only %.0f%% of the variance of trials it has not seen: take what it says as a hint", rung, 100*forest.Explained))
	}
	if forest.Pulled > 0 {
		floor := direction.Score(trial.Float(forest.Floor))
		notes = append(notes, fmt.Sprintf("rung %d: %d of %d values are no numbers or far outside of all others; as the worst, %.4g was counted", rung, forest.Pulled, forest.Used, floor))
	}
	if forest.Used < forest.Trials {
		notes = append(notes, fmt.Sprintf("rung %d: the surrogate was made from %d of %d trials, drawn evenly", rung, forest.Used, forest.Trials))
	}
	return notes
}

// drawnFreely reports whether the trial's configuration was drawn without
// regard to what was measured before.
func drawnFreely(t trial.Trial) bool {
	return slices.Contains([]string{"random", "grid", "sobol"}, t.Origin)
}

// crowded warns of trials that mostly lie where somebody expected them to be
// good: there, parameters change together, and no model can tell them apart.
func crowded(trials []trial.Trial, rung, objective int) []string {
	measured, free := 0, 0
	for i := range trials {
		if _, ok := trials[i].ValueAt(rung, objective); ok {
			measured++
			if drawnFreely(trials[i]) {
				free++
			}
		}
	}
	if 2*free >= measured {
		return nil
	}
	return []string{fmt.Sprintf("rung %d: only %d of %d trials were drawn freely, the others lie where the search expected good ones, and there parameters change together: "+
		"one that does nothing may get the credit for another", rung, free, measured)}
}
