package trial

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Float is a measured value. NaN and the infinities are values like any other:
// in JSON they are the strings "NaN", "Infinity" and "-Infinity", so that no
// store or client turns a diverged trial into a missing or a best one.
type Float float64

// IsNaN reports whether the value is not a number.
func (f Float) IsNaN() bool { return math.IsNaN(float64(f)) }

// IsFinite reports whether the value is an ordinary number.
func (f Float) IsFinite() bool { return !f.IsNaN() && !math.IsInf(float64(f), 0) }

// MarshalJSON writes a number, or one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes; null is refused.
func (f *Float) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*f = Float(math.NaN())
	case `"Infinity"`:
		*f = Float(math.Inf(1))
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
	case "null":
		return fmt.Errorf(`a metric must be a number or "NaN", "Infinity", "-Infinity", not null`)
	default:
		var v float64
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf(`a metric must be a number or "NaN", "Infinity", "-Infinity", not %s`, data)
		}
		*f = Float(v)
	}
	return nil
}
