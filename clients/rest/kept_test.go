package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestARefusalThatKeepsLeasesIsToldApart: also when the patience of the call is over.
func TestARefusalThatKeepsLeasesIsToldApart(t *testing.T) {
	t.Parallel()
	kept := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if kept != "" {
			w.Header().Set("Tandem-Leases", kept)
		}
		w.Header().Set("Retry-After", "60") // so that the context ends while the client waits, not while it asks
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	for header, want := range map[string]bool{"": false, "lost": false, "kept": true} {
		kept = header
		for _, patience := range []time.Duration{-1, time.Hour} {
			client, err := rest.New(rest.Options{URL: server.URL, Token: "x", Patience: patience})
			if err != nil {
				t.Fatal(err)
			}
			for span := time.Second; span < 5*time.Minute; span *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), span)
				_, err = client.Heartbeat(ctx, "worker", protocol.Heartbeat{})
				cancel()
				if !strings.Contains(err.Error(), "cannot be reached") { // on a busy machine it is not answered in time
					break
				}
			}
			var told protocol.Kept
			if errors.As(err, &told) != want || !problem.Is(err, problem.Unavailable) {
				t.Errorf("%q with a patience of %v: %v", header, patience, err)
			}
		}
	}
}
