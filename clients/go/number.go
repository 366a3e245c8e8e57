package tandem

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// number is a measured value: JSON has neither NaN nor infinities, so these are texts.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	value := float64(n)
	switch {
	case math.IsNaN(value):
		return []byte(`"NaN"`), nil
	case math.IsInf(value, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(value, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(value)
}

func (n *number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	value, err := strconv.ParseFloat(text, 64)
	*n = number(value)
	return err
}

// plain turns what JSON gave into int64, float64, string and bool.
func plain(value any) any {
	text, is := value.(json.Number)
	if !is {
		return value
	}
	if whole, err := strconv.ParseInt(text.String(), 10, 64); err == nil {
		return whole
	}
	value64, err := text.Float64()
	if err != nil {
		return text.String()
	}
	return value64
}

func plainAll(values map[string]any) map[string]any {
	found := make(map[string]any, len(values))
	for name, value := range values {
		found[name] = plain(value)
	}
	return found
}

// same reports whether two values of a parameter are one: the last digits of a number
// may have been lost on the way.
func same(one, other any) bool {
	a, numeric := asFloat(one)
	b, too := asFloat(other)
	if !numeric || !too {
		return numeric == too && fmt.Sprint(one) == fmt.Sprint(other)
	}
	return a == b || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b))
}

func asFloat(value any) (float64, bool) {
	switch number := plain(value).(type) {
	case float64:
		return number, true
	case int64:
		return float64(number), true
	case int:
		return float64(number), true
	}
	return 0, false
}
