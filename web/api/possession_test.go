package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// holding is a trial that a client holds, with one epoch reported.
func (s *stage) holding(client *rest.Client, worker, study string) protocol.Lease {
	s.t.Helper()
	ctx := s.t.Context()
	if _, err := client.Register(ctx, protocol.WorkerRegistration{ID: worker, Name: strings.TrimPrefix(worker, "worker-"), Slots: 1}); err != nil {
		s.t.Fatal(err)
	}
	reply, err := client.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: study})
	if err != nil || reply.Lease == nil {
		s.t.Fatalf("%+v: %v", reply, err)
	}
	if _, err := client.Report(ctx, reply.Lease.Trial, reportOf(*reply.Lease, 1, 0.5)); err != nil {
		s.t.Fatal(err)
	}
	return *reply.Lease
}

// commitOf is a request that makes the artifact the lease's checkpoint.
func commitOf(t *testing.T, lease protocol.Lease, artifact string, size int64, token string) ask {
	t.Helper()
	body, err := json.Marshal(protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: artifact, Bytes: size})
	if err != nil {
		t.Fatal(err)
	}
	return ask{method: "POST", path: "/api/v1/trials/" + string(lease.Trial) + "/checkpoint", body: string(body), token: token}
}

func (s *stage) putBytes(token, artifact string, data []byte) answer {
	s.t.Helper()
	return s.do(ask{method: "PUT", path: "/api/v1/artifacts/" + artifact, body: string(data), token: token, header: map[string]string{"Content-Type": "application/octet-stream"}})
}

// Who knows the hash of another's checkpoint does not get it by committing that
// hash, under a trial of his own or one that his worker holds.
func TestACheckpointIsNotHadByItsHash(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	weights, never := []byte("weights"), hashOf([]byte("never sent"))
	ctx := t.Context()
	if _, err := s.as("bob").CreateStudy(ctx, []byte(smallStudy), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	for name, lease := range map[string]protocol.Lease{
		"bob":  s.holding(s.as("bob"), "worker-bob", "small"),
		"desk": s.holding(s.as("desk"), "worker-desk", ""),
	} {
		token := s.secrets[auth.Scope(name)]
		reads := func() int {
			return s.do(ask{method: "GET", path: "/api/v1/artifacts/" + p.artifact, token: token}).status
		}
		var told []string
		for _, artifact := range []string{p.artifact, never} {
			for _, size := range []int64{7, 8} {
				got := s.do(commitOf(t, lease, artifact, size, token))
				got.problem(t, 409, problem.Conflict)
				told = append(told, strings.ReplaceAll(string(got.body), artifact, "HASH"))
			}
		}
		for _, one := range told {
			if one != told[0] {
				t.Errorf("what is there is told from what is not:\n%s\n%s", told[0], one)
			}
		}
		if got := s.putBytes(token, p.artifact, []byte("others!")); got.status != 422 {
			t.Errorf("%s: other bytes under a known hash: %d %s", name, got.status, got.body)
		}
		s.do(commitOf(t, lease, p.artifact, 7, token)).problem(t, 409, problem.Conflict)
		if reads() != 404 {
			t.Errorf("%s reads what another has", name)
		}
		// Who has the bytes may send them.
		if got := s.putBytes(token, p.artifact, weights); got.status != 204 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		if reads() != 404 {
			t.Errorf("%s reads what is no checkpoint of his", name)
		}
		if told := s.do(commitOf(t, lease, p.artifact, 8, token)).problem(t, 422, problem.Invalid); !told.has("bytes", "must be 7") {
			t.Errorf("%s: a wrong size of bytes of his own: %+v", name, told)
		}
		commit := commitOf(t, lease, p.artifact, 7, token)
		commit.header = map[string]string{"Idempotency-Key": "once"}
		for range 2 { // the answer to the first may have been lost
			if got := s.do(commit); got.status != 204 {
				t.Fatalf("%s: %d %s", name, got.status, got.body)
			}
		}
		if reads() != 200 {
			t.Errorf("%s does not read his own checkpoint", name)
		}
	}
}

// An upload is taken alike whether the server has the bytes or not: it asks for
// them, reads them to the end and looks at them.
func TestAnUploadTellsNothingOfWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	dialogue := func(artifact string, body []byte) string {
		var dialer net.Dialer
		connection, err := dialer.DialContext(t.Context(), "tcp", s.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if err := connection.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(connection, "PUT /api/v1/artifacts/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
			artifact, s.secrets["bob"], len(body))
		in := bufio.NewReader(connection)
		first, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(first, " 100 ") {
			return "it answers before it has read: " + first
		}
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Write(body); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.Status + strings.ReplaceAll(string(content), artifact, "HASH")
	}
	other := bytes.Repeat([]byte("other"), 100_000)
	known, unknown := dialogue(p.artifact, other), dialogue(hashOf([]byte("never sent")), other)
	if known != unknown || !strings.HasPrefix(known, "422") {
		t.Errorf("of what is there: %s\nof what is not: %s", known, unknown)
	}
	if got := dialogue(p.artifact, []byte("weights")); !strings.HasPrefix(got, "204") {
		t.Errorf("the right bytes: %s", got)
	}
}

// A server that was started anew asks for what it was sent before, and its
// clients send it again.
func TestACheckpointSurvivesItsServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	ctx, weights := t.Context(), []byte("weights")
	if _, err := worker.Report(ctx, lease.Trial, reportOf(lease, 1, 0.5)); err != nil {
		t.Fatal(err)
	}
	send := func(client *rest.Client) error {
		return client.PutArtifact(ctx, hashOf(weights), int64(len(weights)), opener(weights))
	}
	if err := send(worker); err != nil {
		t.Fatal(err)
	}
	next := newStage(t, func(c *api.Config) {
		c.Studies, c.Tokens = useCases(study.New(s.store, s.store, study.Options{Now: time.Now, Random: func() uint64 { return 7 }})), s.store
	})
	next.secrets = s.secrets
	worker = next.worker()
	commit := protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: hashOf(weights), Bytes: int64(len(weights))}
	if err := worker.CommitCheckpoint(ctx, lease.Trial, commit); !problem.Is(err, problem.Conflict) {
		t.Fatalf("what this server was not sent: %v", err)
	}
	if err := send(worker); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := worker.CommitCheckpoint(ctx, lease.Trial, commit); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALinkShowsNoHash reads everything that a link opens: none of it has the
// hash of a checkpoint, in whatever field or sentence.
func TestALinkShowsNoHash(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	ctx, rack := t.Context(), s.as("rack")
	newer := []byte("newer weights")
	if err := rack.PutArtifact(ctx, hashOf(newer), int64(len(newer)), opener(newer)); err != nil {
		t.Fatal(err)
	}
	if got := s.do(commitOf(t, p.lease, hashOf(newer), int64(len(newer)), s.secrets["rack"])); got.status != 204 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	said, shorter := "there is no artifact "+p.artifact, "\n"+p.artifact[:63]
	if err := rack.AppendLog(ctx, p.lease.Trial, protocol.LogChunk{LeaseEpoch: p.lease.LeaseEpoch, Text: said + shorter}); err != nil {
		t.Fatal(err)
	}
	if _, err := rack.Finish(ctx, p.lease.Trial, protocol.FinishRequest{LeaseEpoch: p.lease.LeaseEpoch, Outcome: protocol.BudgetReached}); err != nil {
		t.Fatal(err)
	}
	next, err := rack.Lease(ctx, protocol.LeaseRequest{Worker: "worker-rack"})
	if err != nil || next.Lease == nil {
		t.Fatalf("%+v: %v", next, err)
	}
	if _, err := rack.Finish(ctx, next.Lease.Trial, protocol.FinishRequest{LeaseEpoch: next.Lease.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: said}); err != nil {
		t.Fatal(err)
	}
	s.shared(p.study.ID, time.Hour)
	alice, shown := 0, 0
	walk := func(path, token string) string {
		if strings.HasSuffix(path, "/events") {
			return s.firstEvents(path, token)
		}
		return string(s.do(ask{method: "GET", path: path, token: token}).body)
	}
	for path, operations := range s.published() {
		if _, readable := operations["get"]; !readable || !strings.Contains(path, "{study}") {
			continue
		}
		for _, query := range []string{"", "?format=json", "?format=csv"} {
			if query != "" && !strings.HasSuffix(path, "/export") {
				continue
			}
			where := p.path(path, p.study.ID) + query
			own, link := walk(where, s.secrets["alice"]), walk(where, s.secrets[auth.Link])
			for _, hash := range []string{p.artifact, hashOf(newer)} {
				alice += strings.Count(own, hash)
				if strings.Contains(link, hash) {
					t.Errorf("%s shows a link %s", where, hash)
				}
			}
			if strings.Contains(link, `"artifact"`) || strings.Contains(link, "there is no artifact ") {
				shown++
			}
		}
	}
	page := withCookie("GET", p.path("/api/v1/studies/{study}/trials/0/log", p.study.ID), s.signIn(auth.Link))
	if got := s.do(page); string(got.body) != "there is no artifact "+p.artifact[:8]+strings.Repeat("*", 56)+shorter {
		t.Errorf("the log in a browser: %s", got.body)
	}
	if alice < 10 || shown < 5 { // or the walk has missed what it is about
		t.Errorf("the owner reads %d hashes, a link %d places where they were", alice, shown)
	}
}

// firstEvents are those that a stream has at once.
func (s *stage) firstEvents(path, token string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "there is no artifact ") { // what came last
			break
		}
	}
	return text.String()
}

// A trial may go on under the checkpoint that it has, whoever holds it now.
func TestATrialKeepsItsOwnCheckpoint(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	ctx := t.Context()
	if _, err := s.as("rack").Finish(ctx, p.lease.Trial, protocol.FinishRequest{LeaseEpoch: p.lease.LeaseEpoch, Outcome: protocol.Interrupted}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.as("desk").Register(ctx, protocol.WorkerRegistration{ID: "worker-desk", Name: "desk", Slots: 4}); err != nil {
		t.Fatal(err)
	}
	var leased protocol.LeaseReply
	for leased.Lease == nil || leased.Lease.Trial != p.lease.Trial { // which is promoted
		if leased.Lease != nil {
			s.train(s.as("desk"), *leased.Lease, 0.9)
		}
		var err error
		if leased, err = s.as("desk").Lease(ctx, protocol.LeaseRequest{Worker: "worker-desk"}); err != nil || leased.Lease == nil {
			t.Fatalf("%+v: %v", leased, err)
		}
	}
	commit := protocol.CheckpointCommit{LeaseEpoch: leased.Lease.LeaseEpoch, Epoch: 1, Artifact: p.artifact, Bytes: 7}
	if err := s.as("desk").CommitCheckpoint(ctx, p.lease.Trial, commit); err != nil {
		t.Error(err)
	}
	if one, err := s.store.Trial(ctx, p.lease.Trial); err != nil || one.Checkpoint == nil || *one.Checkpoint != (trial.Checkpoint{Epoch: 1, Rung: 1, Artifact: p.artifact, Bytes: 7}) {
		t.Errorf("%+v: %v", one.Checkpoint, err)
	}
}
