package study_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

func user(name string) access.Caller {
	return access.Caller{Owner: name, Sight: access.Own, Holder: "user:" + name}
}

func workerOf(name string) access.Caller {
	return access.Caller{Sight: access.Held, Holder: "worker:" + name}
}

// as is the world as the caller meets it.
func (w *world) as(caller access.Caller) *world {
	seen := *w
	seen.ctx = access.WithCaller(w.ctx, caller)
	return &seen
}

// touch asks for, and tries to change, everything of the study that takes its
// name.
func (w *world) touch(ref string) map[string]error {
	errs := map[string]error{}
	_, errs["Study"] = w.service.Study(w.ctx, ref)
	_, errs["Trials"] = w.service.Trials(w.ctx, ref, protocol.TrialQuery{})
	_, errs["TrialDetail"] = w.service.TrialDetail(w.ctx, ref, 0)
	_, errs["Deployments"] = w.service.Deployments(w.ctx, ref, 0)
	_, errs["Log"] = w.service.Log(w.ctx, ref, 0)
	_, _, errs["Followed"] = w.service.Followed(w.ctx, ref)
	_, errs["Events"] = w.service.Events(w.ctx, ref, 0, 10)
	errs["WaitEvents"] = w.service.WaitEvents(w.ctx, ref, 0)
	_, errs["Recommendation"] = w.service.Recommendation(w.ctx, ref)
	_, errs["Pareto"] = w.service.Pareto(w.ctx, ref)
	_, errs["Importance"] = w.service.Importance(w.ctx, ref, protocol.ImportanceQuery{})
	_, errs["Advice"] = w.service.Advice(w.ctx, ref)
	_, errs["Correlations"] = w.service.Correlations(w.ctx, ref)
	_, errs["Measurements"] = w.service.Measurements(w.ctx, ref, 10)
	_, errs["Columns"] = w.service.Columns(w.ctx, ref, protocol.ColumnsQuery{})
	_, errs["Curves"] = w.service.Curves(w.ctx, ref, protocol.CurvesQuery{})
	_, errs["Timeline"] = w.service.Timeline(w.ctx, ref, 0)
	_, errs["PlanProgress"] = w.service.PlanProgress(w.ctx, ref)
	_, errs["Deflation"] = w.service.Deflation(w.ctx, ref)
	_, errs["Enqueue"] = w.service.Enqueue(w.ctx, ref, protocol.EnqueueRequest{})
	_, errs["Pause"] = w.service.Pause(w.ctx, ref)
	_, errs["Resume"] = w.service.Resume(w.ctx, ref)
	_, errs["Extend"] = w.service.Extend(w.ctx, ref, protocol.ExtendRequest{Trials: 1})
	_, errs["Stop"] = w.service.Stop(w.ctx, ref)
	_, errs["AnnotateStudy"] = w.service.AnnotateStudy(w.ctx, ref, tags("theirs"))
	_, errs["AnnotateTrial"] = w.service.AnnotateTrial(w.ctx, ref, 0, tags("theirs"))
	_, errs["Transfer"] = w.service.Transfer(w.ctx, ref, protocol.Ownership{Owner: "bob"})
	errs["Reach"] = w.service.Reach(w.ctx, ref)
	errs["Delete"] = w.service.Delete(w.ctx, ref)
	return errs
}

func TestTheStudiesOfOthersDoNotExist(t *testing.T) {
	in(func(t *testing.T, w *world) {
		alice, bob := w.as(user("alice")), w.as(user("bob"))
		hers := alice.create()
		alice.register("worker-alice")
		alice.mustLease("worker-alice")
		common := w.create()
		for _, foreign := range []protocol.StudyView{hers, common} {
			for _, ref := range []string{foreign.ID, foreign.Name, "alice:" + foreign.Name, "admin:" + foreign.Name, ":" + foreign.Name} {
				for call, err := range bob.touch(ref) {
					if !problem.Is(err, problem.NotFound) || err.Error() != fmt.Sprintf("there is no study %q", ref) {
						t.Errorf("%s of %s for another user: %v", call, ref, err)
					}
				}
			}
			_, err := bob.service.Study(bob.ctx, foreign.ID)
			_, missing := bob.service.Study(bob.ctx, "never was")
			if !access.Denied(err) || access.Denied(missing) || access.Denied(nil) || !access.Denied(fmt.Errorf("wrapped: %w", err)) {
				t.Errorf("denied %v and %v", err, missing)
			}
		}
		list, err := bob.service.Studies(bob.ctx)
		if err != nil || len(list) != 0 {
			t.Errorf("another user sees %d studies: %v", len(list), err)
		}
		if view := w.view(hers.ID); view.Status != protocol.StudyRunning || view.Owner != "alice" {
			t.Errorf("the study is %s of %s", view.Status, view.Owner)
		}
		if view := w.view(common.ID); view.Status != protocol.StudyRunning || view.Owner != access.Administrators {
			t.Errorf("the study is %s of %s", view.Status, view.Owner)
		}
		// They are hers, and the administrators', also after a restart.
		w.start()
		for _, ref := range []string{hers.ID, hers.Name, "alice:" + hers.Name} {
			if view, err := w.as(user("alice")).service.Study(alice.ctx, ref); err != nil || view.ID != hers.ID {
				t.Errorf("her own study by %s: %s, %v", ref, view.ID, err)
			}
		}
		if all, err := w.service.Studies(w.ctx); err != nil || len(all) != 2 {
			t.Errorf("an administrator sees %d studies: %v", len(all), err)
		}
		for ref, want := range map[string]string{"example": common.ID, "alice:example": hers.ID} {
			if view, err := w.service.Study(w.ctx, ref); err != nil || view.ID != want {
				t.Errorf("an administrator finds %s by %s: %v", view.ID, ref, err)
			}
		}
	})(t)
}

// TestANearNameIsOffered offers only what the caller sees, by what it calls that, and in the
// same words whether or not others have a study of the name that it gave.
func TestANearNameIsOffered(t *testing.T) {
	in(func(t *testing.T, w *world) {
		alice, bob := w.as(user("alice")), w.as(user("bob"))
		alice.create(named("lenet-fashion")...)
		w.create(named("resnet")...)
		bob.create(named("lenet")...)
		w.as(user("rob")).create(named("lenet")...)
		for _, c := range []struct {
			who         *world
			ref, offers string
		}{
			{alice, "lenet-fahsion", "; did you mean lenet-fashion?"},
			{alice, "alice:lenet-fashio", "; did you mean lenet-fashion?"},
			{alice, "resnett", ""},
			{alice, "bob:lenett", ""},
			{bob, "lenet-fahsion", ""},
			{bob, "lenet-fashion", ""},
			{bob, "lenett", "; did you mean lenet?"},
			{bob, "rob:lenet", "; did you mean lenet?"},
			{bob, "fob:lenet", "; did you mean lenet?"},
			{w, "resnett", " of an administrator: a user's is OWNER:NAME; did you mean resnet?"},
			{w, "lenet-fashion", " of an administrator: a user's is OWNER:NAME; did you mean alice:lenet-fashion?"},
			{w, "bob:lenett", "; did you mean bob:lenet?"},
			{w, "something-else", " of an administrator: a user's is OWNER:NAME"},
			{w.as(workerOf("rack-1")), "resnett", ""},
			{w.as(access.Caller{Sight: access.Shared, Study: "other"}), "resnett", ""},
		} {
			for call, err := range c.who.touch(c.ref) {
				if want := fmt.Sprintf("there is no study %q", c.ref) + c.offers; !problem.Is(err, problem.NotFound) || err.Error() != want {
					t.Errorf("%s of %s: %v; want %s", call, c.ref, err, want)
				}
				if hidden := c.ref == "rob:lenet"; access.Denied(err) != hidden {
					t.Errorf("%s of %s is denied: %t", call, c.ref, !hidden)
				}
			}
		}
	})(t)
}

func TestEachOwnerHasNamesOfItsOwn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		seen := map[string]bool{}
		for _, caller := range []access.Caller{{}, user("alice"), user("bob")} {
			at := w.as(caller)
			view := at.create()
			if seen[view.ID] {
				t.Errorf("the study of %q is another's", caller.Owner)
			}
			seen[view.ID] = true
			if found, err := at.service.Study(at.ctx, "example"); err != nil || found.ID != view.ID {
				t.Errorf("%q finds %s under its own name: %v", caller.Owner, found.ID, err)
			}
			_, err := at.service.CreateWarm(at.ctx, view.Definition, nil)
			if !problem.Is(err, problem.Conflict) || strings.Contains(err.Error(), "alice") {
				t.Errorf("the same name again of %q: %v", caller.Owner, err)
			}
		}
	})(t)
}

func TestNobodyHasNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		view := w.create()
		nobody := w.as(access.Nobody())
		for call, err := range nobody.touch(view.ID) {
			if !problem.Is(err, problem.NotFound) {
				t.Errorf("%s for nobody: %v", call, err)
			}
		}
		if list, err := nobody.service.Studies(nobody.ctx); err != nil || len(list) != 0 {
			t.Errorf("nobody sees %d studies: %v", len(list), err)
		}
	})(t)
}

func TestASimilarStudyIsOneOfTheOwners(t *testing.T) {
	in(func(t *testing.T, w *world) {
		alice, bob := w.as(user("alice")), w.as(user("bob"))
		for _, at := range []*world{w, alice} {
			at.create()
			at.register("worker-" + fmt.Sprint(at == alice))
			at.train(at.mustLease("worker-" + fmt.Sprint(at == alice)))
		}
		warm := []string{"name: example", "name: warm", "seed: 7}", "seed: 7, warm_start: {similar: 3}}"}
		for name, c := range map[string]struct {
			at      *world
			sources int
		}{"alice": {alice, 1}, "bob": {bob, 0}, "administrators": {w, 1}} {
			view := c.at.create(warm...)
			if got := len(view.Definition.Search.WarmStart.Sources); got != c.sources {
				t.Errorf("%s begins with %d studies, want %d", name, got, c.sources)
			}
		}
		named := strings.NewReplacer("name: example", "name: named", "seed: 7}", "seed: 7, warm_start: {studies: [\"alice:example\"]}}")
		def, err := studyfile.Parse([]byte(named.Replace(defaultFile)), studyfile.YAML)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bob.service.CreateWarm(bob.ctx, def, nil); !problem.Is(err, problem.Invalid) {
			t.Errorf("bob begins with alice's results: %v", err)
		}
	})(t)
}

// write tries everything that is written under a lease.
func (w *world) write(worker string, lease *protocol.Lease) map[string]error {
	errs := map[string]error{}
	_, errs["Report"] = w.report(lease, 1)
	errs["CommitCheckpoint"] = w.service.CommitCheckpoint(w.ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: strings.Repeat("a", 64)})
	errs["AppendLog"] = w.service.AppendLog(w.ctx, lease.Trial, protocol.LogChunk{LeaseEpoch: lease.LeaseEpoch, Text: "mine"})
	_, errs["Finish"] = w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed})
	reply, err := w.service.Heartbeat(w.ctx, worker, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}})
	if err == nil && len(reply.Lost) == 1 {
		err = problem.New(problem.LeaseLost, "lost")
	}
	errs["Heartbeat"] = err
	return errs
}

func TestOnlyTheHolderWritesUnderALease(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		rack := w.as(workerOf("rack"))
		rack.register("worker-rack")
		lease := rack.mustLease("worker-rack")
		before := w.picture(lease)
		for name, stranger := range map[string]access.Caller{"desk": workerOf("desk"), "alice": user("alice"), "nobody": access.Nobody()} {
			at := w.as(stranger)
			at.register("worker-" + name)
			for call, err := range at.write("worker-"+name, lease) {
				if !problem.Is(err, problem.LeaseLost) {
					t.Errorf("%s of %s: %v", call, name, err)
				}
			}
		}
		if after := w.picture(lease); after != before {
			t.Errorf("the strangers have changed\n%s\nto\n%s", before, after)
		}
		// The holder may, also after a restart of the server, before and after it
		// has registered again; and so may an administrator.
		w.start()
		rack = w.as(workerOf("rack"))
		admin := w.as(access.Caller{Holder: access.Administrators})
		if _, err := w.as(workerOf("desk")).report(lease, 1); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("another worker after a restart: %v", err)
		}
		if _, err := rack.report(lease, 1); err != nil {
			t.Errorf("the holder after a restart: %v", err)
		}
		rack.register("worker-rack")
		held := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}
		if reply, err := rack.service.Heartbeat(rack.ctx, "worker-rack", held); err != nil || len(reply.Lost) > 0 {
			t.Errorf("the holder's heartbeat: %+v, %v", reply, err)
		}
		again := rack.mustLease("worker-rack")
		if _, err := admin.report(again, 1); err != nil {
			t.Errorf("an administrator: %v", err)
		}
	})(t)
}

// picture is what is stored of the lease's trial.
func (w *world) picture(lease *protocol.Lease) string {
	w.t.Helper()
	kept, err := w.store.Trial(w.ctx, lease.Trial)
	reports, failed := w.store.Reports(w.ctx, lease.Trial)
	text, unread := w.logs.Log(w.ctx, lease.Trial)
	encoded, odd := json.Marshal([]any{kept, reports, text})
	if err := errors.Join(err, failed, unread, odd); err != nil {
		w.t.Fatal(err)
	}
	return string(encoded)
}

func TestAWorkerBelongsToWhoeverRegisteredIt(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		rack, desk := w.as(workerOf("rack")), w.as(workerOf("desk"))
		rack.register("worker-rack", "worker-rack") // again is harmless
		if _, err := desk.service.RegisterWorker(desk.ctx, protocol.WorkerRegistration{ID: "worker-rack", Name: "x", Slots: 1}); !problem.Is(err, problem.Conflict) {
			t.Errorf("another worker has taken its id: %v", err)
		}
		_, leased := desk.service.Lease(desk.ctx, protocol.LeaseRequest{Worker: "worker-rack"})
		_, beaten := desk.service.Heartbeat(desk.ctx, "worker-rack", protocol.Heartbeat{})
		removed := desk.service.RemoveWorker(desk.ctx, "worker-rack")
		_, unknown := desk.service.Heartbeat(desk.ctx, "worker-none", protocol.Heartbeat{})
		for call, err := range map[string]error{"Lease": leased, "Heartbeat": beaten} {
			if !problem.Is(err, problem.NotFound) || !access.Denied(err) || err.Error() != strings.ReplaceAll(unknown.Error(), "none", "rack") {
				t.Errorf("%s by another: %v", call, err)
			}
		}
		if removed != nil || len(w.service.Workers(w.ctx)) != 1 { // as of one that is not there
			t.Errorf("removed by another: %v, and %d workers are left", removed, len(w.service.Workers(w.ctx)))
		}
		if err := rack.service.RemoveWorker(rack.ctx, "worker-rack"); err != nil {
			t.Error(err)
		}
	})(t)
}

func TestAUserTrainsItsOwnStudiesOnly(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		alice := w.as(user("alice"))
		alice.register("worker-alice")
		if lease := alice.lease("worker-alice"); lease != nil {
			t.Fatalf("a user was given %s of another's study", lease.Trial)
		}
		_, err := alice.service.Lease(alice.ctx, protocol.LeaseRequest{Worker: "worker-alice", Study: "example"})
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("by its name: %v", err)
		}
		hers := alice.create()
		if lease := alice.mustLease("worker-alice"); lease.StudyID != hers.ID {
			t.Errorf("a user was given a trial of %s", lease.StudyID)
		}
		// A worker serves everybody's studies, and shows each user only its own.
		rack := w.as(workerOf("rack"))
		rack.register("worker-rack")
		studies := map[string]bool{}
		for range 3 {
			studies[rack.mustLease("worker-rack").StudyID] = true
		}
		if len(studies) != 2 {
			t.Errorf("the worker trains %v", studies)
		}
		count := func(caller access.Caller) (trials []trial.ID) {
			for _, worker := range w.service.Workers(access.WithCaller(w.ctx, caller)) {
				trials = append(trials, worker.Trials...)
			}
			return trials
		}
		if all, own, none := count(access.Caller{}), count(user("alice")), count(user("bob")); len(all) != 4 || len(own) != 2 || len(none) != 0 {
			t.Errorf("everybody sees %v, alice %v, bob %v", all, own, none)
		}
	})(t)
}

func TestArtifactsAreReadByThoseTheyAreOf(t *testing.T) {
	in(func(t *testing.T, w *world) {
		alice, rack := w.as(user("alice")), w.as(workerOf("rack"))
		alice.create()
		rack.register("worker-rack")
		lease := rack.mustLease("worker-rack")
		rack.mustReport(lease, 1)
		hash := strings.Repeat("a", 64)
		commit := protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: hash, Bytes: 1}
		rack.service.Uploaded(rack.ctx, hash, 1, false)
		if err := rack.service.CommitCheckpoint(rack.ctx, lease.Trial, commit); err != nil {
			t.Fatal(err)
		}
		check := func(caller access.Caller, hash string) error {
			return w.service.CheckArtifact(access.WithCaller(w.ctx, caller), hash)
		}
		viewer := access.Caller{Holder: "viewer:1"}
		for _, caller := range []access.Caller{{}, {Holder: access.Administrators}, viewer, user("alice"), workerOf("rack")} {
			if err := check(caller, hash); err != nil {
				t.Errorf("%+v: %v", caller, err)
			}
		}
		for _, caller := range []access.Caller{user("bob"), workerOf("desk"), access.Nobody()} {
			if err := check(caller, hash); !problem.Is(err, problem.NotFound) || err.Error() != "there is no artifact "+hash {
				t.Errorf("%+v: %v", caller, err)
			}
		}
		// Its worker only as long as it has the trial; its owner for ever.
		if _, err := rack.service.Finish(rack.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted}); err != nil {
			t.Fatal(err)
		}
		if err := check(workerOf("rack"), hash); !problem.Is(err, problem.NotFound) {
			t.Errorf("the worker that had it: %v", err)
		}
		if err := check(user("alice"), hash); err != nil {
			t.Errorf("its owner: %v", err)
		}
	})(t)
}

// TestAWorkerThatHasNotHeardOfTheEndStillReads what its lease is of: it may be fetching the
// checkpoint while the study is stopped.
func TestAWorkerThatHasNotHeardOfTheEndStillReads(t *testing.T) {
	in(func(t *testing.T, w *world) {
		rack := w.as(workerOf("rack"))
		created := w.create()
		rack.register("worker-rack")
		lease := rack.mustLease("worker-rack")
		rack.mustReport(lease, 1)
		hash := strings.Repeat("a", 64)
		rack.service.Uploaded(rack.ctx, hash, 1, false)
		if err := rack.service.CommitCheckpoint(rack.ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: hash, Bytes: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		check := func(holder string) error {
			return w.service.CheckArtifact(access.WithCaller(w.ctx, workerOf(holder)), hash)
		}
		if err := check("rack"); err != nil {
			t.Errorf("its worker: %v", err)
		}
		if err := check("desk"); !problem.Is(err, problem.NotFound) {
			t.Errorf("another worker: %v", err)
		}
		if _, err := rack.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if err := check("rack"); !problem.Is(err, problem.NotFound) {
			t.Errorf("the worker that had it: %v", err)
		}
	})(t)
}

func TestWhatAWorkerRefusesIsShownToTheOwner(t *testing.T) {
	in(func(t *testing.T, w *world) {
		alice, rack := w.as(user("alice")), w.as(workerOf("rack"))
		hers := alice.create()
		rack.register("worker-rack")
		lease := rack.mustLease("worker-rack")
		if _, err := rack.finish(lease, protocol.Refused); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			caller access.Caller
			want   int
		}{"alice": {user("alice"), 1}, "bob": {user("bob"), 0}, "an administrator": {access.Caller{Holder: access.Administrators}, 1}} {
			workers := w.service.Workers(access.WithCaller(w.ctx, c.caller))
			if len(workers) != 1 || len(workers[0].Refuses) != c.want {
				t.Errorf("%s sees %+v, not %d refusals of study %s", name, workers, c.want, hers.ID)
			}
		}
	})(t)
}
