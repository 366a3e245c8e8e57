package rest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestARefusalThatKeepsLeasesIsToldApart: also when the patience of the call is over.
func TestARefusalThatKeepsLeasesIsToldApart(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"": false, "lost": false, "kept": true} {
		for _, patience := range []time.Duration{-1, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				s := &server{t: t, answer: always(http.StatusServiceUnavailable, "", "Tandem-Leases", header)}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := s.client(func(o *rest.Options) { o.Patience = patience }).Heartbeat(ctx, "worker", protocol.Heartbeat{})
				if errors.As(err, new(protocol.Kept)) != want || !problem.Is(err, problem.Unavailable) {
					t.Errorf("%q with a patience of %v: %v", header, patience, err)
				}
			})
		}
	}
}

// TestARefusedConnectionGivesNoLeaseAway: nobody is there who could, unlike behind one that is
// cut off, or answers nothing.
func TestARefusedConnectionGivesNoLeaseAway(t *testing.T) {
	t.Parallel()
	for number, want := range map[syscall.Errno]bool{syscall.ECONNREFUSED: true, syscall.ECONNRESET: false, syscall.EHOSTUNREACH: false, syscall.ETIMEDOUT: false} {
		for _, patience := range []time.Duration{-1, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				s := &server{t: t, answer: func(int, *http.Request) (*http.Response, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", number)}
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				client := s.client(func(o *rest.Options) { o.Patience = patience })
				_, err := client.Heartbeat(ctx, "worker", protocol.Heartbeat{})
				if errors.As(err, new(protocol.Kept)) != want || !problem.Is(err, problem.Unavailable) {
					t.Errorf("%v with a patience of %v: %v", number, patience, err)
				}
				if _, err := client.Report(ctx, "s-1", protocol.Report{}); errors.As(err, new(protocol.Kept)) {
					t.Errorf("%v: a report's error says that it is kept: %v", number, err)
				}
			})
		}
	}
}
