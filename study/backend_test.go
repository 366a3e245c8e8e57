package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

// boundedStudy is of a model that shall be deployed within a latency.
func boundedStudy(w *world, more string) {
	w.create("name: example", "name: edge\ninference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 4}, objective: {metric: latency, constraint: latency_ms <= 5}"+more+"}")
}

// backends adds one of each device: cheap, dear and free.
func backends(t *testing.T, w *world) {
	t.Helper()
	for name, offer := range map[string]backend.BackendOffer{
		"cheap": {Device: "board/slow", PricePerHour: 0.1}, "dear": {Device: "board/fast", PricePerHour: 20}, "middle": {Device: "board/good", PricePerHour: 0.5, Cores: 2},
	} {
		if _, err := w.service.SetBackend(w.ctx, name, offer); err != nil {
			t.Fatal(err)
		}
	}
}

func choose(t *testing.T, w *world, priority string) backend.BackendChoice {
	t.Helper()
	answer, err := w.service.ChooseBackend(w.ctx, "edge", nil, priority)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// optionOf is the option of the backend.
func optionOf(answer backend.BackendChoice, name string) backend.BackendOption {
	return answer.Options[slices.IndexFunc(answer.Options, func(o backend.BackendOption) bool { return o.Backend.Name == name })]
}

// Boards measure the recommended model on the backends, and the cheapest that keeps the
// bound is chosen: not the cheaper one that does not keep it, and none by estimates alone.
func TestABackendIsChosenByWhatWasMeasured(t *testing.T) {
	in(func(t *testing.T, w *world) {
		boundedStudy(w, "")
		backends(t, w)
		b := w.box(false)
		trained(t, w, b, 8)
		answer := choose(t, w, "")
		if answer.Chosen != "" || answer.Likely != "" || optionOf(answer, "cheap").State != backend.Unknown {
			t.Errorf("with boards that never asked: %+v", answer)
		}
		slow, fast, good := askFor("a", "board/slow"), askFor("b", "board/fast"), askFor("c", "board/good")
		for _, ask := range []emu.BoardAsk{slow, fast, good} {
			if _, err := w.service.AskBoard(access.WithCaller(w.ctx, access.Nobody()), ask); err != nil {
				t.Fatal(err)
			}
		}
		if answer = choose(t, w, ""); answer.Chosen != "" || !strings.Contains(answer.Why, "No backend was measured") {
			t.Errorf("without a measurement: %+v", answer)
		}
		for _, o := range answer.Options {
			if o.Measured || !o.Wanted || o.Deployment == nil || !strings.HasPrefix(o.Deployment.Method, "estimate") || o.Deployment.LatencySeconds.Low >= o.Deployment.LatencySeconds.High {
				t.Errorf("an estimate without a label or a band: %+v", o)
			}
		}
		for ask, sample := range map[*emu.BoardAsk]float64{&slow: 0.1, &fast: 0.002, &good: 0.006} {
			if orders := drain(t, w, *ask, sample); orders == 0 {
				t.Errorf("%s was asked for nothing", ask.Device)
			}
			time.Sleep(time.Minute) // an answer is given again for so long
		}
		check := func(when string) {
			t.Helper()
			answer := choose(t, w, "")
			if answer.Chosen != "middle" || answer.Likely != "" || optionOf(answer, "cheap").State != backend.Misses || !optionOf(answer, "middle").Measured {
				t.Errorf("%s: %+v", when, answer)
			}
			if got := optionOf(answer, "middle").Deployment.Configuration; got.Cores > 2 {
				t.Errorf("%s the backend of two cores runs with %d", when, got.Cores)
			}
		}
		check("measured")
		if answer := choose(t, w, "latency=1"); answer.Chosen != "dear" {
			t.Errorf("by latency it is %s", answer.Chosen)
		}
		w.start()
		check("after a restart")
		for _, ask := range []emu.BoardAsk{slow, fast, good} {
			if orders := drain(t, w, ask, 1); orders != 0 {
				t.Errorf("%d more orders for %s", orders, ask.Device)
			}
		}
		if err := w.service.RemoveBackend(w.ctx, "middle"); err != nil {
			t.Fatal(err)
		}
		if answer := choose(t, w, ""); answer.Chosen != "dear" || len(answer.Options) != 2 {
			t.Errorf("without the cheaper one: %+v", answer)
		}
	})(t)
}

// Without a backend boards are asked for nothing that no study named.
func TestWithoutBackendsNothingIsMeasuredForThem(t *testing.T) {
	in(func(t *testing.T, w *world) {
		boundedStudy(w, "")
		trained(t, w, w.box(false), 8)
		if orders := drain(t, w, askFor("a", "board/slow"), 1); orders != 0 {
			t.Errorf("%d orders", orders)
		}
		if answer := choose(t, w, ""); answer.Chosen != "" || !strings.Contains(answer.Why, "tandem backend add") {
			t.Errorf("%+v", answer)
		}
	})(t)
}

// A backend that takes fewer requests than come is never chosen, and not measured.
func TestABackendMayBoundTheRate(t *testing.T) {
	in(func(t *testing.T, w *world) {
		boundedStudy(w, ", scenario: {server: {rate: 100/s, p99_ms: 50}}")
		for name, rate := range map[string]float64{"bounded": 50, "open": 0} {
			if _, err := w.service.SetBackend(w.ctx, name, backend.BackendOffer{Device: "board/" + name, PricePerHour: rate / 100, MaxRate: rate}); err != nil {
				t.Fatal(err)
			}
		}
		trained(t, w, w.box(false), 8)
		if orders := drain(t, w, askFor("a", "board/bounded"), 0.001); orders != 0 {
			t.Errorf("%d orders for a backend that is ruled out", orders)
		}
		drain(t, w, askFor("b", "board/open"), 0.001)
		answer := choose(t, w, "")
		if answer.Chosen != "open" || optionOf(answer, "bounded").State != backend.Misses || optionOf(answer, "open").Deployment.Batching == nil {
			t.Errorf("%+v", answer)
		}
	})(t)
}

func TestBackendsAreChecked(t *testing.T) {
	in(func(t *testing.T, w *world) {
		for _, one := range []struct {
			name, field string
			offer       backend.BackendOffer
		}{
			{"Kitchen", "backend", backend.BackendOffer{Device: "raspberry-pi-4"}},
			{"kitchen", "device", backend.BackendOffer{Device: "a-toaster"}},
			{"kitchen", "device", backend.BackendOffer{Device: "board/A"}},
			{"kitchen", "cores", backend.BackendOffer{Device: "raspberry-pi-4", Cores: 5}},
			{"kitchen", "memory_mib", backend.BackendOffer{Device: "raspberry-pi-4", MemoryMiB: 1 << 20}},
		} {
			if _, err := w.service.SetBackend(w.ctx, one.name, one.offer); len(faultsOf(err)) != 1 || faultsOf(err)[0].Path != one.field {
				t.Errorf("%+v: %v", one, err)
			}
		}
		if err := w.service.RemoveBackend(w.ctx, "kitchen"); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
		boundedStudy(w, "")
		if _, err := w.service.ChooseBackend(w.ctx, "edge", nil, ""); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
		trained(t, w, w.box(false), 8)
		for _, bad := range []string{"beauty=1", "cost=0", "cost=NaN", "cost,cost", ","} {
			if _, err := w.service.ChooseBackend(w.ctx, "edge", nil, bad); len(faultsOf(err)) != 1 {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})(t)
}

// However many studies there are, boards are asked for the models of the newest alone. A
// new backend is seen at once, a new recommendation within ten seconds.
func TestBackendsAreJudgedOfTheNewestStudies(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b, ask := w.box(false), askFor("c", "board/good")
		for i := range 5 {
			name := fmt.Sprintf("study-%d", i)
			w.create("name: example", "name: "+name+"\ninference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 4}}")
			trainedOf(t, w, b, name, int64(i)+1, func() {})
			time.Sleep(time.Second)
		}
		if orders := drain(t, w, ask, 0.001); orders != 0 {
			t.Fatalf("%d orders without a backend", orders)
		}
		for i := range 64 { // the most there may be: two studies are judged
			if _, err := w.service.SetBackend(w.ctx, fmt.Sprintf("good-%d", i), backend.BackendOffer{Device: "board/good", PricePerHour: 1}); err != nil {
				t.Fatal(err)
			}
		}
		keys := map[string]bool{}
		for {
			reply, err := w.service.AskBoard(w.ctx, ask)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Order == nil {
				break
			}
			keys[reply.Order.Key] = true
			if _, err := w.service.ReportBoard(w.ctx, measured(ask, reply.Order, 0.001)); err != nil {
				t.Fatal(err)
			}
		}
		if len(keys) != 2 || !keys["architecture-4"] || !keys["architecture-5"] {
			t.Errorf("asked for %v, want the models of the two newest studies", keys)
		}
		w.create("name: example", "name: edge\ninference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 4}}")
		told := trainedOf(t, w, b, "edge", 9, func() {
			if orders := drain(t, w, ask, 0.001); orders != 0 {
				t.Errorf("%d orders for a trial that was not measured", orders)
			}
		})
		time.Sleep(10 * time.Second)
		if reply, err := w.service.AskBoard(w.ctx, ask); err != nil || reply.Order == nil || reply.Order.Key != told {
			t.Errorf("ten seconds after its first result: %+v, %v", reply.Order, err)
		}
	})(t)
}
