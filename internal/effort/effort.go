// Package effort scales the tests that try many cases: few of them in every run
// of the tests, and many at night.
package effort

import (
	"os"
	"strconv"
	"testing"
)

// Variable names the factor in the environment: 1 where it is not set, and what
// scripts/test long sets it to.
const Variable = "TANDEM_TEST_EFFORT"

// ByDay is the number of cases of a test that tries so many of them in every run, and so
// many at night.
func ByDay(t testing.TB, day, night int) int {
	t.Helper()
	if Times(t, 1) == 1 {
		return day
	}
	return night
}

// Times is the number of cases of a test that tries count of them in every run.
func Times(t testing.TB, count int) int {
	t.Helper()
	text := os.Getenv(Variable)
	if text == "" {
		return count
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		t.Fatalf("%s must be a number of at least 1, not %q", Variable, text)
	}
	return count * factor
}
