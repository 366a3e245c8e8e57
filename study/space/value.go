package space

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is one parameter's value: a float, an integer, a string or a boolean.
// Values compare with ==. In JSON a float always shows a point or an exponent,
// so that 1.0 and 1 stay apart through every store and client.
type Value struct {
	kind valueKind
	bits uint64 // the float's bits, the integer, or the boolean
	text string
}

type valueKind uint8

const (
	kindNone valueKind = iota
	kindFloat
	kindInt
	kindString
	kindBool
)

// Float returns a floating-point value.
func Float(v float64) Value { return Value{kind: kindFloat, bits: math.Float64bits(v)} }

// Int returns an integer value.
func Int(v int64) Value { return Value{kind: kindInt, bits: uint64(v)} }

// String returns a text value.
func String(v string) Value { return Value{kind: kindString, text: v} }

// Bool returns a boolean value.
func Bool(v bool) Value {
	if v {
		return Value{kind: kindBool, bits: 1}
	}
	return Value{kind: kindBool}
}

// IsZero reports whether the value was never set.
func (v Value) IsZero() bool { return v.kind == kindNone }

// Number returns the value of a float or an integer.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case kindFloat:
		return math.Float64frombits(v.bits), true
	case kindInt:
		return float64(int64(v.bits)), true
	}
	return 0, false
}

// Integer returns the value of an integer.
func (v Value) Integer() (int64, bool) { return int64(v.bits), v.kind == kindInt }

// Text returns the value of a string.
func (v Value) Text() (string, bool) { return v.text, v.kind == kindString }

// String is the value as a person would write it.
func (v Value) String() string {
	switch v.kind {
	case kindFloat:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	case kindInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case kindString:
		return v.text
	case kindBool:
		return strconv.FormatBool(v.bits == 1)
	}
	return ""
}

// MarshalJSON writes the value; a float keeps its point.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.finite() {
		return nil, fmt.Errorf("a parameter cannot be %v", v)
	}
	return v.appendJSON(nil), nil
}

// finite reports whether the value is no infinity and not NaN, which are no JSON.
func (v Value) finite() bool {
	f := math.Float64frombits(v.bits)
	return v.kind != kindFloat || !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (v Value) appendJSON(text []byte) []byte {
	switch v.kind {
	case kindFloat:
		from := len(text)
		text = strconv.AppendFloat(text, math.Float64frombits(v.bits), 'g', -1, 64)
		if !bytes.ContainsAny(text[from:], ".e") {
			text = append(text, '.', '0')
		}
		return text
	case kindInt:
		return strconv.AppendInt(text, int64(v.bits), 10)
	case kindString:
		return appendText(text, v.text)
	case kindBool:
		return strconv.AppendBool(text, v.bits == 1)
	}
	return append(text, "null"...)
}

// appendText appends a JSON string. What encoding/json would escape is left to it.
func appendText(text []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			escaped, err := json.Marshal(s)
			if err != nil { // a string always can be
				escaped = strconv.AppendQuote(nil, s)
			}
			return append(text, escaped...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(data []byte) error {
	text := string(data)
	switch {
	case text == "null":
		*v = Value{}
	case text == "true" || text == "false":
		*v = Bool(text == "true")
	case strings.HasPrefix(text, `"`):
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*v = String(s)
	default:
		if !strings.ContainsAny(text, ".eE") {
			if i, err := strconv.ParseInt(text, 10, 64); err == nil {
				*v = Int(i)
				return nil
			}
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("a parameter must be a number, a string or a boolean, not %s", text)
		}
		*v = Float(f)
	}
	return nil
}
