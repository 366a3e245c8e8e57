package ui_test

import (
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	launched "github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/web/auth"
)

// launches has a launcher with the token report that a shape is on hold, and returns what
// it is asked for.
func (s *stage) launches(of auth.Scope, why string) []string {
	s.t.Helper()
	client, err := rest.New(rest.Options{URL: s.url, Token: s.tokens[of]})
	if err != nil {
		s.t.Fatal(err)
	}
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	reply, err := client.ReportLauncher(s.t.Context(), "tandem", launched.LauncherReport{LauncherState: launched.LauncherState{
		Engine: "slurm", EverySeconds: 10,
		Shapes: []launched.LaunchShape{
			{Name: "cpu", Cores: 4, Trials: 1, Most: 8, Wanted: 3, Pending: 2, Running: 4, Waits: []launched.LaunchWait{{Workers: 2, Why: why, Since: at}}, Learned: &launched.LaunchLearned{Workers: 9, MedianSeconds: 40, MostSeconds: 130}},
			{Name: "gpu1", GPUs: 1, Cores: 4, Trials: 1, Most: 8, Wanted: 1, Hold: &launched.LaunchHold{Why: "no GPU is there", Until: at}},
		},
		Notes: []launched.LaunchNote{{Says: why}},
		Ends:  []launched.LaunchEnd{{At: at, Shape: "gpu1", Launch: "L-0", Job: "7_0", Node: "n1", Cause: protocol.Crashed, Why: why, Seconds: 3}},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.TryAgain
}

// tryLaunches: what launchers start is shown with the engine's reasons, and a press of a
// button has a shape tried that is on hold.
func tryLaunches(s *stage, p *tab) {
	p.see(`["launches-card", "ends-card"].map(id => document.getElementById(id).hidden)`, []bool{true, true})
	s.launches(auth.User, "waits behind jobs that go first")
	p.do(chromedp.Reload())
	p.see(`[...document.querySelectorAll("#launches tbody tr")].map(row => [1, 2, 3, 4, 5].map(cell => row.cells[cell].textContent).join("|"))`, []string{"3|2|0|4|8", "1|0|0|0|8"})
	p.seeText("#launches", "waits behind jobs that go first.")
	p.seeText("#launches", "half at most 40.0 s, 9 of 10 at most 2 min 10 s")
	p.seeText("#launches", "as the last workers brought no trial: no GPU is there.")
	p.seeText("#ends", "7_0")
	p.seeText("#ends-count", "1 worker")
	p.click("#launches button")
	p.seeText("#launches", "The launcher is asked to try again.")
	if again := s.launches(auth.User, "waits behind jobs that go first"); len(again) != 1 || again[0] != "gpu1" {
		s.t.Errorf("the launcher is asked to try %v", again)
	}
}
