package budget_test

import (
	"testing"

	"github.com/tandem-tune/tandem/budget"
)

func TestDeflatedBudgets(t *testing.T) {
	t.Parallel()
	full := budget.Budget{Epochs: 9, DataFraction: 0.5}
	for drop, want := range map[float64]float64{0: 0.5, 0.2: 0.4, 1.0 / 3: 0.333333, 0.9999999: budget.MinFraction, -1: 0.5, 1: 0.5} {
		if got := full.Deflated(drop); got.Epochs != 9 || got.DataFraction != want {
			t.Errorf("without %g of the data: %+v, want %g of it", drop, got, want)
		}
	}
}
