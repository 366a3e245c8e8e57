package study_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// A server that was started anew knows its boards, also one that does not come back: a study
// may name it for a day after it asked last, and one that goes on has estimates for it.
func TestARestartedServerKnowsItsBoards(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ask := askFor("camera", "board/camera-2")
		def, err := studyfile.Parse([]byte("name: later\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [board/camera-2]}\n"), studyfile.YAML)
		if err != nil {
			t.Fatal(err)
		}
		known := func(when string, want bool) {
			t.Helper()
			list, err := w.service.Boards(w.ctx)
			if refused := w.service.CheckBoards(def); (refused == nil) != want || refused != nil && !strings.Contains(refused.Error(), "has asked this server for work in the last day") {
				t.Errorf("%s a study that names it: %v", when, refused)
			}
			if err != nil || (len(list.Boards) == 1) != want || want && !reflect.DeepEqual(list.Boards[0].Site, ask.Site) {
				t.Errorf("%s the boards are %+v, %v", when, list, err)
			}
		}
		estimated := func(when string, channels int64) {
			t.Helper()
			trained(t, w, w.box(false), channels)
			trials := trialsOf(t, w, "edge")
			if one := trials[len(trials)-1].Inference; one.Device != "board/camera-2" || !one.Estimated() || !(one.LatencySeconds > 0) {
				t.Errorf("%s: %+v", when, one)
			}
		}
		known("before it asked", false)
		for range 3 {
			if _, err := w.service.AskBoard(w.ctx, ask); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour)
		}
		known("before the restart", true)
		edgeStudy(w, "[board/camera-2]")
		estimated("before the restart", 8)
		w.start()
		known("after the restart", true)
		estimated("after the restart", 16)
		time.Sleep(20 * time.Hour)
		w.start()
		known("a day after it asked first", true)
		time.Sleep(3 * time.Hour)
		known("a day after it asked last", false)
		w.start()
		known("after another restart", false)
		estimated("a day after it asked last", 24)
	})(t)
}

// Of two agents that ask as one board, the second is refused, until the first has ended or is
// silent. Another name is another board: the placebo.
func TestASecondAgentOfABoardIsRefused(t *testing.T) {
	in(func(t *testing.T, w *world) {
		asks := func(agent, board string) emu.BoardAsk {
			one := askFor(board, "raspberry-pi-4")
			one.Agent = agent
			return one
		}
		ask := func(when string, one emu.BoardAsk, admitted bool) {
			t.Helper()
			_, err := w.service.AskBoard(w.ctx, one)
			if admitted && err != nil || !admitted && (!problem.Is(err, problem.Conflict) || err.Error() != "another agent asks as board "+one.Board+" already: end it, or start this one with another --name") {
				t.Errorf("%s: %v", when, err)
			}
		}
		first, second := asks("one", "kitchen"), asks("two", "kitchen")
		hold := func(one emu.BoardAsk) (hangUp func()) {
			ctx, cancel := context.WithCancel(w.ctx)
			one.WaitSeconds = 20
			done := make(chan struct{})
			go func() {
				defer close(done)
				if reply, err := w.service.AskBoard(ctx, one); err != nil || reply.Order != nil {
					t.Errorf("%+v, %v", reply, err)
				}
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		ask("the first", first, true)
		ask("the second", second, false)
		ask("with another name", asks("two", "porch"), true)
		ask("the first again", first, true)
		hangUp := hold(first)
		time.Sleep(10 * time.Second)
		ask("while the first waits", second, false)
		hangUp()
		ask("once the first has ended", second, true)
		ask("the first, which was started anew", first, false)
		time.Sleep(6 * time.Second)
		edgeStudy(w, "[raspberry-pi-4]")
		trained(t, w, w.box(false), 8) // which makes an order, and who measures gets none
		second.Busy = true
		hangUp = hold(second)
		time.Sleep(15 * time.Second)
		ask("while the second measures", first, false)
		hangUp()
		ask("before it has reported", first, false)
		time.Sleep(6 * time.Second)
		if reply, err := w.service.AskBoard(w.ctx, first); err != nil || reply.Order == nil {
			t.Errorf("once it is silent: %+v, %v", reply, err)
		}
	})(t)
}
