package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
)

// Data sets belong to who published them: others' studies cannot use them, and a worker
// reads those of the trials that it holds.
func TestDatasetsAreTheirOwners(t *testing.T) {
	in(func(t *testing.T, w *world) {
		hash, plain := strings.Repeat("5e", 32), strings.Repeat("7", 64)
		ask := protocol.DatasetRequest{Name: "scans", Artifact: hash}
		alice, bob, admin := w.as(user("alice")), w.as(user("bob")), w.as(access.Caller{Holder: access.Administrators})
		publish := func(w *world, ask protocol.DatasetRequest, bytes int64, sealed bool) error {
			w.service.Uploaded(w.ctx, ask.Artifact, bytes, sealed)
			_, err := w.service.PublishDataset(w.ctx, ask)
			return err
		}
		if _, err := alice.service.PublishDataset(alice.ctx, ask); !problem.Is(err, problem.Conflict) {
			t.Errorf("one that was never sent: %v", err)
		}
		if err := publish(alice, protocol.DatasetRequest{Name: "scans", Artifact: plain}, 10, false); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "tandem dataset encrypt") {
			t.Errorf("one in the clear: %v", err)
		}
		if err := publish(alice, ask, 1000, true); err != nil {
			t.Fatal(err)
		}
		for who, test := range map[string]struct {
			w    *world
			want int
		}{"alice": {alice, 1}, "bob": {bob, 0}, "admin": {admin, 1}} {
			list, err := test.w.service.Datasets(test.w.ctx)
			if err != nil || len(list) != test.want || test.want > 0 && (list[0].Owner != "alice" || list[0].Bytes != 1000 || list[0].DatasetRequest != ask) {
				t.Errorf("%s sees %+v, %v", who, list, err)
			}
		}
		if used, err := w.service.Referenced(w.ctx); err != nil || !used[hash] {
			t.Errorf("a sweep would take it: %v", err)
		}

		def, err := changed("objective:", "encryption: {recipients: ["+aRecipient+"], datasets: {scans: "+hash+"}}\nobjective:")
		if err != nil {
			t.Fatal(err)
		}
		for who, other := range map[string]*world{"bob": bob, "admin": admin} {
			if err := other.service.CheckDatasets(other.ctx, def); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "encryption.datasets.scans") {
				t.Errorf("%s may use it: %v", who, err)
			}
			if other == bob {
				if err := bob.service.CheckArtifact(bob.ctx, hash); !problem.Is(err, problem.NotFound) {
					t.Errorf("bob reads it: %v", err)
				}
				if err := bob.service.DeleteDataset(bob.ctx, hash); !problem.Is(err, problem.NotFound) {
					t.Errorf("bob deletes it: %v", err)
				}
			}
		}
		if err := alice.service.CheckDatasets(alice.ctx, def); err != nil {
			t.Error(err)
		}
		made, err := alice.service.CreateWarm(alice.ctx, def, nil)
		if err != nil {
			t.Fatal(err)
		}
		rack := w.as(workerOf("rack"))
		rack.registerWithKey("keyed", aRecipient)
		if err := rack.service.CheckArtifact(rack.ctx, hash); !problem.Is(err, problem.NotFound) {
			t.Errorf("a worker without a trial of it reads it: %v", err)
		}
		if lease := rack.mustLease("keyed"); lease.Datasets["scans"] != hash {
			t.Errorf("the lease has %v", lease.Datasets)
		}
		if err := rack.service.CheckArtifact(rack.ctx, hash); err != nil {
			t.Errorf("a worker with a trial of it: %v", err)
		}
		if err := alice.service.DeleteDataset(alice.ctx, hash); !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), "example") {
			t.Errorf("what a study needs was deleted: %v", err)
		}
		if _, err := alice.service.Stop(alice.ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		w.start() // it is stored
		if err := w.as(user("alice")).service.DeleteDataset(alice.ctx, hash); err != nil {
			t.Error(err)
		}
		if list, err := w.service.Datasets(w.ctx); err != nil || len(list) > 0 {
			t.Errorf("then there is %+v, %v", list, err)
		}
	})(t)
}

func TestDatasetsCountInQuotas(t *testing.T) {
	in(func(t *testing.T, w *world) {
		if _, err := w.service.SetQuota(w.ctx, "alice", protocol.Quota{DatasetBytes: 1500}); err != nil {
			t.Fatal(err)
		}
		alice, bob := w.as(user("alice")), w.as(user("bob"))
		publish := func(w *world, digit string) error {
			ask := protocol.DatasetRequest{Name: "scans", Artifact: strings.Repeat(digit, 64)}
			w.service.Uploaded(w.ctx, ask.Artifact, 1000, true)
			_, err := w.service.PublishDataset(w.ctx, ask)
			return err
		}
		for _, again := range []string{"1", "1"} {
			if err := publish(alice, again); err != nil {
				t.Error(err)
			}
		}
		if err := publish(alice, "2"); !problem.Is(err, problem.Exhausted) || !strings.Contains(err.Error(), "quota") {
			t.Errorf("beyond it: %v", err)
		}
		for _, one := range []string{"1", "2", "3"} {
			if err := publish(bob, one); err != nil {
				t.Error(err)
			}
		}
	})(t)
}
