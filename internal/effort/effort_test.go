package effort_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
)

func TestTimes(t *testing.T) {
	for factor, want := range map[string]int{"": 12, "1": 12, "20": 240} {
		t.Setenv(effort.Variable, factor)
		if got := effort.Times(t, 12); got != want {
			t.Errorf("with the factor %q it is %d, want %d", factor, got, want)
		}
		if got := effort.ByDay(t, 12, 40); (got == 40) != (factor == "20") || got != 12 && got != 40 {
			t.Errorf("with the factor %q it is %d", factor, got)
		}
	}
}
