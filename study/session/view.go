package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// View is the study as clients see it at the time.
func (r *State) View(now time.Time) protocol.StudyView { return r.viewOf(r.Study, r.Trials, now) }

// View is the study as it will be once the transaction is committed.
func (tx *Transaction) View() protocol.StudyView {
	study := tx.Session.Study
	if tx.Study != nil {
		study = *tx.Study
	}
	return tx.Session.viewOf(study, slices.Collect(tx.all()), tx.Now)
}

func (r *State) viewOf(study journal.Study, trials []trial.Trial, now time.Time) protocol.StudyView {
	reason := study.Reason
	if r.Broken != nil && !study.Status.Over() {
		reason = r.Broken.Error()
	}
	return protocol.StudyView{
		ID: study.ID, Name: study.Definition.Name, Owner: cmp.Or(study.Owner, access.Administrators), Status: study.Status, Reason: reason,
		Created: study.Created, Finished: study.Finished, Definition: study.Definition,
		Rungs: r.Ladder, Progress: r.Progress(study, trials, now), Annotation: study.Annotation,
	}
}

func (r *State) Progress(study journal.Study, trials []trial.Trial, now time.Time) protocol.Progress {
	p := ranking.Progress{Study: study, Trials: trials, Ladder: r.Ladder, Spending: r.spending, Use: r.use, Now: now}.Show()
	p.RegretBound = r.regret
	if !study.Status.Over() {
		p.Enqueued = r.Enqueued()
	}
	return p
}

// Enqueued is how many configurations the search is to try before anything of its own.
func (r *State) Enqueued() int {
	queue, ok := r.Method.(search.Queue)
	if !ok {
		return 0
	}
	return queue.Waiting()
}
