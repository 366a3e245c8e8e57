package study_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// askFor is the question of a board that is such a device.
func askFor(board, device string) emu.BoardAsk {
	return emu.BoardAsk{Board: board, Device: device, Site: emu.Site{
		Processor: "Cortex-A72", Cores: 4, LowestHertz: 6e8, HighestHertz: 1.5e9, MemoryBytes: 4 << 30, MemoryBytesPerSecond: 4e9, Features: []string{"asimd"},
	}}
}

// measured is what the order takes on a board that needs so long for a sample.
func measured(ask emu.BoardAsk, order *emu.BoardOrder, sample float64) emu.BoardRuns {
	answer := emu.BoardRuns{Board: ask.Board, Device: ask.Device, Site: ask.Site, Key: order.Key}
	for _, cell := range order.Cells {
		seconds := 1e-4 + sample*float64(cell.Batch)/float64(cell.Threads)
		answer.Runs = append(answer.Runs, emu.Run{Batch: cell.Batch, Threads: cell.Threads, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9})
	}
	return answer
}

// trained is a trial that ended with a model that has so many channels.
func trained(t *testing.T, w *world, b *box, channels int64) {
	t.Helper()
	trainedOf(t, w, b, "edge", channels, func() {})
}

// trainedOf is one of such a study, that did something between its model and its result. It
// returns the model's key.
func trainedOf(t testing.TB, w *world, b *box, study string, channels int64, then func()) string {
	t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: study})
	if err != nil || reply.Lease == nil {
		t.Fatal(reply, err)
	}
	report := architecture(t, reply.Lease, channels)
	report.Skeleton = []byte("the model without weights")
	if _, err := w.service.Architecture(w.ctx, reply.Lease.Trial, report); err != nil {
		t.Fatal(err)
	}
	then()
	if _, err := w.service.Report(w.ctx, reply.Lease.Trial, protocol.Report{LeaseEpoch: reply.Lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.finish(reply.Lease, protocol.BudgetReached); err != nil {
		t.Fatal(err)
	}
	return report.Key
}

// faultsOf are the faults that an error names.
func faultsOf(err error) []problem.Field {
	if told, ok := errors.AsType[*problem.Error](err); ok {
		return told.Fields
	}
	return nil
}

// drain has the board measure until there is nothing left.
func drain(t *testing.T, w *world, ask emu.BoardAsk, sample float64) (orders int) {
	t.Helper()
	ctx := access.WithCaller(w.ctx, access.Nobody()) // it sees no study
	for range 40 {
		reply, err := w.service.AskBoard(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Order == nil {
			return orders
		}
		if string(reply.Order.Skeleton) != "the model without weights" {
			t.Fatalf("%+v", reply.Order)
		}
		sent := measured(ask, reply.Order, sample)
		for range 2 { // the answer was lost once
			if _, err := w.service.ReportBoard(ctx, sent); err != nil {
				t.Fatal(err)
			}
		}
		orders++
	}
	t.Fatal("the board is asked without end")
	return 0
}

// A board measures what trials of a study train, while no report waits for it; then the
// trials' values are the measured ones, as the answer is, and stay so.
func TestABoardMeasuresWhatAStudyTrains(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4]")
		b := w.box(false)
		ask := askFor("kitchen", "raspberry-pi-4")
		if orders := drain(t, w, ask, 1); orders != 0 {
			t.Errorf("%d orders of a study without models", orders)
		}
		trained(t, w, b, 8)
		trained(t, w, b, 16)
		for _, one := range trialsOf(t, w, "edge") {
			if !one.Results[0].Estimated || !one.Inference.Estimated() {
				t.Errorf("before a board measured: %+v", one.Results[0])
			}
		}
		const sample = 0.003
		if orders := drain(t, w, ask, sample); orders < 2 || orders > 2*deployment.MostMeasured {
			t.Errorf("%d orders", orders)
		}
		check := func(when string) {
			t.Helper()
			for _, one := range trialsOf(t, w, "edge") {
				want := 1e3 * (1e-4 + sample/4) / 0.5
				got := one.Results[len(one.Results)-1]
				if one.Inference.Estimated() || got.Estimated || float64(got.Values[0]) < want*0.999 || float64(got.Values[0]) > want*1.001 {
					t.Errorf("%s trial %d has %v (estimated %v, %s), want %v", when, one.Number, got.Values[0], got.Estimated, one.Inference.Method, want)
				}
			}
			answer, err := w.service.Recommendation(w.ctx, "edge")
			if err != nil || len(answer.Deployments) != 1 || answer.Deployments[0].Method != "measured" || answer.Deployments[0].Configuration.Cores != 4 {
				t.Errorf("%s: %+v, %v", when, answer.Deployments, err)
			}
		}
		check("measured")
		w.start()
		check("after a restart")
		if orders := drain(t, w, ask, sample); orders != 0 {
			t.Errorf("%d orders for what is known", orders)
		}
	})(t)
}

// A board of the user's own, that no catalogue has: a study names it once it asked.
func TestABoardOfOnesOwn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ask := askFor("camera", "board/camera-2")
		text := "name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [board/camera-2, board/camera-3]}\n"
		def, err := studyfile.Parse([]byte(text), studyfile.YAML)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.AskBoard(w.ctx, ask); err != nil {
			t.Fatal(err)
		}
		if err := w.service.CheckBoards(def); !problem.Is(err, problem.Invalid) || faultsOf(err)[0].Path != "inference.devices[1]" {
			t.Errorf("a board that nobody heard of: %v", err)
		}
		edgeStudy(w, "[board/camera-2]")
		trained(t, w, w.box(false), 8)
		if one := trialsOf(t, w, "edge")[0]; one.Inference.Device != "board/camera-2" || !one.Inference.Estimated() {
			t.Errorf("%+v", one.Inference)
		}
		drain(t, w, ask, 0.01)
		if one := trialsOf(t, w, "edge")[0]; one.Inference.Estimated() {
			t.Errorf("%+v", one.Inference)
		}
		w.start() // the board does not come back: what it said of itself is kept
		if got, err := w.service.Deployments(w.ctx, "edge", 0); err != nil || got.Devices[0].Method != "measured" {
			t.Errorf("%+v, %v", got, err)
		}
		bad := askFor("camera", "board/Camera 2")
		bad.Site.Cores = 0
		if _, err := w.service.AskBoard(w.ctx, bad); len(faultsOf(err)) != 2 {
			t.Errorf("%v", err)
		}
	})(t)
}

// Two boards of a kind share the work; one that left without an answer is not waited for,
// and one that comes back gets its order again. A model that fails is given up.
func TestBoardsShareTheWork(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4]")
		b := w.box(false)
		trained(t, w, b, 8)
		trained(t, w, b, 16)
		one, two := askFor("one", "raspberry-pi-4"), askFor("two", "raspberry-pi-4")
		first, err := w.service.AskBoard(w.ctx, one)
		second, err2 := w.service.AskBoard(w.ctx, two)
		again, err3 := w.service.AskBoard(w.ctx, one)
		if err != nil || err2 != nil || err3 != nil || first.Order.Key == second.Order.Key || again.Order.Key != first.Order.Key {
			t.Fatalf("%v, %v, %v; %v, %v, %v", first, second, again, err, err2, err3)
		}
		three := askFor("three", "raspberry-pi-4")
		if reply, err := w.service.AskBoard(w.ctx, three); err != nil || reply.Order != nil {
			t.Errorf("a third board: %+v, %v", reply, err)
		}
		boards, err := w.service.Boards(w.ctx)
		if err != nil || len(boards.Boards) != 3 || boards.Boards[0].Measuring != first.Order.Key {
			t.Errorf("%+v, %v", boards, err)
		}
		time.Sleep(10 * time.Minute)
		if reply, err := w.service.AskBoard(w.ctx, three); err != nil || reply.Order == nil {
			t.Errorf("after ten minutes of silence: %+v, %v", reply, err)
		}
		failure := emu.BoardRuns{Board: "three", Device: "raspberry-pi-4", Site: three.Site, Failure: "it does not fit"}
		for range 2 {
			for _, key := range []string{first.Order.Key, second.Order.Key} {
				failure.Key = key
				if _, err := w.service.ReportBoard(w.ctx, failure); err != nil {
					t.Error(err)
				}
			}
		}
		if reply, err := w.service.AskBoard(w.ctx, three); err != nil || reply.Order != nil {
			t.Errorf("after two failures of each: %+v, %v", reply, err)
		}
		unknown := measured(one, first.Order, 1)
		unknown.Key = "never-heard-of"
		if _, err := w.service.ReportBoard(w.ctx, unknown); !slices.ContainsFunc(faultsOf(err), func(f problem.Field) bool { return f.Path == "key" }) {
			t.Errorf("runs of an unknown architecture: %v", err)
		}
	})(t)
}
