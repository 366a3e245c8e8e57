package study_test

import (
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func tags(words ...string) trial.Amendment { return trial.Amendment{AddTags: words} }

func noted(text string) trial.Amendment { return trial.Amendment{Note: &text} }

func TestAnnotationsOutliveEverything(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		annotate := func(number int, change trial.Amendment) {
			t.Helper()
			if _, err := w.service.AnnotateTrial(w.ctx, "example", number, change); err != nil {
				t.Fatal(err)
			}
		}
		annotate(0, tags("odd"))
		w.mustReport(lease, 1) // the lease still holds: a note is nothing that a worker loses
		annotate(0, noted("diverges\nat 3"))
		if _, err := w.service.AnnotateStudy(w.ctx, created.ID, tags("paper", "baseline")); err != nil {
			t.Fatal(err)
		}
		check := func(when string) {
			t.Helper()
			view, stored := w.view(created.ID), w.trial(lease.Trial)
			if !slices.Equal(view.Tags, []string{"baseline", "paper"}) || !slices.Equal(stored.Tags, []string{"odd"}) || stored.Note != "diverges\nat 3" {
				t.Errorf("%s: %q of the study, %q %q of the trial", when, view.Tags, stored.Tags, stored.Note)
			}
		}
		check("while it runs")
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		check("when it is over")
		w.start()
		check("after a restart")
		if got, err := w.service.AnnotateStudy(w.ctx, created.ID, trial.Amendment{RemoveTags: []string{"paper"}}); err != nil || !slices.Equal(got.Tags, []string{"baseline"}) {
			t.Errorf("a study that is over: %q, %v", got.Tags, err)
		}
		if ended := w.service.Census().Ended[protocol.StudyStopped]; ended != 0 { // it ended before the restart
			t.Errorf("%d studies have ended by a note", ended)
		}
		w.replays(w.view(created.ID))

		page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Query: "tags = odd"})
		if err != nil || page.Total != 1 || page.Trials[0].Number != lease.Number {
			t.Errorf("%d trials have the tag: %v", page.Total, err)
		}
		if page, err = w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Query: "tags = od"}); err != nil || page.Total != 0 {
			t.Errorf("%d trials have a part of the tag: %v", page.Total, err)
		}
		events, err := w.service.Events(w.ctx, created.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, event := range events {
			if event.Kind == string(journal.Annotated) {
				said++
			}
		}
		if said != 4 {
			t.Errorf("%d events tell of 4 annotations", said)
		}
	})(t)
}

func TestRefusedAnnotationsChangeNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		_, err := w.service.AnnotateTrial(w.ctx, "example", 0, tags("two words"))
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("two words: %v", err)
		}
		if _, err = w.service.AnnotateTrial(w.ctx, "example", 7, tags("fine")); !problem.Is(err, problem.NotFound) {
			t.Errorf("no trial: %v", err)
		}
		if _, err = w.service.AnnotateStudy(w.ctx, "none", tags("fine")); !problem.Is(err, problem.NotFound) {
			t.Errorf("no study: %v", err)
		}
		stranger := access.WithCaller(w.ctx, user("bob"))
		if _, err = w.service.AnnotateStudy(stranger, created.ID, tags("mine")); !problem.Is(err, problem.NotFound) {
			t.Errorf("a stranger: %v", err)
		}
		if stored := w.trial(lease.Trial); len(stored.Tags)+len(w.view(created.ID).Tags) > 0 {
			t.Errorf("something was written: %q", stored.Tags)
		}
	})(t)
}

func TestWhoHasALinkSeesOneStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		shown := w.create()
		hidden := w.create("name: example", "name: hidden")
		reader := access.WithCaller(w.ctx, access.Caller{Sight: access.Shared, Study: shown.ID, Holder: "link:x"})
		for _, ref := range []string{shown.ID, "example"} {
			if view, err := w.service.Study(reader, ref); err != nil || view.ID != shown.ID {
				t.Errorf("%s: %q, %v", ref, view.ID, err)
			}
		}
		for _, ref := range []string{hidden.ID, "hidden", "none"} {
			if _, err := w.service.Study(reader, ref); !problem.Is(err, problem.NotFound) {
				t.Errorf("%s: %v", ref, err)
			}
		}
		if list, err := w.service.Studies(reader); err != nil || len(list) != 1 || list[0].ID != shown.ID {
			t.Errorf("%d studies: %v", len(list), err)
		}
		if err := w.service.CheckArtifact(reader, "ab12"); !problem.Is(err, problem.NotFound) {
			t.Errorf("an artifact: %v", err)
		}
	})(t)
}
