package api_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// asked are forecasts that note for whom they are.
type asked struct {
	mutex   sync.Mutex
	callers []access.Caller
	minutes []int
	queries []protocol.PoolAdviceQuery
}

// Forecast notes the caller.
func (a *asked) Forecast(caller access.Caller, minutes int) protocol.PoolForecast {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.callers, a.minutes = append(a.callers, caller), append(a.minutes, minutes)
	return protocol.PoolForecast{Unit: protocol.DemandGPUs, Owner: caller.Owner}
}

// Advice notes what was asked.
func (a *asked) Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.queries = append(a.queries, query)
	if query.Least == 7 {
		return protocol.PoolAdvice{}, problem.New(problem.Invalid, "least is 7: not today")
	}
	return protocol.PoolAdvice{Unit: protocol.DemandGPUs}, nil
}

func TestForecastsAreAskedForOnTheCallersBehalf(t *testing.T) {
	t.Parallel()
	told := &asked{}
	s := newStage(t, func(c *api.Config) { c.Forecasts = told })
	for scope, want := range map[auth.Scope]access.Caller{
		auth.Admin: {Holder: access.Administrators}, auth.User: {Owner: "test", Sight: access.Own, Holder: "user:test"},
	} {
		got := s.do(ask{method: "GET", path: "/api/v1/pool/forecast?minutes=90", token: s.secrets[scope]})
		var answer protocol.PoolForecast
		if err := json.Unmarshal(got.body, &answer); err != nil || got.status != 200 || answer.Owner != want.Owner || answer.Minutes == nil || answer.Ahead == nil {
			t.Errorf("%s: %d %s, %v", scope, got.status, got.body, err)
		}
		if last := len(told.callers) - 1; told.callers[last] != want || told.minutes[last] != 90 {
			t.Errorf("%s: asked by %+v for %d minutes", scope, told.callers[last], told.minutes[last])
		}
	}
	if s.admin("GET", "/api/v1/pool/forecast", ""); told.minutes[len(told.minutes)-1] != 360 {
		t.Errorf("asked for %v minutes", told.minutes)
	}
	if got := s.admin("GET", "/api/v1/pool/advice?performance=0.9&least=2", ""); got.status != 200 || told.queries[0] != (protocol.PoolAdviceQuery{Performance: 0.9, Least: 2}) {
		t.Errorf("%d %s: %+v", got.status, got.body, told.queries)
	}
	s.admin("GET", "/api/v1/pool/advice?least=7", "").problem(t, 422, problem.Invalid)
	for _, path := range []string{"/forecast?minutes=0", "/forecast?minutes=99999", "/advice?performance=1.5", "/advice?performance=-1", "/advice?least=-1", "/advice?hope=1"} {
		s.admin("GET", "/api/v1/pool"+path, "").problem(t, 422, problem.Invalid)
	}
}

func TestAServerThatForecastsNothingSaysSo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var forecast protocol.PoolForecast
	got := s.admin("GET", "/api/v1/pool/forecast", "")
	if err := json.Unmarshal(got.body, &forecast); err != nil || got.status != 200 || forecast.Reason == "" || forecast.Method != "" {
		t.Errorf("%d %s: %v", got.status, got.body, err)
	}
	s.admin("GET", "/api/v1/pool/advice?performance=NaN", "").problem(t, 422, problem.Invalid)
	var advice protocol.PoolAdvice
	got = s.admin("GET", "/api/v1/pool/advice", "")
	if err := json.Unmarshal(got.body, &advice); err != nil || got.status != 200 || advice.Reason == "" || advice.Wanted != advice.Awake {
		t.Errorf("%d %s: %v", got.status, got.body, err)
	}
}
