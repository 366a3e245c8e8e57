package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/web/report"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/replay"
	"github.com/tandem-tune/tandem/workers/replay/policies"
)

// replayed plays so many jobs on two machines under two policies.
func replayed(t *testing.T, jobs int) report.Replay {
	t.Helper()
	profile := &replay.Profile{Name: "p", On: map[string]placement.Prediction{"big": {Seconds: 1, Joules: 100}, "small": {Seconds: 2, Joules: 50}}}
	cluster := replay.Cluster{
		Types:    []replay.Type{{Name: "big", Capacity: placement.Resources{GPUs: 4}, IdleWatts: 10}, {Name: "small", Capacity: placement.Resources{GPUs: 2}, IdleWatts: 5}},
		Machines: []replay.Machine{{Name: "<b>rack</b>", Type: "big"}, {Name: "desk", Type: "small"}},
	}
	var list []replay.Job
	for i := range jobs {
		list = append(list, replay.Job{Name: fmt.Sprint("job", i), Profile: profile, Work: 100, Arrives: float64(10 * i), Needs: placement.Resources{GPUs: 1 + i%2}, Priority: i % 2})
	}
	source := report.Replay{Trace: "<script>week</script>", Cluster: cluster, Notes: []string{"half of it was left out & forgotten"}, Written: time.Unix(0, 0), Program: "test"}
	for _, policy := range []replay.Policy{policies.Spread(1), policies.Heats(policies.Recorded(list), 1)} {
		outcome, err := replay.Play(cluster, list, policy, replay.Settings{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		source.Outcomes = append(source.Outcomes, outcome)
	}
	return source
}

func TestAReplaysPageSaysWhatCameOfIt(t *testing.T) {
	t.Parallel()
	source := replayed(t, 30)
	var out strings.Builder
	if err := report.WriteReplay(&out, source); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, wanted := range []string{
		"Replay of &lt;script&gt;week&lt;/script&gt;", "30 jobs on 2 machines", "heats H=1", "half of it was left out &amp; forgotten", "&lt;b&gt;rack&lt;/b&gt;",
		`id="busy"`, `id="watts"`, `id="waiting"`, `id="gantt0"`, `id="gantt1"`, "job job29", "By priority", "Energy (estimate)", "default-src &#39;none&#39;",
		fmt.Sprintf("%+.1f%%", 100*(source.Outcomes[1].Total/source.Outcomes[0].Total-1)),
	} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page does not have %q", wanted)
		}
	}
	for _, pattern := range []string{`(?i)<script`, `(?i)\ssrc=`, `(?i)\shref=`, `(?i)\sstyle=`, `NaN|Inf`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if bars := strings.Count(page, `class="span shade`); bars != 2*30+2*2 { // and two keys for each drawing
		t.Errorf("%d bars are drawn, want one for each job and policy, and two keys each", bars)
	}
}

// Of thousands of stays it is drawn how full the machines were.
func TestAReplaysPageOfManyJobsStaysSmall(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := report.WriteReplay(&out, replayed(t, 5000)); err != nil {
		t.Fatal(err)
	}
	if page := out.String(); len(page) > 1<<20 || !strings.Contains(page, "5000 stays are too many") {
		t.Errorf("the page has %d bytes, and says that not every stay is drawn: %v", len(page), strings.Contains(page, "too many"))
	}
	if err := report.WriteReplay(&out, report.Replay{}); err == nil {
		t.Error("a page of nothing should be an error")
	}
}

// What stays the same is drawn the same, wherever steps fall between the means.
func TestMeansOverTimeAreMeans(t *testing.T) {
	t.Parallel()
	for seed := range 200 {
		makespan := 29_074_921.0 / float64(seed+1)
		outcome := replay.Outcome{Policy: "p", Makespan: makespan}
		for i := range 240 {
			outcome.Steps = append(outcome.Steps, replay.Step{At: float64(i) * makespan / 240, Waiting: 5})
		}
		var out strings.Builder
		if err := report.WriteReplay(&out, report.Replay{Outcomes: []replay.Outcome{outcome}, Written: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
		if tenths := strings.Count(out.String(), ">5.0<"); tenths != 10 {
			t.Fatalf("over %g s, %d of 10 means are 5.0, and all should be", makespan, tenths)
		}
	}
}
