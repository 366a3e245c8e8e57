package analysis

import (
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// CountStages adds one trial to the stages that it came to.
func CountStages(stages []protocol.StageProgress, t trial.Trial) {
	for _, result := range t.Results {
		stages[result.Rung].Measured++
	}
	began := t.Rung
	if len(t.Results) > 0 {
		began = t.Results[0].Rung
	}
	stages[began].Began++
	switch {
	case t.MeasuredAt(t.Rung):
	case t.State == trial.Queued || t.State.Held():
		stages[t.Rung].Active++
	case t.State.Terminal():
		stages[t.Rung].Ended++
	}
}
