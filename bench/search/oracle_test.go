package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
)

const smallFile = `
name: small
command: [recorded]
objective: [{metric: accuracy, direction: maximize}]
space: {x: {type: float, low: 1, high: 100, log: true}, n: {type: ordinal, values: [1, 8]}}
budget: {policy: epochs, epochs: {min: 1, max: 9}, eta: 3}
stop: {trials: 1000}
`

// small has four rows: one that starts well and ends in the middle, the best,
// one that diverges behind epoch 3, and the worst.
func small(t *testing.T) *table {
	t.Helper()
	at := func(x float64, n int64) space.Configuration {
		return space.Configuration{"x": space.Float(x), "n": space.Int(n)}
	}
	rows := []space.Configuration{at(1, 1), at(10, 1), at(100, 1), at(100, 8)}
	made, err := newTable("small", smallFile, rows, func(row, epoch int, _ float64) simulator.Measurement {
		e := float64(epoch)
		value := []float64{0.5, 0.1 * e, 0.2 * e, 0.01 * e}[row]
		if row == 2 && epoch > 3 {
			value = math.NaN()
		}
		return simulator.Measurement{Value: value, Seconds: 1}
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func params(x float64, n int64) space.Configuration {
	return space.Configuration{"x": space.Float(x), "n": space.Int(n)}
}

func TestNearestRow(t *testing.T) {
	made := small(t)
	for name, c := range map[string]struct {
		x    float64
		n    int64
		want int
	}{
		"a row itself":            {10, 1, 1},
		"nearer by the logarithm": {40, 1, 2},
		"and below its middle":    {28, 1, 1},
		"the ordinal counts":      {99, 8, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := made.nearest(params(c.x, c.n)); got != c.want {
				t.Errorf("row %d answers for x = %v and n = %d, want %d", got, c.x, c.n, c.want)
			}
		})
	}
}

func TestRegretIsNormalized(t *testing.T) {
	made := small(t)
	if made.best != -0.9 || math.Abs(made.median+0.09) > 1e-9 {
		t.Fatalf("best %v and median %v, as losses", made.best, made.median)
	}
	for name, c := range map[string]struct{ value, want float64 }{
		"best": {0.9, 0}, "better than any": {1, 0}, "median": {0.09, 1}, "worse": {0, 1}, "diverged": {math.NaN(), 1}, "between": {0.495, 0.5},
	} {
		if got := made.regret(c.value); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: the regret of %v is %v, want %v", name, c.value, got, c.want)
		}
	}
}

func TestASessionChargesAndFollowsTheIncumbent(t *testing.T) {
	one := newSession("peer", small(t), 1, 20)
	steps := []struct {
		name     string
		x        float64
		n        int64
		from, to int
		cost     float64
		regret   float64 // at this cost
	}{
		{"the first leads", 1, 1, 1, 1, 1, 0.49382716},
		{"worse at the same budget changes nothing", 100, 8, 1, 1, 2, 0.49382716},
		{"a larger budget leads, even when worse", 100, 8, 2, 2, 3, 1},
		{"the diverging one leads while it has values", 100, 1, 1, 3, 6, 1},
		{"trained again is paid for again", 10, 1, 1, 3, 9, 1},
		{"the full budget", 10, 1, 4, 9, 15, 0},
		{"NaN never leads", 100, 1, 4, 9, 20, 0},
	}
	for _, step := range steps {
		if _, err := one.train(training{Params: params(step.x, step.n), From: step.from, To: step.to, Fraction: 1}); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if one.cost != step.cost {
			t.Errorf("%s: cost %v, want %v", step.name, one.cost, step.cost)
		}
		if got := one.regretAt(step.cost / 20); math.Abs(got-step.regret) > 1e-6 {
			t.Errorf("%s: regret %v, want %v", step.name, got, step.regret)
		}
	}
	if !one.spent() {
		t.Error("the budget is not spent")
	}
	if got := one.regretAt(0.01); got != 1 {
		t.Errorf("before the first epoch the regret is %v", got)
	}
	if got := one.regretAt(6. / 20); got != 1 {
		t.Errorf("what is trained later counts at a cost of 6: regret %v", got)
	}
}

func TestASessionRefuses(t *testing.T) {
	for name, asked := range map[string]training{
		"epoch 0":            {Params: params(1, 1), From: 0, To: 1, Fraction: 1},
		"too many epochs":    {Params: params(1, 1), From: 1, To: 10, Fraction: 1},
		"backwards":          {Params: params(1, 1), From: 3, To: 2, Fraction: 1},
		"a share":            {Params: params(1, 1), From: 1, To: 1, Fraction: 0.5},
		"an unknown value":   {Params: params(1, 2), From: 1, To: 1, Fraction: 1},
		"a parameter missed": {Params: space.Configuration{"x": space.Float(1)}, From: 1, To: 1, Fraction: 1},
	} {
		one := newSession("peer", small(t), 1, 20)
		if _, err := one.train(asked); err == nil || one.cost != 0 {
			t.Errorf("%s: accepted, at a cost of %v", name, one.cost)
		}
	}
	over := newSession("peer", small(t), 1, 20)
	if _, err := over.train(training{Params: params(100.00000001, 1), From: 1, To: 1, Fraction: 1}); err != nil {
		t.Errorf("a number over its end by a rounding error: %v", err)
	}
}

func TestTheHostSpeaksHTTP(t *testing.T) {
	served := &host{waiting: []*session{newSession("peer", small(t), 7, 5), newSession("peer", small(t), 8, 5)}}
	server := httptest.NewServer(served)
	defer server.Close()
	ask := func(path, body string) (int, string) {
		t.Helper()
		response, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, strings.TrimSpace(string(text))
	}
	if status, _ := ask("/train", `{}`); status != http.StatusBadRequest {
		t.Errorf("training without a job is answered %d", status)
	}
	_, text := ask("/next", `{}`)
	var told job
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Seed != 7 || told.MaxEpochs != 9 || len(told.Parameters) != 2 {
		t.Errorf("the first job is %s (%v)", text, err)
	}
	if _, text = ask("/train", `{"params": {"x": 100.0, "n": 1}, "from": 1, "to": 4, "fraction": 1}`); text != `{"losses":[-0.2,-0.4,-0.6000000000000001,null],"done":false}` {
		t.Errorf("four epochs are answered %s", text)
	}
	if status, _ := ask("/next", `{}`); status != http.StatusBadRequest {
		t.Errorf("a job left before its end is answered %d", status)
	}
	if _, text = ask("/train", `{"params": {"x": 1.0, "n": 1}, "from": 1, "to": 4, "fraction": 1}`); text != `{"losses":[-0.5],"done":true}` {
		t.Errorf("the last epoch is answered %s", text)
	}
	if _, text = ask("/train", `{"params": {"x": 1.0, "n": 1}, "from": 1, "to": 4, "fraction": 1}`); text != `{"losses":[],"done":true}` || len(served.done) != 1 {
		t.Errorf("after the end it is %s, and %d jobs are done", text, len(served.done))
	}
	if _, text = ask("/next", `{}`); !strings.Contains(text, `"seed":8`) {
		t.Errorf("the second job is %s", text)
	}
}

// The peer that needs nothing but Python runs its jobs as the others do.
func TestAPeersScriptRuns(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here to run a peer's script with")
	}
	made := small(t)
	jobs := []*session{newSession("random-full", made, 1, 30), newSession("random-full", made, 2, 30)}
	done, err := peer{name: "random-full", script: "random_full.py"}.run(t.Context(), python, jobs, time.Minute)
	if err != nil || len(done) != 2 {
		t.Fatalf("%d of 2 jobs are done: %v", len(done), err)
	}
	for _, one := range done {
		if len(one.marks) == 0 || one.marks[len(one.marks)-1].cost > 30 {
			t.Errorf("seed %d has the marks %v", one.seed, one.marks)
		}
	}
	_, err = peer{name: "broken", script: "missing.py"}.run(t.Context(), python, jobs, time.Minute)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "missing.py") {
		t.Errorf("a script that cannot start is reported as %v", err)
	}
}

func atTheEnd(f finished) float64 { return f.regretAt(1) }

func TestTheReportComparesAtCommonPlaces(t *testing.T) {
	run := func(method string, seed uint64, regret float64) finished {
		return finished{method: method, problem: "small", seed: seed, budget: 10, marks: []mark{{1, 1, regret}}}
	}
	r := report{tables: []*table{small(t)}}
	for seed := range uint64(4) {
		r.runs = append(r.runs, run("a", seed+1, 0.1), run("b", seed+1, 0.2), run("c", seed+1, 0.1))
	}
	r.runs = append(r.runs, run("slow", 1, 0))
	for seed := range uint64(4) {
		many := run("many", seed+1, 0)
		many.workers = 8
		r.runs = append(r.runs, many)
	}
	methods, average, places := r.averageRanks(atTheEnd)
	if !slices.Equal(methods, []string{"a", "b", "c"}) || !slices.Equal(average, []float64{1.5, 3, 1.5}) || places != 4 {
		t.Errorf("%v have the ranks %v over %d runs", methods, average, places)
	}
	if c := r.compare("a", "b", atTheEnd); c != (comparison{4, 0, 0.125, 0.125}) {
		t.Errorf("a against b: %+v", c)
	}
	if c := r.compare("a", "slow", atTheEnd); c != (comparison{0, 1, 1, 1}) {
		t.Errorf("a against slow: %+v", c)
	}
	if c := r.compare("a", "b", func(f finished) float64 { return f.regretAt(0.05) }); c.better+c.worse != 0 {
		t.Error("there is a difference before anything was measured")
	}
	timed := r.runs[0]
	timed.marks = []mark{{1, 5, 0.5}, {2, 7, 0.25}}
	for seconds, want := range map[float64]float64{4: 1, 5: 0.5, 6.9: 0.5, 8: 0.25} {
		if got := timed.regretBy(seconds); got != want {
			t.Errorf("after %v s the regret is %v, want %v", seconds, got, want)
		}
	}
	var printed bytes.Buffer
	r.print(&printed)
	for _, line := range []string{
		"| b | 4 | 0.200 (0.200 to 0.200) | 0.200 (0.200 to 0.200) | 0.200 (0.200 to 0.200) |",
		"| a | 1.50 | 1.50 | 1.50 |", "| b | 4, 0, p = 1 (1) | 4, 0, p = 1 (1) | 4, 0, p = 1 (1) |", "| regret, a against: better, worse, p by space and seed (by run; both Holm)",
	} {
		if !strings.Contains(printed.String(), line) {
			t.Errorf("%q is not in the report:\n%s", line, printed.String())
		}
	}
}

func TestGoptunaSpendsItsBudget(t *testing.T) {
	t.Parallel()
	made := small(t)
	jobs := []*session{newSession("goptuna", made, 1, 30), newSession("goptuna", made, 2, 30)}
	done, err := peer{name: "goptuna"}.run(t.Context(), "no-python", jobs, time.Minute)
	if err != nil || len(done) != 2 {
		t.Fatalf("%d of 2 jobs are done: %v", len(done), err)
	}
	for at, one := range done {
		if len(one.marks) == 0 || !jobs[at].spent() {
			t.Errorf("seed %d has the marks %v and spent %v", one.seed, one.marks, jobs[at].cost)
		}
	}
	if slices.Equal(done[0].marks, done[1].marks) {
		t.Errorf("two seeds do the same: %v", done[0].marks)
	}
}

// recordedTables reads the tables, or skips the test where they are absent.
func recordedTables(t *testing.T) []*table {
	t.Helper()
	folder := dataFolder()
	if os.Getenv("TANDEM_DATA") == "" {
		folder = filepath.Join("..", "..", folder) // a test runs in its package's folder
	}
	tables, err := loadTables(folder)
	if os.IsNotExist(err) || err != nil && strings.HasPrefix(err.Error(), errNoData.Error()) {
		t.Skip(errNoData)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestRecordedTables(t *testing.T) {
	rows := map[string]int{
		"fmnist": 157, "alexnet": 512, "taskset-lstm128-avg-bs64": 1000, "taskset-lstm128-bs64": 1000, "taskset-lstm128-embed128-bs64": 1000,
	}
	for _, made := range recordedTables(t) {
		t.Run(made.name, func(t *testing.T) {
			if want := rows[made.name]; len(made.points) != want {
				t.Errorf("%d rows, want %d", len(made.points), want)
			}
			if !(made.best < made.median) {
				t.Errorf("the best row has %v, the median one %v", made.best, made.median)
			}
			for row, point := range made.points {
				if made.nearest(made.cube.Decode(point)) != row {
					t.Errorf("row %d does not answer for itself", row)
				}
				for _, rung := range made.definition.Ladder() {
					if m := made.at(row, rung.Budget.Epochs, rung.Budget.DataFraction); !(m.Seconds > 0) {
						t.Fatalf("row %d takes %v s at %+v", row, m.Seconds, rung.Budget)
					}
				}
			}
			for _, workers := range []int{1, 8} {
				first, err := runStudy(context.Background(), made, 5*float64(made.maxEpochs()), setup{method: "bohb", workers: workers, seed: 3})
				if err != nil {
					t.Fatal(err)
				}
				again, err := runStudy(context.Background(), made, 5*float64(made.maxEpochs()), setup{method: "bohb", workers: workers, seed: 3})
				if err != nil || !slices.Equal(first.marks, again.marks) {
					t.Errorf("two equal studies differ (%v):\n%v\n%v", err, first.marks, again.marks)
				}
				if regret := first.regretAt(1); !(regret >= 0 && regret <= 1) || len(first.marks) == 0 {
					t.Errorf("the regret is %v after %d incumbents", regret, len(first.marks))
				}
			}
		})
	}
}

func TestAbsentTablesAreSaidPlainly(t *testing.T) {
	_, err := loadTables(t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), errNoData.Error()) {
		t.Errorf("an empty folder is answered with %v", err)
	}
}
