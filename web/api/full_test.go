package api_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/lossydisk"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// fill takes all the room there is.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// The disk of a server is full: what changes something is answered 507 with the
// reason, reads and heartbeats go on, and once there is room the same requests
// are done, without a restart.
func TestFullDiskIsToldAndPasses(t *testing.T) {
	t.Parallel()
	disk := lossydisk.Small(t)
	store, err := sqlite.Open(t.Context(), filepath.Join(disk, "tandem.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	artifacts, err := artifact.Open(filepath.Join(disk, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	studies := study.New(store, store, study.Options{Now: time.Now, Random: func() uint64 { return 7 }})
	s := newStage(t, func(c *api.Config) {
		c.Studies, c.Artifacts, c.Healthy, c.Ready = useCases(studies), artifacts, store.Err, store.Full
	})
	created := s.create()
	worker := s.worker()
	lease := s.lease(worker)
	ballast := filepath.Join(disk, "ballast")
	if got := s.admin("GET", "/readyz", ""); got.status != 200 {
		t.Errorf("with room it is %d: %s", got.status, got.body)
	}
	fill(t, ballast)

	report, err := json.Marshal(reportOf(lease, lease.FirstEpoch, 0.5))
	if err != nil {
		t.Fatal(err)
	}
	send := func() answer {
		return s.admin("POST", "/api/v1/trials/"+string(lease.Trial)+"/reports", string(report), "Idempotency-Key", "the-report")
	}
	weights := strings.Repeat("w", 100_000)
	upload := func() answer {
		return s.admin("PUT", fmt.Sprintf("/api/v1/artifacts/%x", sha256.Sum256([]byte(weights))), weights, "Content-Type", "application/octet-stream")
	}
	for what, answer := range map[string]answer{
		"a report": send(), "an upload": upload(),
		"a new study": s.admin("POST", "/api/v1/studies", strings.Replace(smallStudy, "small", "another", 1), "Content-Type", "application/yaml", "Idempotency-Key", "another"),
	} {
		told := answer.problem(t, 507, problem.Unavailable)
		if !strings.Contains(told.Detail, "disk is full") || answer.header.Get("Retry-After") == "" {
			t.Errorf("%s is told %q, %v", what, told.Detail, answer.header)
		}
	}
	if _, err := worker.Heartbeat(t.Context(), workerID, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}); err != nil {
		t.Errorf("a heartbeat: %v", err)
	}
	if list, err := s.client(auth.Admin).Studies(t.Context()); err != nil || len(list) != 1 || list[0].ID != created.ID {
		t.Errorf("the studies are %v, %v", list, err)
	}
	if got := s.admin("GET", "/healthz", ""); got.status != 200 {
		t.Errorf("the health is %d: %s", got.status, got.body)
	}
	if told := s.admin("GET", "/readyz", "").problem(t, 503, problem.Unavailable); !strings.Contains(told.Detail, "disk is full") {
		t.Errorf("it is not ready since %q", told.Detail)
	}
	if left, err := filepath.Glob(filepath.Join(disk, "artifacts", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("of the upload, %v was left: %v", left, err)
	}

	lossydisk.Free(t, ballast)
	for what, got := range map[string]answer{"the report": send(), "the upload": upload()} {
		if got.status/100 != 2 {
			t.Errorf("%s, once there is room: %d: %s", what, got.status, got.body)
		}
	}
	if got := s.admin("GET", "/readyz", ""); got.status != 200 {
		t.Errorf("once there is room it is %d: %s", got.status, got.body)
	}
	s.train(worker, lease, 0.5) // from the first epoch: the same again is nothing new
}

// The disk of the audit log is full: what has to be logged is answered 507 too, and is
// done once there is room. Before, with room, it is done at once.
func TestAFullDiskOfTheAuditLogIsToldAndPasses(t *testing.T) {
	t.Parallel()
	disk := lossydisk.Small(t)
	log, err := audit.Open(filepath.Join(disk, "audit"), audit.Options{FileBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newStage(t, func(c *api.Config) { c.Audit = log })
	token := func(name string) answer {
		return s.admin("POST", "/api/v1/tokens", fmt.Sprintf(`{"name":%q,"scope":"viewer"}`, name))
	}
	if got := token("placebo"); got.status != 201 {
		t.Fatalf("with room it is %d: %s", got.status, got.body)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	got := token("x")
	if got.problem(t, 507, problem.Unavailable); got.header.Get("Retry-After") != "10" || !strings.Contains(string(got.body), "make room on its disk") {
		t.Errorf("told %q, %s", got.header.Get("Retry-After"), got.body)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if got := token("x"); got.status != 201 {
		t.Errorf("with room again it is %d: %s", got.status, got.body)
	}
}
