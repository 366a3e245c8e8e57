package query_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/query"
)

// row is one with numbers, texts and tags; what it has not is missing.
type row struct {
	numbers map[string]float64
	texts   map[string]string
	tags    []string
}

func number(name string) query.Field[row] {
	return query.Field[row]{Of: func(r row) query.Value {
		value, has := r.numbers[name]
		return query.NumberIf(has, value)
	}}
}

func text(name string, choices ...string) query.Field[row] {
	return query.Field[row]{Of: func(r row) query.Value { return query.Text(r.texts[name]) }, Texts: true, Choices: choices}
}

func fields(name string) (query.Field[row], error) {
	seconds := number("seconds")
	seconds.Seconds = true
	batch := number("batch")
	batch.Choices = []string{"32", "64", "auto"}
	batch.Of = func(r row) query.Value {
		if value, has := r.numbers["batch"]; has {
			return query.Number(value)
		}
		return query.Text(r.texts["batch"])
	}
	known := map[string]query.Field[row]{
		"number": number("number"), "lr": number("lr"), "loss": number("loss"), "params.lr": number("lr"), "weight decay": number("decay"), "order": number("number"),
		"state": text("state", "failed", "completed", "paused"), "worker": text("worker"), "seconds": seconds, "batch": batch,
		"tags": {Of: func(r row) query.Value { return query.Text(strings.Join(r.tags, " ")) }, List: func(r row) []string { return r.tags }, Texts: true},
	}
	if name == "" {
		return query.Field[row]{List: func(r row) []string { return append(r.tags, r.texts["state"], r.texts["worker"]) }}, nil
	}
	field, ok := known[name]
	if !ok {
		return field, errors.New("is no field: " + query.Meant(name, []string{"number", "lr", "loss"}))
	}
	return field, nil
}

func rows() []row {
	return []row{
		{numbers: map[string]float64{"number": 0, "lr": 0.1, "loss": 0.5, "seconds": 30, "batch": 32}, texts: map[string]string{"state": "completed", "worker": "gpu-1"}},
		{numbers: map[string]float64{"number": 1, "lr": 0.01, "loss": math.NaN(), "seconds": 700}, texts: map[string]string{"state": "failed", "worker": "GPU-2", "batch": "auto"}, tags: []string{"odd", "keep me"}},
		{numbers: map[string]float64{"number": 2, "lr": 0.2, "decay": -1e-3, "batch": 64}, texts: map[string]string{"state": "failed"}},
		{numbers: map[string]float64{"number": 3, "loss": 0.25, "seconds": 90, "decay": 0}, texts: map[string]string{"state": "paused", "worker": "gpu-1"}, tags: []string{"odd"}},
		{numbers: map[string]float64{"number": 4, "lr": 0.1, "loss": math.Inf(1), "seconds": 3600}, texts: map[string]string{"state": "completed"}},
	}
}

func asked(t interface{ Fatalf(string, ...any) }, text string) string {
	q, err := query.Parse(text, fields)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var numbers []string
	for _, one := range q.Apply(rows()) {
		numbers = append(numbers, fmt.Sprint(one.numbers["number"]))
	}
	return strings.Join(numbers, " ")
}

func TestQueriesChooseAndOrder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "0 1 2 3 4",
		" \t\n":                                 "0 1 2 3 4",
		"state = failed":                        "1 2",
		"failed":                                "1 2",
		"Fail gpu-2":                            "1",
		"not odd and (gpu or 'keep me')":        "0",
		"FAILED order by number desc limit 1":   "2",
		"STATE = failed":                        "", // see below
		"where state == 'failed'":               "1 2",
		"state != failed and lr > 0.01":         "0 4",
		"state <> failed AND lr >= 1e-1":        "0 4",
		"lr > .1 or loss < 0.5":                 "2 3",
		"lr=0.1":                                "0 4",
		"lr = 0.1 or lr = 0.2 and loss > 1":     "0 4", // "and" binds first
		"(lr = 0.1 or lr = 0.2) and loss=inf":   "4",
		"not state = failed and not (lr = 0.1)": "3",
		"params.lr in (0.01, 0.2)":              "1 2",
		"state not in (failed, paused)":         "0 4",
		`"weight decay" < 0`:                    "2",
		`"weight decay" is not null`:            "2 3",
		"'weight decay' = -0.001":               "2",
		"lr is null":                            "3",
		"loss is nan":                           "1",
		"loss is not nan":                       "0 2 3 4",
		"loss != 0.5":                           "1 2 3 4", // the opposite of =, also for NaN and nothing
		"loss < 99":                             "0 3",     // neither NaN nor nothing
		"not loss < 99":                         "1 2 4",
		"loss >= -inf":                          "0 3 4",
		"seconds > 10m":                         "1 4",
		"seconds <= 1m30s":                      "0 3",
		"seconds = 90":                          "3",
		"batch = 32.0":                          "0",
		"batch = auto":                          "1",
		"batch > 40":                            "2",
		"tags = odd":                            "1 3",
		"tags = 'keep me'":                      "1",
		"tags in (none, odd)":                   "1 3",
		"tags != odd":                           "0 2 4",
		"tags is null":                          "0 2 4",
		"tags contains KEEP":                    "1",
		"worker contains gpu":                   "0 1 3",
		"worker not contains gpu":               "2 4",
		"worker = gpu-1 order by number desc":   "3 0",
		"order by loss":                         "3 0 4 1 2", // NaN behind every value, nothing last
		"order by loss desc":                    "4 0 3 1 2",
		"order by loss desc limit 2":            "4 0",
		"order by state asc, lr desc":           "0 4 2 1 3",
		"order by batch":                        "0 2 1 3 4", // numbers before texts, equal ones as before
		"limit 3":                               "0 1 2",
		`"order" > 2 order by "order" desc`:     "4 3",
		"state = completed limit 99":            "0 4",
		strings.Repeat("(", 50) + "lr = 0.1" + strings.Repeat(")", 50): "0 4",
	} {
		if text == "STATE = failed" { // names are those of the study, to the letter
			if _, err := query.Parse(text, fields); err == nil {
				t.Errorf("%s is read", text)
			}
			continue
		}
		if got := asked(t, text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAFaultNamesItsPlaceItsTokenAndTheFix(t *testing.T) {
	t.Parallel()
	long := "lr in (" + strings.Repeat("1,", 200) + "1)"
	for text, want := range map[string][]string{
		"lrr > 1":                      {"at character 1, ", "did you mean lr?", "(got lrr)"},
		"lr > 0.1 and nothing = 1":     {"at character 14, ", "write one of number, lr, loss", "(got nothing)"},
		"state = faild":                {"at character 9, ", "did you mean failed?", "(got faild)"},
		"state = 3":                    {"at character 9, ", "write one of failed, completed, paused"},
		"lr > abc":                     {"at character 6, ", "abc is no number", "0.01"},
		"lr = nan":                     {"at character 6, ", "is nan"},
		"lr = null":                    {"at character 6, ", "is null"},
		"seconds > soon":               {"at character 11, ", "10m"},
		"lr >":                         {"at character 5, ", "the query ends", "a value"},
		"lr":                           {"at character 3, ", "behind lr"},
		"lr ~ 1":                       {"at character 4, ", "write contains"},
		"lr = 1 && loss = 1":           {"at character 8, ", "write and"},
		"lr = 1 loss = 1":              {"at character 8, ", "and, or, order by", "(got loss)"},
		"0.01 < lr":                    {"at character 1, ", "lr > 0.01", "(got 0.01)"},
		"(lr = 1":                      {"at character 8, ", "the query ends", ")"},
		"lr = 1)":                      {"at character 7, "},
		"lr in 1":                      {"at character 7, ", "in (1, 2)"},
		"lr in (1":                     {"at character 9, ", "comma"},
		"lr in ()":                     {"at character 8, ", "a value"},
		"lr is 1":                      {"at character 7, ", "null, nan"},
		"lr not 1":                     {"at character 8, ", "in or contains"},
		"state > failed":               {"at character 1, ", "no order"},
		"lr contains 1":                {"at character 1, ", "has numbers"},
		"worker = 'gpu":                {"at character 10, ", "close it with '"},
		"worker = naïve and wörker= 1": {"at character 20, ", "(got wörker)"},
		"order lr":                     {"at character 7, ", "by"},
		"order by":                     {"at character 9, ", "the name of a field"},
		"limit 0":                      {"at character 7, ", "limit 20"},
		"limit 2 order by lr":          {"at character 9, ", "nothing more"},
		"and = 1":                      {"at character 1, ", "quote"},
		"where":                        {"at character 6, ", "the query ends"},
		"lr = 1; drop table":           {"at character 7, ", "(got ;)"},
		strings.Repeat("(", 51) + "lr = 0.1" + strings.Repeat(")", 51): {"at character 51, ", "more than 50"},
		strings.Repeat("not ", 51) + "lr = 0.1":                        {"at character 201, ", "more than 50"},
		long:                                                           {"more than 200 values"},
		strings.Repeat("x", 2001):                                      {"at most 2000 bytes, not 2001"},
		"state = " + strings.Repeat("y", 90):                           {"(got " + strings.Repeat("y", 40) + "...)"},
	} {
		_, err := query.Parse(text, fields)
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, part := range append(want, "query: at character ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, without %q", text, err, part)
			}
		}
	}
}

// Whatever the query, rows keep their order where it says nothing, and none is made up.
func TestAnOrderIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type pair struct {
			key   float64
			place int
		}
		keys := rapid.SliceOf(rapid.SampledFrom([]float64{math.NaN(), -1, 0, 1, math.Inf(1)})).Draw(t, "keys")
		list := make([]pair, len(keys))
		for i, key := range keys {
			list[i] = pair{key, i}
		}
		descending := rapid.Bool().Draw(t, "descending")
		query.Sort(list, query.Key[pair]{Of: func(p pair) query.Value { return query.Number(p.key) }, Descending: descending})
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			switch {
			case math.IsNaN(a.key) && !math.IsNaN(b.key):
				t.Fatalf("NaN stands before %v", b.key)
			case a.key == b.key || math.IsNaN(a.key):
				if a.place > b.place {
					t.Fatal("equal rows changed their order")
				}
			case !math.IsNaN(b.key) && a.key > b.key != descending:
				t.Fatalf("%v stands before %v", a.key, b.key)
			}
		}
	})
}

func FuzzQueriesAreReadOrRefused(f *testing.F) {
	for _, text := range []string{"state = failed and lr > 0.01 order by loss desc limit 20", `not ("weight decay" is null or tags in (a, 'b c'))`, "seconds >= 1h", "((", "'", "\xff", "lr = é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text, fields)
		if err != nil {
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "at character ") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		first := q.Apply(rows())
		again := q.Apply(rows())
		same := func(a, b row) bool { return a.numbers["number"] == b.numbers["number"] }
		if !slices.EqualFunc(first, again, same) || len(first) > len(rows()) {
			t.Fatalf("%q: %v, then %v", text, first, again)
		}
		// What it keeps, its opposite does not.
		if opposite, err := query.Parse("not ("+text+")", fields); err == nil && len(opposite.Apply(rows()))+len(first) != len(rows()) {
			t.Fatalf("%q keeps %d of %d rows, and its opposite %d", text, len(first), len(rows()), len(opposite.Apply(rows())))
		}
	})
}
