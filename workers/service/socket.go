package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// callPatience is how long an answer may take: a checkpoint is uploaded meanwhile, and
// the next trial waited for.
const callPatience = 10 * time.Minute

// call asks the worker, as any script does (docs/training-scripts.md).
func call(ctx context.Context, socket, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	stalled := func(err error) { fmt.Fprintln(os.Stderr, "tandem: the worker does not answer:", err) }
	return retry.Do(ctx, callPatience, stalled, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+path, bytes.NewReader(content))
		if err != nil {
			return retry.Local{Err: err}
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return problem.New(problem.Unavailable, "%w", err)
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		if response.StatusCode == http.StatusOK {
			return json.NewDecoder(response.Body).Decode(answer)
		}
		var refused struct {
			Code   problem.Code `json:"code"`
			Detail string       `json:"detail"`
		}
		if err := json.NewDecoder(response.Body).Decode(&refused); err != nil {
			return problem.New(problem.Unavailable, "%s: %s", path, response.Status)
		}
		return problem.New(refused.Code, "%s: %s", path, refused.Detail)
	})
}
