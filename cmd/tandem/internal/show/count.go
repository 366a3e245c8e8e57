package show

import (
	"math"
	"strconv"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

// Count is a large number with groups of three digits, a small one as
// measured.
func Count(value float64) string {
	if math.Abs(value) < 100 && value != math.Trunc(value) {
		return format.Number(trial.Float(value))
	}
	if math.Abs(value) >= 1e15 {
		return strconv.FormatFloat(value, 'g', 6, 64)
	}
	digits := strconv.FormatFloat(value, 'f', 0, 64)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
