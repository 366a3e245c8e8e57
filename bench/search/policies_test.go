package main

import (
	"testing"

	"github.com/tandem-tune/tandem/budget"
)

func TestLaddersStayOnTheTable(t *testing.T) {
	t.Parallel()
	recorded := map[float64]bool{0.0625: true, 0.125: true, 0.25: true, 0.5: true, 1: true}
	for _, l := range ladders() {
		for _, rung := range l.settings.Ladder() {
			if !recorded[rung.Budget.DataFraction] || rung.Budget.Epochs > 9 {
				t.Errorf("%s: nobody measured %+v", l.name, rung.Budget)
			}
		}
		if top := (budget.Budget{Epochs: 9, DataFraction: 1}); l.name != "dataset, 1 epoch" && l.settings.Ladder()[2].Budget != top {
			t.Errorf("%s ends at %+v", l.name, l.settings.Ladder()[2].Budget)
		}
	}
}
