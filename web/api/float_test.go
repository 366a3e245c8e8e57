package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/trouble"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// raw asks as a client without manners could, over the rig's network.
func (r *rig) raw(c *crossing, method, path, body string) (status int, answer string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.ctx, method, "http://"+rigAddress+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+r.token)
	response, err := c.base.RoundTrip(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestEveryNumberComesBackAsItWasSent reports values that are no ordinary
// numbers, to servers on every store, and reads them back from all places that
// have them. None that says "diverged" is ever the best.
func TestEveryNumberComesBackAsItWasSent(t *testing.T) {
	values := []struct {
		sent, stored string // empty: it is refused
	}{
		{`0.5`, `0.5`}, {`"NaN"`, `"NaN"`}, {`"Infinity"`, `"Infinity"`}, {`-0.0`, `-0`}, {`-0`, `-0`}, {`0`, `0`},
		{`5e-324`, `5e-324`}, {`-5e-324`, `-5e-324`}, {`2.2250738585072011e-308`, `2.225073858507201e-308`},
		{`1.7976931348623157e308`, `1.7976931348623157e+308`}, {`0.1`, `0.1`}, {`9007199254740993`, `9.007199254740992e+15`}, {`1e-999`, `0`},
		{`1e999`, ``}, {`-1e999`, ``}, {`1e309`, ``}, {`"1e999"`, ``}, {`"inf"`, ``}, {`"nan"`, ``}, {`null`, ``}, {`NaN`, ``}, {`Infinity`, ``}, {`0x10`, ``}, {`1_000`, ``}, {`.5`, ``},
	}
	const file = `
name: numbers
command: [train]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 1, max: 1}}
search: {method: random, seed: 3}
stop: {trials: 100}
`
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			onRig(t, open, func(r *rig) {
				c := r.client(1, trouble.Odds{})
				if _, err := c.CreateStudy(r.ctx, []byte(file), "application/yaml"); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Register(r.ctx, protocol.WorkerRegistration{ID: "worker-one", Name: "one", Slots: 1}); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Lease(r.ctx, protocol.LeaseRequest{Worker: "worker-one"})
				if err != nil || reply.Lease == nil {
					t.Fatal(err)
				}
				for _, value := range values {
					body := fmt.Sprintf(`{"lease_epoch": %d, "epoch": 1, "metrics": {"loss": %s}}`, reply.Lease.LeaseEpoch, value.sent)
					status, answer := r.raw(c, "POST", "/trials/"+string(reply.Lease.Trial)+"/reports", body)
					if value.stored == "" {
						if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity || !strings.Contains(answer, `"path":"metrics`) {
							t.Errorf("%s was answered with %d: %s", value.sent, status, answer)
						}
						continue
					}
					if status != http.StatusOK {
						t.Errorf("%s was refused with %d: %s", value.sent, status, answer)
						continue
					}
					r.readBack(c, *reply.Lease, value.stored)
					if _, err := c.Finish(r.ctx, reply.Lease.Trial, protocol.FinishRequest{LeaseEpoch: reply.Lease.LeaseEpoch, Outcome: protocol.BudgetReached}); err != nil {
						t.Fatal(err)
					}
					if reply, err = c.Lease(r.ctx, protocol.LeaseRequest{Worker: "worker-one"}); err != nil || reply.Lease == nil {
						t.Fatal(err)
					}
				}
				view, err := c.Study(r.ctx, "numbers")
				if err != nil || view.Progress.Best == nil || float64(view.Progress.Best.Value) != -5e-324 {
					t.Errorf("the best is %+v, %v", view.Progress.Best, err)
				}
				page, err := c.Trials(r.ctx, "numbers", protocol.TrialQuery{})
				if err != nil || len(page.Trials) < 13 {
					t.Fatalf("%d trials, %v", len(page.Trials), err)
				}
				var behind []bool // which of the last two are no numbers
				for _, one := range page.Trials {
					if value, measured := one.Value(0); measured && !value.IsFinite() {
						behind = append(behind, one.Rank >= 12)
					}
				}
				if fmt.Sprint(behind) != "[true true]" {
					t.Errorf("trials that diverged are ranked %v", behind)
				}
			})
		})
	}
}

// readBack finds the value as it is stored in the trial, its report, its result
// and the study's log.
func (r *rig) readBack(c *crossing, lease protocol.Lease, want string) {
	r.t.Helper()
	status, answer := r.raw(c, "GET", fmt.Sprintf("/studies/numbers/trials/%d", lease.Number), "")
	var detail struct {
		Trial struct {
			Last    map[string]json.RawMessage `json:"last"`
			Results []struct {
				Values []json.RawMessage `json:"values"`
			} `json:"results"`
		} `json:"trial"`
		Reports []struct {
			Metrics map[string]json.RawMessage `json:"metrics"`
		} `json:"reports"`
		Events []struct {
			Kind string `json:"kind"`
			Data struct {
				Metrics map[string]json.RawMessage `json:"metrics"`
			} `json:"data"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(answer), &detail); err != nil || status != http.StatusOK || len(detail.Trial.Results) != 1 || len(detail.Reports) != 1 {
		r.t.Fatalf("%d: %v in %s", status, err, answer)
	}
	found := map[string]string{
		"the trial": string(detail.Trial.Last["loss"]), "its result": string(detail.Trial.Results[0].Values[0]), "its report": string(detail.Reports[0].Metrics["loss"]),
	}
	for _, event := range detail.Events {
		if event.Kind == "report" {
			found["the log"] = string(event.Data.Metrics["loss"])
		}
	}
	if len(found) != 4 {
		r.t.Errorf("found only %v", found)
	}
	for where, text := range found {
		if text != want {
			r.t.Errorf("%s has %s, want %s", where, text, want)
		}
	}
}
