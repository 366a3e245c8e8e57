package tandem

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// late answers after two days, as a worker does whose server is away.
type late struct{ calls int }

func (l *late) RoundTrip(request *http.Request) (*http.Response, error) {
	l.calls++
	select {
	case <-time.After(48 * time.Hour):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"action": "continue"}`))}, nil
}

// A program outlives a server that is away: its worker ends it where that makes no sense.
func TestAProgramWaitsForAServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &late{}
		w := &worker{to: &transport{base: "http://worker", http: &http.Client{Transport: slow}, patience: defaultPatience}}
		answer, err := w.report(t.Context(), 1, nil, 0)
		if err != nil || answer.Action != goOn {
			t.Errorf("the report: %+v, %v", answer, err)
		}
		if err := w.publish(t.Context(), 1); err != nil || slow.calls != 2 {
			t.Errorf("the checkpoint: %v, %d calls", err, slow.calls)
		}
	})
}
