package regression_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/internal/regression"
)

func TestHalfWidthIsStudents(t *testing.T) {
	// 1, 2 and 3: deviations squared sum to 2, t is 4.3027 with two degrees of freedom.
	if got := regression.HalfWidth(2, 3); math.Abs(got-4.3027/math.Sqrt(3)) > 1e-4 {
		t.Errorf("half of the interval is %v", got)
	}
	if !math.IsInf(regression.HalfWidth(0, 1), 1) {
		t.Error("one value has an interval")
	}
	if got := regression.HalfWidth(1e6*(1e6-1), 1e6); math.Abs(got-regression.Normal95) > 1e-4 {
		t.Errorf("of very many values it is %v, want %v", got, regression.Normal95)
	}
}
