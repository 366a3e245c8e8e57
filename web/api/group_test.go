package api_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// roleOf is what each route of a study takes, written by hand: a new route is the owner's
// until it is named here. Those of no study are in none of the lists.
var roleOf = map[string][]string{
	"viewer": {
		"choose-backend", "export-study", "follow-events", "get-advice", "get-columns", "get-correlations", "get-curves", "get-deployments", "get-edge-overview", "get-importance",
		"get-log", "get-measurements", "get-pareto", "get-plan", "get-recommendation", "get-samples", "get-study", "get-timeline", "get-trial", "get-trial-artifact",
		"list-trials", "get-deflation", "get-study-hooks",
	},
	"editor": {"enqueue", "pause-study", "resume-study", "extend-study", "set-study", "annotate-study", "annotate-trial", "stop-study"},
	"owner":  {"share-study", "transfer-study", "create-link", "list-links", "delete-link", "delete-study"},
}

// asMembers makes a group with carol as its editor and bob as its viewer.
func (s *stage) asMembers(members map[string]string) {
	s.t.Helper()
	if _, err := s.client(auth.Admin).SetGroup(s.t.Context(), "ml", protocol.UserGroupRequest{Members: members}); err != nil {
		s.t.Fatal(err)
	}
}

// TestWhatRolesAllow walks every route of a study as the viewer, the editor and a stranger
// of the group that it is shared with, and again when it is not: the placebo.
func TestWhatRolesAllow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	s.issue(auth.Request{Name: "carol", Scope: auth.User})
	s.issue(auth.Request{Name: "dave", Scope: auth.User})
	s.asMembers(map[string]string{"alice": "viewer", "bob": "viewer", "carol": "editor"})
	bodies := p.bodies(t)
	rank := map[string]int{"viewer": 1, "editor": 2, "owner": 3}
	walk := func(roles map[string]string) {
		for path, operations := range s.published() {
			for method, described := range operations {
				if !strings.HasPrefix(path, "/api/v1/studies/{study}") {
					continue
				}
				needs := ""
				for role, ids := range roleOf {
					if slices.Contains(ids, described.ID) {
						needs = role
					}
				}
				if needs == "" {
					t.Fatalf("%s is new: say here which role it takes", described.ID)
				}
				for user, role := range roles {
					name := strings.ToUpper(method) + " " + path
					want := []int{http.StatusOK, http.StatusNoContent, http.StatusConflict, http.StatusNotFound}
					if role == "" {
						want = []int{http.StatusNotFound}
					} else if rank[role] < rank[needs] {
						want = []int{http.StatusForbidden}
					} else if described.ID == "follow-events" {
						continue // which does not end
					}
					got := s.do(ask{method: strings.ToUpper(method), path: p.path(path, p.study.ID), body: bodies[name], token: s.secrets[auth.Scope(user)]})
					missing := strings.Contains(string(got.body), "there is no study")
					if !slices.Contains(want, got.status) || missing != (role == "") {
						t.Errorf("%s as %s, a %q: %d %s", name, user, role, got.status, got.body)
					}
				}
			}
		}
	}
	nobody := map[string]string{"bob": "", "carol": "", "dave": ""}
	walk(nobody) // a group alone shows nothing
	if _, err := s.as("alice").ShareStudy(t.Context(), "small", "ml"); err != nil {
		t.Fatal(err)
	}
	walk(map[string]string{"bob": "viewer", "carol": "editor", "dave": ""})
	for user, want := range map[string]string{"bob": "viewer", "carol": "editor"} {
		list, err := s.as(user).Studies(t.Context())
		if err != nil || len(list) != 1 || list[0].Owner != "alice" || list[0].Role != want || !slices.Equal(list[0].Groups, []string{"ml"}) {
			t.Errorf("%s lists %+v: %v", user, list, err)
		}
		stream, err := s.as(user).Artifact(t.Context(), p.artifact)
		if err != nil {
			t.Errorf("%s gets no checkpoint: %v", user, err)
		} else if err := stream.Close(); err != nil {
			t.Error(err)
		}
		// A role shows a study: it gives no trials of it to the user's workers.
		if _, err := s.as(user).Register(t.Context(), protocol.WorkerRegistration{ID: "worker-" + user, Name: user, Slots: 1}); err != nil {
			t.Fatal(err)
		}
		if reply, err := s.as(user).Lease(t.Context(), protocol.LeaseRequest{Worker: "worker-" + user}); err != nil || reply.Lease != nil {
			t.Errorf("a worker of %s was given %+v: %v", user, reply.Lease, err)
		}
	}
	if _, err := s.as("alice").ShareStudy(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	walk(nobody)
}

func TestWhoSharesWithWhichGroup(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.alices()
	ctx := t.Context()
	s.asMembers(map[string]string{"bob": "editor"})
	if _, err := s.as("alice").ShareStudy(ctx, "small", "ml"); !problem.Is(err, problem.NotFound) {
		t.Errorf("alice shares with a group that she is not in: %v", err)
	}
	_, missing := s.as("alice").ShareStudy(ctx, "small", "mx")
	_, foreign := s.as("alice").ShareStudy(ctx, "small", "ml")
	if missing == nil || foreign == nil || strings.ReplaceAll(missing.Error(), "mx", "ml") != foreign.Error() {
		t.Errorf("a group that there is reads otherwise than one that there is not: %v and %v", foreign, missing)
	}
	if _, err := s.client(auth.Admin).ShareStudy(ctx, "alice:small", "ml"); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	if list, err := s.as("alice").Groups(ctx); err != nil || len(list) != 0 {
		t.Errorf("alice lists %v: %v", list, err)
	}
	if list, err := s.as("bob").Groups(ctx); err != nil || len(list) != 1 {
		t.Errorf("bob lists %v: %v", list, err)
	}
	// Of several of one name, bob's own comes first, and the reference is hers.
	own, err := s.as("bob").CreateStudy(ctx, []byte(smallStudy), "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	for ref, owner := range map[string]string{"small": "bob", "alice:small": "alice", own.ID: "bob"} {
		if view, err := s.as("bob").Study(ctx, ref); err != nil || view.Owner != owner {
			t.Errorf("bob finds %s's by %s: %v", view.Owner, ref, err)
		}
	}
	// A group that is made again begins with no study.
	if err := s.client(auth.Admin).RemoveGroup(ctx, "ml"); err != nil {
		t.Fatal(err)
	}
	s.asMembers(map[string]string{"bob": "editor"})
	if _, err := s.as("bob").Study(ctx, "alice:small"); !problem.Is(err, problem.NotFound) {
		t.Errorf("what was shared with a group that is gone: %v", err)
	}
	for name, ask := range map[string]protocol.UserGroupRequest{
		"ML": {}, "admin": {}, "a:b": {},
		"roles": {Members: map[string]string{"bob": "owner"}}, "users": {Members: map[string]string{"Bob": "viewer"}},
	} {
		if _, err := s.client(auth.Admin).SetGroup(ctx, name, ask); !problem.Is(err, problem.Invalid) {
			t.Errorf("the group %s with %v: %v", name, slices.Collect(maps.Keys(ask.Members)), err)
		}
	}
}

// Who is taken out of a group hears no more of the studies that it follows.
func TestAStreamEndsWithTheRole(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	s.asMembers(map[string]string{"alice": "editor", "bob": "viewer"})
	if _, err := s.as("alice").ShareStudy(t.Context(), "small", "ml"); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.server.URL+"/api/v1/studies/"+p.study.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.secrets["bob"])
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v: %v", answer, err)
	}
	defer answer.Body.Close()
	s.asMembers(map[string]string{"alice": "editor"})
	arrived[trial.Annotation](t, s.do(ask{method: "POST", path: "/api/v1/studies/small/annotate", body: `{"add_tags":["secret-tag"]}`, token: s.secrets["alice"]}))
	ended, all := make(chan error, 1), new(strings.Builder)
	go func() {
		_, err := io.Copy(all, answer.Body)
		ended <- err
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the stream goes on")
	}
	if strings.Contains(all.String(), "secret-tag") {
		t.Error("bob heard of it")
	}
}
