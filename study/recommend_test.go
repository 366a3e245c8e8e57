package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// A script that breaks after its first epochs leaves results that look like an
// answer: the recommendation says that the trial, and the others, failed.
func TestTheRecommendationSaysThatItsTrialFailed(t *testing.T) {
	t.Parallel()
	in(func(t *testing.T, w *world) {
		created := w.create("{min: 1, max: 9}", "{min: 1, max: 3}", "trials: 27", "trials: 4")
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			if lease.Rung == 0 {
				w.train(lease)
				continue
			}
			request := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: "exit code 1: ValueError: shapes differ\nstandard error ended with:\nTraceback"}
			if _, err := w.service.Finish(w.ctx, lease.Trial, request); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := w.service.Recommendation(w.ctx, created.Name)
		if err != nil || answer.Best == nil {
			t.Fatalf("%+v, %v", answer, err)
		}
		notes := strings.Join(answer.Notes, "\n")
		for _, said := range []string{
			"measured after 1 epoch", "not on the full budget of 3 epochs",
			"failed after this was measured: exit code 1: ValueError: shapes differ", "of 4 trials failed",
		} {
			if !strings.Contains(notes, said) {
				t.Errorf("the notes lack %q:\n%s", said, notes)
			}
		}
		if strings.Contains(notes, "Traceback") {
			t.Errorf("a note is a sentence:\n%s", notes)
		}
		if _, err := w.service.Extend(w.ctx, created.Name, protocol.ExtendRequest{RetryFailed: true}); err != nil {
			t.Fatal(err)
		}
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		answer, err = w.service.Recommendation(w.ctx, created.Name)
		view, failed := w.view(created.ID), " of them were retried"
		if notes := strings.Join(answer.Notes, "\n"); err != nil || !strings.Contains(notes, fmt.Sprint(view.Progress.Retried)+failed) || view.Progress.Retried == 0 || view.Progress.Retried != view.Progress.Trials[trial.Failed] {
			t.Errorf("%d retried; the notes are\n%s, %v", view.Progress.Retried, notes, err)
		}
	})(t)
}

func TestNothingIsSaidOfFailuresWhereThereAreNone(t *testing.T) {
	t.Parallel()
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		answer, err := w.service.Recommendation(w.ctx, created.Name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(answer.Notes, func(note string) bool { return strings.Contains(note, "failed") }) {
			t.Error(answer.Notes)
		}
	})(t)
}

// What a script measured counts, though it fails afterwards; that is not kept quiet.
func TestAFailureAfterTheLastReportIsSaid(t *testing.T) {
	t.Parallel()
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		for _, outcome := range []protocol.Outcome{protocol.CommandFailed, protocol.BudgetReached} {
			lease := w.mustLease("worker-1")
			w.mustReport(lease, 1)
			request := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome, Reason: "exit code 3: the disk is full"}
			reply, err := w.service.Finish(w.ctx, lease.Trial, request)
			if err != nil || reply.State != trial.Paused {
				t.Fatalf("%+v, %v", reply, err)
			}
			reason := w.trial(lease.Trial).Reason
			said := strings.Contains(reason, "the command failed after its last report: exit code 3: the disk is full")
			if said != (outcome == protocol.CommandFailed) || !strings.HasPrefix(reason, "measured at rung 0") {
				t.Errorf("%s: the reason is %q", outcome, reason)
			}
		}
	})(t)
}
