package tree

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// plain says what an unquoted YAML scalar is, by the rules of JSON and YAML
// 1.2, except that numbers may be written as people write them (+1, .5, 1e-4).
// Go and Python libraries differ on the rest: 1e-4 is text to some, yes a
// boolean, 010 an eight. Those are unclear, and refused wherever it matters.
func plain(s string) Kind {
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		return Null
	case slices.Contains([]string{"true", "True", "TRUE", "false", "False", "FALSE"}, s):
		return Boolean
	case isDecimal(s):
		return Number
	case isUnclear(s):
		return Unclear
	}
	return Text
}

// isDecimal reports whether the text is a decimal number without leading zeros.
func isDecimal(s string) bool {
	digits := unsigned(s)
	if len(digits) > 1 && digits[0] == '0' && '0' <= digits[1] && digits[1] <= '9' {
		return false
	}
	return only(s, "0123456789.eE+-") && parses(s)
}

// isUnclear reports whether some version of YAML reads the text as a boolean
// or a number though it is no decimal.
func isUnclear(s string) bool {
	digits := unsigned(s)
	if slices.Contains([]string{"yes", "no", "on", "off", ".inf", ".nan"}, strings.ToLower(digits)) {
		return true
	}
	_, err := strconv.ParseInt(digits, 0, 64) // takes 0x10, 0o17, 0b1 and 1_000
	return err == nil || only(s, "0123456789.eE+-_") && parses(strings.ReplaceAll(s, "_", ""))
}

// unsigned cuts one sign off.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func only(s, characters string) bool {
	return strings.Trim(s, characters) == ""
}

// parses reports whether the text is a number, be it too large for a float64.
func parses(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}
