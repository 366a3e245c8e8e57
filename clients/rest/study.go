package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// CreateStudy creates a study from its file. contentType is application/yaml
// or application/json; a file with faults is one invalid error with all of
// them, and a name that is taken is a conflict.
func (c StudyCalls) CreateStudy(ctx context.Context, file []byte, contentType string) (protocol.StudyView, error) {
	return fetch[protocol.StudyView](ctx, c.caller, request{method: http.MethodPost, path: path("studies"), contentType: contentType, body: file})
}

// CreateWarm is CreateStudy, in JSON, with results that were measured
// elsewhere; at most protocol.MaxPrior.
func (c StudyCalls) CreateWarm(ctx context.Context, file []byte, prior []protocol.Observation) (protocol.StudyView, error) {
	return exchange[protocol.StudyView](ctx, c.caller, path("studies"), struct {
		Study json.RawMessage        `json:"study"`
		Prior []protocol.Observation `json:"prior"`
	}{file, prior})
}

// Studies returns every study, the newest first.
func (c StudyCalls) Studies(ctx context.Context) ([]protocol.StudyView, error) {
	return list[protocol.StudyView](ctx, c.caller, "studies", path("studies"))
}

// Study returns a study by id or name.
func (c StudyCalls) Study(ctx context.Context, study string) (protocol.StudyView, error) {
	return get[protocol.StudyView](ctx, c.caller, path("studies", study), "")
}

// StudyDocument returns what the server has of a study as it sent it; at is the path
// below the study's, with a query, such as /curves?metric=loss.
func (c StudyCalls) StudyDocument(ctx context.Context, study, at string) (json.RawMessage, error) {
	below, query, _ := strings.Cut(at, "?")
	return get[json.RawMessage](ctx, c.caller, path("studies", study)+below, query)
}

// Enqueue makes a study try the configurations, in their order, before anything
// its search proposes. Parameters that one lacks are drawn by the server. A
// study that is over, or has no trials left, is a conflict.
func (c StudyCalls) Enqueue(ctx context.Context, study string, wanted protocol.EnqueueRequest) (protocol.EnqueueReply, error) {
	return exchange[protocol.EnqueueReply](ctx, c.caller, path("studies", study, "enqueue"), wanted)
}

// PauseStudy stops handing out trials; running ones give back after their epoch.
func (c StudyCalls) PauseStudy(ctx context.Context, study string) (protocol.StudyView, error) {
	return c.change(ctx, study, "pause")
}

// ResumeStudy lets a paused study go on.
func (c StudyCalls) ResumeStudy(ctx context.Context, study string) (protocol.StudyView, error) {
	return c.change(ctx, study, "resume")
}

// StopStudy ends a study now; what was measured stays.
func (c StudyCalls) StopStudy(ctx context.Context, study string) (protocol.StudyView, error) {
	return c.change(ctx, study, "stop")
}

// ExtendStudy gives a study more of what its stop section bounds; one that is over goes
// on where it ended. What could not make it go on is a conflict.
func (c StudyCalls) ExtendStudy(ctx context.Context, study string, more protocol.ExtendRequest) (protocol.StudyView, error) {
	return exchange[protocol.StudyView](ctx, c.caller, path("studies", study, "extend"), more)
}

// SetStudy changes a study's priority and how many of its trials run at once, from now on.
func (c StudyCalls) SetStudy(ctx context.Context, study string, wanted protocol.SetRequest) (protocol.StudyView, error) {
	return exchange[protocol.StudyView](ctx, c.caller, path("studies", study, "set"), wanted)
}

func (c StudyCalls) change(ctx context.Context, study, action string) (protocol.StudyView, error) {
	return fetch[protocol.StudyView](ctx, c.caller, request{method: http.MethodPost, path: path("studies", study, action)})
}

// DeleteStudy removes a study and everything of it.
func (c StudyCalls) DeleteStudy(ctx context.Context, study string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("studies", study)}, nil)
}

// Recommendation returns the study's answer.
func (c StudyCalls) Recommendation(ctx context.Context, study string) (protocol.Recommendation, error) {
	return get[protocol.Recommendation](ctx, c.caller, path("studies", study, "recommendation"), "")
}

// Deflation says what trials of a study leave out of their data, and why.
func (c StudyCalls) Deflation(ctx context.Context, study string) (protocol.StudyDeflation, error) {
	return get[protocol.StudyDeflation](ctx, c.caller, path("studies", study, "deflation"), "")
}

// Correlations says how far each rung's ranking of trials holds further up.
func (c StudyCalls) Correlations(ctx context.Context, study string) (protocol.Correlations, error) {
	return get[protocol.Correlations](ctx, c.caller, path("studies", study, "correlations"), "")
}

// Advice says what the study's results tell of its space.
func (c StudyCalls) Advice(ctx context.Context, study string) (protocol.Advice, error) {
	return get[protocol.Advice](ctx, c.caller, path("studies", study, "advice"), "")
}

// Importance says which parameters made the study's good trials good.
func (c StudyCalls) Importance(ctx context.Context, study string, query protocol.ImportanceQuery) (protocol.Importance, error) {
	return get[protocol.Importance](ctx, c.caller, path("studies", study, "importance"), aim(query.Objective, query.Rung).Encode())
}

// aim says which objective and rung an analysis is for.
func aim(objective int, rung *int) url.Values {
	values := url.Values{}
	if objective != 0 {
		values.Set("objective", strconv.Itoa(objective))
	}
	if rung != nil {
		values.Set("rung", strconv.Itoa(*rung))
	}
	return values
}

// Export downloads the study's trials as "csv", or everything as "json". A
// download that was cut short ends in an error, not in io.EOF.
func (c StudyCalls) Export(ctx context.Context, study, format string) (io.ReadCloser, error) {
	return c.send(ctx, request{
		method: http.MethodGet, path: path("studies", study, "export"), query: url.Values{"format": {format}}.Encode(), stream: true,
	})
}
