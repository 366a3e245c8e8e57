package rest

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Trials returns one page of a study's trials.
func (c StudyCalls) Trials(ctx context.Context, study string, query protocol.TrialQuery) (protocol.TrialPage, error) {
	values := url.Values{}
	states := make([]string, len(query.States))
	for i, state := range query.States {
		states[i] = string(state)
	}
	if len(states) > 0 {
		values.Set("state", strings.Join(states, ","))
	}
	if query.Rung != nil {
		values.Set("rung", strconv.Itoa(*query.Rung))
	}
	if query.Query != "" {
		values.Set("query", query.Query)
	}
	if query.Sort != "" {
		values.Set("sort", query.Sort)
	}
	if query.Descending {
		values.Set("order", "desc")
	}
	if query.Limit != 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	if query.Offset != 0 {
		values.Set("offset", strconv.Itoa(query.Offset))
	}
	return get[protocol.TrialPage](ctx, c.caller, path("studies", study, "trials"), values.Encode())
}

// Trial returns one trial with its reports and its history.
func (c StudyCalls) Trial(ctx context.Context, study string, number int) (protocol.TrialDetail, error) {
	return get[protocol.TrialDetail](ctx, c.caller, path("studies", study, "trials", strconv.Itoa(number)), "")
}

// TrialSamples returns what was sampled of the trial, as json, csv or openmetrics. The
// caller closes it.
func (c StudyCalls) TrialSamples(ctx context.Context, study string, number int, format string) (io.ReadCloser, error) {
	return c.send(ctx, request{
		method: http.MethodGet, path: path("studies", study, "trials", strconv.Itoa(number), "samples"), query: url.Values{"format": {format}}.Encode(), stream: true,
	})
}

// TrialLog returns what the trial's command printed.
func (c StudyCalls) TrialLog(ctx context.Context, study string, number int) (string, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: path("studies", study, "trials", strconv.Itoa(number), "log")})
	if err != nil {
		return "", err
	}
	defer answer.Close()
	text, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil {
		return "", c.away(err)
	}
	return string(text), nil
}
