package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

func TestAWorkerWithoutATokenSaysSoAtOnce(t *testing.T) {
	t.Setenv("TANDEM_TOKEN", "")
	var stdout, stderr bytes.Buffer
	// Nobody listens there: a worker with a token would wait for its server.
	code := term.Execute(t.Context(), rootCommand(), []string{"worker", "--server", "http://127.0.0.1:1", "--scratch", t.TempDir()}, &stdout, &stderr)
	if code != term.ExitUsage || !strings.Contains(stderr.String(), "set TANDEM_TOKEN") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}
