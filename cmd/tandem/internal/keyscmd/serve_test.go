package keyscmd

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// A lease is current if the study server says that this worker holds it now.
func TestTheStudyServerSaysWhoHoldsALease(t *testing.T) {
	state := "running"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/studies/s/trials/3" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"code":"not_found","detail":"there is no such trial"}`))
			return
		}
		_, _ = w.Write([]byte(`{"trial":{"id":"s-3","number":3,"state":"` + state + `","lease_epoch":2,"worker":"w"},"reports":[],"events":[]}`))
	}))
	defer server.Close()
	client, err := rest.New(rest.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	good := release.Request{Worker: "w", Study: "s", Trial: 3, Lease: 2}
	if err := current(client)(t.Context(), good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*release.Request){
		"an older lease": func(r *release.Request) { r.Lease = 1 }, "a later one": func(r *release.Request) { r.Lease = 3 },
		"another worker": func(r *release.Request) { r.Worker = "x" }, "another trial": func(r *release.Request) { r.Trial = 4 },
		"a trial that waits": func(*release.Request) { state = "queued" },
	} {
		asked := good
		state = "running"
		change(&asked)
		var refused *evidence.Refusal
		if err := current(client)(t.Context(), asked); !errors.As(err, &refused) || refused.Code != "stale_lease" {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Close()
	var refused *evidence.Refusal
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := current(client)(ctx, good); err == nil || errors.As(err, &refused) {
		t.Errorf("without a server: %v", err)
	}
}
