package problem_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
)

func TestTyposAreCounted(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"search", "search", 0}, {"", "abc", 3}, {"abc", "", 3},
		{"serach", "search", 1}, {"seach", "search", 1}, {"searrch", "search", 1}, {"sesrch", "search", 1},
		{"ca", "abc", 3}, // a swap is not edited again
		{"jetson-tx1", "jetson-tx2", 1}, {"kitten", "sitting", 3},
	} {
		if got := problem.Typos(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, not %d", test.a, test.b, got, test.want)
		}
		if forth, back := problem.Typos(test.a, test.b), problem.Typos(test.b, test.a); forth != back {
			t.Errorf("%q to %q takes %d, and back %d", test.a, test.b, forth, back)
		}
	}
}
