package study

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/dataset"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/team"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// queries show studies and trials.
type queries struct {
	parts
	logs     journal.LogStore
	datasets *dataset.Catalogue
	teams    *team.Directory
	// unmeasured says that a study's minutes of measuring are spent.
	unmeasured func(context.Context, inference.Wanted) (string, error)
}

// Studies returns every study that the caller sees, the newest first.
func (s *queries) Studies(ctx context.Context) ([]protocol.StudyView, error) {
	stored, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	caller, views := access.CallerOf(ctx), make([]protocol.StudyView, 0, len(stored))
	for _, one := range stored {
		if !s.sessions.Allows(caller, one.ID, one.Owner) {
			continue
		}
		view, err := s.sessions.Summary(ctx, one.ID)
		if problem.Is(err, problem.NotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		views = append(views, s.shared(caller, view))
	}
	return views, nil
}

// shared is the view of the study with how the caller comes to see it.
func (s *queries) shared(caller access.Caller, view protocol.StudyView) protocol.StudyView {
	if caller.Sight == access.Shared { // who came by a link hears nothing of workers and users
		return view
	}
	view.Groups = s.teams.SharedWith(view.ID)
	if role := s.sessions.RoleOf(caller, view.ID); role < access.NoRole && view.Owner != caller.Owner {
		view.Role = role.String()
	}
	return view
}

// Study returns one study by id or name.
func (s *queries) Study(ctx context.Context, ref string) (protocol.StudyView, error) {
	var want inference.Wanted
	view, err := registry.Look(ctx, s.sessions, ref, func(r *session.Session) (protocol.StudyView, error) {
		view := r.View(s.options.Now())
		want = inference.WantedBy(r.Study, r.Trials)
		if access.CallerOf(ctx).Sight != access.Shared {
			view.Waits = s.waits(r)
			if !view.Status.Over() {
				view.Useless = s.allocator.Useless(r.Owner(), view.Definition.Preempt)
			}
		}
		return s.shared(access.CallerOf(ctx), view), nil
	})
	if err == nil {
		view.Unmeasured, err = s.unmeasured(ctx, want)
	}
	return view, err
}

// TrialDetail returns one trial with its reports and its history.
func (s *queries) TrialDetail(ctx context.Context, ref string, number int) (protocol.TrialDetail, error) {
	var expected *protocol.GPUExpected
	ranked, err := registry.Look(ctx, s.sessions, ref, func(r *session.Session) (protocol.RankedTrial, error) {
		t, err := r.Trial(number)
		if err != nil {
			return protocol.RankedTrial{}, err
		}
		expected = s.gpuExpected(ctx, r, t)
		return ranking.RankOf(number, r.Trials, r.Study.Definition.Objectives), nil
	})
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	ranked.Logged = downloads(ctx, ranked.Trial)
	detail, t := protocol.TrialDetail{Trial: ranked, GPUExpected: expected}, ranked.Trial
	if detail.Reports, err = s.store.Reports(ctx, t.ID); err != nil {
		return protocol.TrialDetail{}, err
	}
	events, err := s.store.TrialEvents(ctx, t.Study, t.ID)
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	detail.Events = outward(events)
	return detail, nil
}

// Look returns a copy of the study, once all of it is durable.
func (s *queries) Look(ctx context.Context, ref string) (journal.View, error) {
	return registry.Look(ctx, s.sessions, ref, func(r *session.Session) (journal.View, error) { return r.Copy(), nil })
}

// Log returns what the trial's command printed.
func (s *queries) Log(ctx context.Context, ref string, number int) (string, error) {
	t, err := registry.Look(ctx, s.sessions, ref, func(r *session.Session) (trial.Trial, error) { return r.Trial(number) })
	if err != nil {
		return "", err
	}
	return s.logs.Log(ctx, t.ID)
}

// LoggedArtifact is a file that the trial's script logged.
func (s *queries) LoggedArtifact(ctx context.Context, ref string, number int, name string) (trial.Artifact, error) {
	return registry.Look(ctx, s.sessions, ref, func(r *session.Session) (trial.Artifact, error) {
		t, err := r.Trial(number)
		if err != nil {
			return trial.Artifact{}, err
		}
		for _, one := range downloads(ctx, t) {
			if one.Name == name {
				return one, nil
			}
		}
		return trial.Artifact{}, problem.New(problem.NotFound, "trial %d of study %s has no artifact %s", number, r.Study.Definition.Name, name)
	})
}

// downloads are the files that the trial's script logged. Who reads pages by a link
// downloads no weights.
func downloads(ctx context.Context, t trial.Trial) []trial.Artifact {
	if access.CallerOf(ctx).Sight != access.Shared {
		return t.Logged
	}
	return slices.DeleteFunc(slices.Clone(t.Logged), func(one trial.Artifact) bool { return trial.IsModel(one.Name) })
}

// Reach returns not_found or forbidden unless the caller may do what it asks for with the
// study. It does not count as a use.
func (s *queries) Reach(ctx context.Context, ref string) error {
	_, err := s.sessions.Session(ctx, ref)
	return err
}

// Followed returns whose study it is whose events the caller wants to follow, and
// the last event that it has.
func (s *queries) Followed(ctx context.Context, ref string) (owner string, last journal.Position, err error) {
	last, err = registry.Look(ctx, s.sessions, ref, func(r *session.Session) (journal.Position, error) {
		owner = r.Study.Owner
		return *r.Position(), nil
	})
	return owner, last, err
}

// Events returns up to limit events of the study behind the sequence.
func (s *queries) Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error) {
	study, err := registry.Look(ctx, s.sessions, ref, func(r *session.Session) (string, error) { return r.Study.ID, nil })
	if err != nil {
		return nil, err
	}
	events, err := s.store.Events(ctx, study, after, limit)
	return outward(events), err
}

// WaitEvents returns once the study has events behind the sequence, or with
// the context's error when that ends first.
func (s *queries) WaitEvents(ctx context.Context, ref string, after int64) error {
	for {
		changed := s.sessions.Changes()
		sequence, err := registry.Look(ctx, s.sessions, ref, func(r *session.Session) (int64, error) { return r.Sequence, nil })
		if err != nil {
			return err
		}
		if sequence > after {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Newest returns the number of the newest event of each study in memory. It may not be
// durable yet.
func (s *queries) Newest() map[string]int64 {
	newest := map[string]int64{}
	for r := range s.sessions.Each() {
		newest[r.ID] = r.Sequence
	}
	return newest
}

// outward turns stored events into the protocol's.
func outward(events []journal.Event) []protocol.Event {
	list := make([]protocol.Event, 0, len(events))
	for _, event := range events {
		out := protocol.Event{
			Study: event.Study, Sequence: event.Sequence, At: event.At, Kind: string(event.Kind),
			Trial: event.Trial, State: event.State, Worker: event.Worker, Reason: event.Reason,
		}
		if number, ok := event.Trial.Number(); ok {
			out.Number = &number
		}
		if len(event.Data) > 0 {
			out.Data = event.Data
		}
		list = append(list, out)
	}
	return list
}

// Referenced returns the artifacts that trials refer to in studies which the caller
// sees, and the data sets that it sees. If it sees all, other artifacts are garbage once their upload is long over.
func (s *queries) Referenced(ctx context.Context) (map[string]bool, error) {
	caller := access.CallerOf(ctx)
	studies, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, study := range studies {
		if !s.sessions.Allows(caller, study.ID, study.Owner) {
			continue
		}
		trials, err := s.store.Trials(ctx, study.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range trials {
			for _, checkpoint := range t.Artifacts(study.Status.Over()) {
				used[checkpoint.Artifact] = true
			}
		}
	}
	sets, err := s.datasets.Datasets(ctx)
	for _, one := range sets {
		used[one.Artifact] = true
	}
	return used, err
}

// PlanProgress compares the study's plan with what was done so far.
func (s *queries) PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error) {
	return registry.Look(ctx, s.sessions, ref, func(r *session.Session) (protocol.PlanProgress, error) {
		progress := r.Progress(r.Study, r.Trials, s.options.Now())
		answer := protocol.PlanProgress{
			Study: r.Study.Definition.Name, Plan: r.Study.Definition.Plan(), Trials: progress.Created, Repeats: progress.Repeats,
			Epochs: progress.Epochs, DataPasses: progress.DataPasses, Seconds: progress.TrialSeconds,
			Joules: float64(progress.Energy.Joules), EnergyMethod: progress.Energy.Method,
			Stages: make([]protocol.StageProgress, len(r.Ladder)),
		}
		for rung := range answer.Stages {
			answer.Stages[rung].Rung = rung
		}
		for _, stage := range answer.Plan.Stages {
			answer.Stages[stage.Index].Planned = stage.Started + stage.Promoted
		}
		for _, t := range trial.Searched(r.Trials) {
			analysis.CountStages(answer.Stages, t)
		}
		return answer, nil
	})
}

// CheckArtifact returns not_found unless the caller may read the artifact: a
// user those that checkpoints in its studies refer to and its data sets, a worker those of
// the trials it holds a lease of, cancelled ones too, and whoever sees every study all of them.
func (s *queries) CheckArtifact(ctx context.Context, sha256 string) error {
	caller := access.CallerOf(ctx)
	switch caller.Sight {
	case access.All:
		return nil
	case access.Own:
		used, err := s.Referenced(ctx)
		if err != nil || used[sha256] {
			return err
		}
	case access.Shared: // who reads pages downloads no weights
		return access.Deny(problem.New(problem.NotFound, "there is no artifact %s", sha256))
	case access.Held:
	}
	for _, lease := range s.allocator.Leases() {
		if lease.Holder != caller.Holder {
			continue
		}
		r, t, err := s.sessions.LockedTrial(ctx, lease.Trial)
		if problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		used := r.Study.Definition.UsesDataset(sha256)
		r.Unlock()
		if used || t.Checkpoint != nil && t.Checkpoint.Artifact == sha256 {
			return nil
		}
	}
	return access.Deny(problem.New(problem.NotFound, "there is no artifact %s", sha256))
}

// Deflation says what trials of the study leave out for others of a higher
// priority, and what comes of it.
func (s *queries) Deflation(ctx context.Context, ref string) (protocol.StudyDeflation, error) {
	return registry.Look(ctx, s.sessions, ref, func(r *session.Session) (protocol.StudyDeflation, error) {
		now := s.options.Now()
		answer := s.approximation.Report(r.Study.ID, r.Study.Status == protocol.StudyRunning, ranking.Approximated(journal.View{Study: r.Study, Ladder: r.Ladder, Trials: r.Trials}), now)
		workers := s.allocator.Snapshot()
		answer.Slots = scheduler.Slots(workers)
		if r.Study.Definition.Sprint != nil {
			answer.Sprint = new(s.allocator.Sprints())
		}
		return answer, nil
	})
}

// waits says why the study's next trial does not start; nil where nothing is in
// its way, or it has none. The study's lock is held.
func (s *queries) waits(r *session.Session) []protocol.Wait {
	one, starts := r.Obstacle()
	if one.Ask.Need == nil {
		return starts
	}
	if one.SharesGPUs && s.gpus.Refusal(r.ID) != "" {
		one.Expected += "; " + s.gpus.Refusal(r.ID)
	}
	return s.allocator.Waits(one)
}

// gpuExpected is what the trial should use of the GPU that it is on, or else of
// those of the workers that are connected; nil where there are none. The study's
// lock is held.
func (s *queries) gpuExpected(ctx context.Context, r *session.Session, t trial.Trial) *protocol.GPUExpected {
	if access.CallerOf(ctx).Sight == access.Shared {
		return nil // who came by a link hears nothing of workers
	}
	types := s.allocator.GPUTypes()
	if at := gpuPlace(s.allocator, t); at.GPU != "" && t.State.Held() {
		types = []string{at.GPU}
	}
	return s.gpus.Predict(ctx, r.GPUStudy(), t, types)
}
