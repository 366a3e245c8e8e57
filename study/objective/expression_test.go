package objective_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/objective"
)

func compile(t interface{ Fatalf(string, ...any) }, text string) objective.Expression {
	e, err := objective.Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

func TestExpressionsAreComputed(t *testing.T) {
	t.Parallel()
	numbers := map[string]float64{"a": 6, "b": 4, "zero": 0, "edge.latency_ms": 2.5, "very.long.name": 3, "not_a_number": math.NaN(), "vast": 1e308}
	for text, want := range map[string]float64{
		"a":                            6,
		"a / b":                        1.5,
		"a * edge.latency_ms / b":      3.75,
		"3 / 2 * a":                    9, // whole numbers divide like others
		"a - b - 1":                    1,
		"2 ** 3 + a":                   14,
		"a ^ 2":                        36,
		"-a + +b":                      -2,
		"a > b ? a : b":                6,
		"not (a > b) ? 1 : zero + 2":   2,
		"a > b && b >= 4 ? 1 : zero":   1,
		"a < b or a != 6 ? 1 : zero+7": 7,
		"max(a, b, 9) - min(b, a)":     5,
		"min(a)":                       6,
		"sqrt(b) + abs(b - a)":         4,
		"exp(log(a))":                  6,
		"very.long.name * 2":           6,
		"9223372036854775807 + a":      9223372036854775807.0 + 6,
		"a / zero":                     math.NaN(),
		"-a / zero":                    math.NaN(),
		"zero / zero":                  math.NaN(),
		"vast * vast":                  math.NaN(),
		"log(zero)":                    math.NaN(),
		"sqrt(b - a)":                  math.NaN(),
		"max(a, not_a_number)":         math.NaN(),
		"a + absent":                   math.NaN(),
	} {
		if got := compile(t, text).Value(numbers); math.Abs(got-want) > 1e-9 || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestExpressionsNameWhatTheyNeed(t *testing.T) {
	t.Parallel()
	got := compile(t, "max(edge.latency_ms, b) / (a > 0 ? edge.latency_ms : a.b.c)").Names()
	if want := []string{"a", "a.b.c", "b", "edge.latency_ms"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatIsNoFormulaIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                  "is empty",
		"  ":                                "is empty",
		"1 + 2":                             "no metric",
		"a +":                               "cannot be read",
		"a b":                               "cannot be read",
		"(a":                                "cannot be read",
		"a > b":                             "cannot be computed",
		"a + (b > 1)":                       "cannot be computed",
		"a ? 1 : 2":                         "cannot be computed",
		"sqrt(a, b)":                        "cannot be computed",
		"min() + a":                         "cannot be computed",
		"sqrt + a":                          "without its arguments",
		"'text'":                            "more than a formula",
		"a + \"b\"":                         "more than a formula",
		"a % b":                             "uses %",
		"a in [1, 2] ? 1 : 2":               "uses in",
		"a ?? b":                            "uses ??",
		"1..1000000000":                     "uses ..",
		"len(1..a)":                         "calls len",
		"sum([a, b])":                       "more than a formula",
		"now()":                             "calls now",
		"os.exit(1)":                        "calls os.exit",
		"a.sqrt(1)":                         "calls a.sqrt",
		"all([a], # > 1) ? 1 : 2":           "",
		"map(1..9, a)":                      "",
		"let x = a; x":                      "more than a formula",
		"a; b":                              "",
		"[a][0]":                            "no metric's name",
		"{x: a}.x":                          "no metric's name",
		"a?.b":                              "more than a formula",
		"a[0]":                              "no metric's name",
		"a[1:2]":                            "more than a formula",
		"$env":                              "no metric's name",
		"nil":                               "more than a formula",
		"true ? a : a":                      "more than a formula",
		"a matches 'x' ? 1 : 2":             "uses matches",
		"1e999 + a":                         "",
		strings.Repeat("a+", 600) + "a":     "at most 1000",
		strings.Repeat("a+", 300) + "a":     "",
		strings.Repeat("-", 900) + "a":      "",
		strings.Repeat("(", 500) + "a":      "cannot be read",
		"a" + strings.Repeat("a", 200):      "no metric's name",
		"größe * 2":                         "no metric's name",
		"if a > 1 { 1 } else { 2 }":         "",
		"edge['latency ms']":                "no metric's name",
		"a == b":                            "cannot be computed",
		"99999999999999999999999999999 * a": "cannot be read",
	} {
		_, err := objective.Compile(text)
		if err == nil || problem.CodeOf(err) != problem.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, want %q", text, err, says)
		}
	}
}

// formulas draws formulas together with what computes them.
func formulas() *rapid.Generator[formula] {
	leaf := rapid.SampledFrom([]formula{
		{"a", func(v []float64) float64 { return v[0] }},
		{"x.y", func(v []float64) float64 { return v[1] }},
		{"2", func([]float64) float64 { return 2 }},
		{"0.5", func([]float64) float64 { return 0.5 }},
	})
	return rapid.Custom(func(t *rapid.T) formula {
		f := leaf.Draw(t, "first")
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			f = f.step(rapid.IntRange(0, 7).Draw(t, "step"), leaf.Draw(t, "next"))
		}
		return f
	})
}

type formula struct {
	text  string
	value func([]float64) float64
}

func (f formula) step(kind int, g formula) formula {
	a, b := f.value, g.value
	switch kind {
	case 0:
		return formula{"(" + f.text + " + " + g.text + ")", func(v []float64) float64 { return a(v) + b(v) }}
	case 1:
		return formula{"(" + g.text + " - " + f.text + ")", func(v []float64) float64 { return b(v) - a(v) }}
	case 2:
		return formula{"(" + f.text + ") * (" + g.text + ")", func(v []float64) float64 { return a(v) * b(v) }}
	case 3:
		return formula{"(" + g.text + ") / (" + f.text + ")", func(v []float64) float64 { return b(v) / a(v) }}
	case 4:
		return formula{"max(" + f.text + ", " + g.text + ")", func(v []float64) float64 { return math.Max(a(v), b(v)) }}
	case 5:
		return formula{"sqrt(abs(" + f.text + "))", func(v []float64) float64 { return math.Sqrt(math.Abs(a(v))) }}
	case 6:
		return formula{"(" + f.text + " < " + g.text + " ? " + g.text + " : " + f.text + ")", func(v []float64) float64 {
			if a(v) < b(v) {
				return b(v)
			}
			return a(v)
		}}
	default:
		return formula{"-(" + f.text + ")", func(v []float64) float64 { return -a(v) }}
	}
}

func TestExpressionsAgreeWithGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := formulas().Draw(t, "formula")
		e, err := objective.Compile(f.text + " + 0 * a")
		if err != nil {
			if len(f.text) < 500 {
				t.Fatalf("%s: %v", f.text, err)
			}
			return
		}
		v := []float64{rapid.Float64Range(-9, 9).Draw(t, "a"), rapid.Float64Range(-9, 9).Draw(t, "x.y")}
		want := f.value(v)
		if math.IsInf(want, 0) {
			want = math.NaN()
		}
		got := e.Value(map[string]float64{"a": v[0], "x.y": v[1]})
		if math.IsNaN(got) != math.IsNaN(want) || got != want && !math.IsNaN(got) {
			t.Fatalf("%s is %v, want %v", f.text, got, want)
		}
	})
}

// FuzzCompile: nothing makes the reader panic, and what it accepts has names
// and a value that is finite or NaN.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"train_seconds * edge.latency_ms / accuracy", "max(a, 1) ** 2", "a > b ? log(a) : -b", "1..9", "let x = a; x", "a?.b", "#", "((((", "`a`", "a\x00b",
		"filter(1..3, {# > a})", "$env['a']", "0x1p9 + a", "1_000 * a", "a.b.c[0]", "//a", "/* */ a", "\"\\u0000\"", "not not a", "a ?: b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := objective.Compile(text)
		if err != nil {
			if problem.CodeOf(err) != problem.Invalid || err.Error() == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if len(e.Names()) == 0 || !slices.IsSorted(e.Names()) {
			t.Fatalf("%q needs %v", text, e.Names())
		}
		numbers := make(map[string]float64)
		for i, name := range e.Names() {
			if !objective.IsName(name) {
				t.Fatalf("%q needs %q", text, name)
			}
			numbers[name] = float64(i) - 1
		}
		if value := e.Value(numbers); math.IsInf(value, 0) {
			t.Fatalf("%q is %v", text, value)
		}
	})
}
