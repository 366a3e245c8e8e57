package report

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/workers/replay"
)

// Replay is what a page about replayed jobs is made of.
type Replay struct {
	// Trace names the recording.
	Trace   string
	Cluster replay.Cluster
	// Outcomes are of the policies, the first one is what others are compared
	// with; their spans and steps are drawn.
	Outcomes []replay.Outcome
	Notes    []string
	Written  time.Time
	Program  string
}

//go:embed replay.html
var replayText string

// replayPage is what the template shows.
type replayPage struct {
	head
	Source, Answer            string
	Board, Energy, Priorities *table
	Users                     *table
	Notes                     []string
	Figures                   []figure
}

// WriteReplay writes the page about replayed jobs. An error is that of the
// writer, or that there is no outcome.
func WriteReplay(out io.Writer, source Replay) error {
	if len(source.Outcomes) == 0 {
		return fmt.Errorf("a page about replayed jobs needs an outcome")
	}
	page, err := template.New("study").Funcs(template.FuncMap{"number": coordinate}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the template of reports: %w", err)
	}
	if page, err = page.New("replay").Parse(replayText); err != nil {
		return fmt.Errorf("read the template of replays: %w", err)
	}
	view := replayPage{
		head:   headOf("Replay of "+source.Trace, "replay"),
		Source: fmt.Sprintf("%s on %s, in simulated time. Written %s by tandem %s.", format.Count(source.Outcomes[0].Jobs, "job"), format.Count(len(source.Cluster.Machines), "machine"), source.Written.UTC().Format("2006-01-02 15:04 UTC"), source.Program),
		Answer: replayAnswer(source.Outcomes), Board: replayBoard(source.Outcomes), Energy: replayEnergy(source.Outcomes), Priorities: replayPriorities(source.Outcomes), Users: replayUsers(source.Outcomes),
		Notes: append([]string{"Nothing was run: seconds follow from the recorded work, joules from it and the watts of the described machines."}, source.Notes...),
	}
	view.Figures = append(view.Figures, overTime(source, "busy"), overTime(source, "watts"), overTime(source, "waiting"))
	for i, one := range source.Outcomes {
		view.Figures = append(view.Figures, ganttFigure(source, one, i))
	}
	return page.Execute(out, view)
}

func replayAnswer(outcomes []replay.Outcome) string {
	least, soonest := outcomes[0], outcomes[0]
	for _, one := range outcomes {
		if one.Total < least.Total {
			least = one
		}
		if one.Completion.Mean < soonest.Completion.Mean {
			soonest = one
		}
	}
	text := fmt.Sprintf("%s takes the least energy, an estimated %s", least.Policy, kilowattHours(least.Total))
	if first := outcomes[0]; least.Policy != first.Policy {
		text += fmt.Sprintf(" (%s than %s)", lessThan(least.Total, first.Total), first.Policy)
	}
	text += fmt.Sprintf("; %s is done with jobs the soonest, after %s on average", soonest.Policy, format.Seconds(soonest.Completion.Mean))
	if first := outcomes[0]; soonest.Policy != first.Policy {
		text += fmt.Sprintf(" (%s than %s)", lessThan(soonest.Completion.Mean, first.Completion.Mean), first.Policy)
	}
	return text + "."
}

func lessThan(value, base float64) string { return fmt.Sprintf("%.1f%% less", 100*(1-value/base)) }

func kilowattHours(joules float64) string { return fmt.Sprintf("%.1f kWh", joules/3.6e6) }

func share(value float64) string { return fmt.Sprintf("%.1f%%", 100*value) }

func replayBoard(outcomes []replay.Outcome) *table {
	t := &table{Caption: "What each policy came to", Heading: []string{"Policy", "Energy (estimate)", "Change", "Mean completion", "95% within", "Mean wait", "Makespan", "Given away", "At work", "Moves", "Ended for others", "Out of memory"}}
	for i, one := range outcomes {
		change := "-"
		if i > 0 {
			change = fmt.Sprintf("%+.1f%%", 100*(one.Total/outcomes[0].Total-1))
		}
		t.Rows = append(t.Rows, []cell{words(one.Policy), numeral(kilowattHours(one.Total)), numeral(change), numeral(format.Seconds(one.Completion.Mean)), numeral(format.Seconds(one.Completion.P95)),
			numeral(format.Seconds(one.Waiting.Mean)), numeral(format.Seconds(one.Makespan)), numeral(share(one.Allocated)), numeral(share(one.Utilization)), numeral(strconv.Itoa(one.Migrations)), numeral(strconv.Itoa(one.Evictions)), numeral(strconv.Itoa(one.OutOfMemory))})
	}
	return t
}

func replayEnergy(outcomes []replay.Outcome) *table {
	t := &table{Caption: "Computed from profiles and watts: estimates", Heading: []string{"Policy", "Work of jobs", "Of it wasted", "Idle machines", "Asleep", "Waking up", "Moves"}}
	for _, one := range outcomes {
		row := []cell{words(one.Policy)}
		for _, joules := range []float64{one.Energy.Work, one.Energy.Wasted, one.Energy.Idle, one.Energy.Asleep, one.Energy.Waking, one.Energy.Moves} {
			row = append(row, numeral(kilowattHours(joules)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func replayPriorities(outcomes []replay.Outcome) *table {
	t := &table{Caption: "What the jobs of each priority met with", Heading: []string{"Policy", "Priority", "Jobs", "Mean completion", "95% within", "Mean wait"}}
	for _, one := range outcomes {
		for _, of := range one.Priorities {
			t.Rows = append(t.Rows, []cell{words(one.Policy), numeral(strconv.Itoa(of.Priority)), numeral(strconv.Itoa(of.Jobs)), numeral(format.Seconds(of.Completion.Mean)), numeral(format.Seconds(of.Completion.P95)), numeral(format.Seconds(of.Waiting.Mean))})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// mostUsersShown is how many users of a policy have a row: those with the most GPU time.
const mostUsersShown = 20

func replayUsers(outcomes []replay.Outcome) *table {
	t := &table{
		Caption: "What the jobs of each user met with: how many times as long as alone they took, the mean dominant share of the pool while they wanted some, and Jain's index of the users' slowdowns (1: all alike)",
		Heading: []string{"Policy", "User", "Jobs", "Mean completion", "Mean wait", "Mean slowdown", "Share of the pool", "Fairness"},
	}
	for _, one := range outcomes {
		for _, of := range one.Users[:min(len(one.Users), mostUsersShown)] {
			t.Rows = append(t.Rows, []cell{
				words(one.Policy), words(of.User), numeral(strconv.Itoa(of.Jobs)), numeral(format.Seconds(of.Completion.Mean)), numeral(format.Seconds(of.Waiting.Mean)),
				numeral(fmt.Sprintf("%.1f", of.Slowdown.Mean)), numeral(fmt.Sprintf("%.1f%%", 100*of.Share)), numeral(fmt.Sprintf("%.2f", one.Fairness)),
			})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// drawnPoints is how many means a line over time is drawn through.
const drawnPoints = 240

// overTime draws what a step says, by policy, as means over equal times.
func overTime(source Replay, what string) figure {
	f := figure{ID: what, Width: wide, Height: 280}
	of, shown := func(s replay.Step) float64 { return s.Busy }, "kept busy"
	switch what {
	case "busy":
		f.Title = "GPUs at work over time"
	case "watts":
		f.Title, shown = "Power over time (estimate)", "kW"
		of = func(s replay.Step) float64 { return s.Watts / 1000 }
	default:
		f.Title, shown = "Jobs that wait", "jobs"
		of = func(s replay.Step) float64 { return float64(s.Waiting) }
	}
	longest, most := 0.0, 0.0
	lines := make([][]float64, len(source.Outcomes))
	for _, one := range source.Outcomes {
		longest = max(longest, one.Makespan)
	}
	for i, one := range source.Outcomes {
		lines[i] = means(one, longest, of)
		most = max(most, slices.Max(lines[i]))
	}
	if what == "busy" {
		most = max(most, float64(source.Outcomes[0].Units))
	}
	a := plotIn(f.Width, f.Height, scale{high: max(longest, 1e-9), seconds: true}, scale{high: max(most, 1e-9)})
	f.frame(a, "since the first job arrived", shown, sinceStart)
	for i, line := range lines {
		var path trace
		for at, value := range line {
			if end := (float64(at) + 0.5) * longest / drawnPoints; end <= source.Outcomes[i].Makespan || at == 0 {
				path.to(a.x.at(end), a.y.at(value))
			}
		}
		class := "curve " + rungClass(i, len(lines))
		if i == 0 {
			class = "curve leader" // what the others are compared with
		}
		f.path(class, &path, source.Outcomes[i].Policy)
		f.Keys = append(f.Keys, key{class, "line", source.Outcomes[i].Policy})
	}
	f.Summary = fmt.Sprintf("%s for %s, over %s; each line is drawn through means over %s.", f.Title, policies(len(lines)), format.Seconds(longest), format.Seconds(longest/drawnPoints))
	f.Numbers = tenths(source.Outcomes, lines, longest)
	return f
}

// sinceStart is a time on an axis.
func sinceStart(seconds float64) string {
	if seconds < 1e-9 {
		return "0"
	}
	return format.Seconds(seconds)
}

// tenths are the means of the lines over tenths of the time.
func tenths(outcomes []replay.Outcome, lines [][]float64, longest float64) *table {
	t := &table{Caption: "Means over tenths of the time", Heading: []string{"From"}}
	for _, one := range outcomes {
		t.Heading = append(t.Heading, one.Policy)
	}
	for part := range 10 {
		row := []cell{numeral(sinceStart(longest * float64(part) / 10))}
		for _, line := range lines {
			sum := 0.0
			for _, value := range line[part*drawnPoints/10 : (part+1)*drawnPoints/10] {
				sum += value
			}
			row = append(row, numeral(fmt.Sprintf("%.1f", sum/(drawnPoints/10))))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// means are those of equal parts of the time, from the first step on.
func means(o replay.Outcome, longest float64, of func(replay.Step) float64) []float64 {
	sums := make([]float64, drawnPoints)
	if len(o.Steps) == 0 || longest <= 0 {
		return sums
	}
	width, start := longest/drawnPoints, o.Steps[0].At
	for i, one := range o.Steps {
		from, to := one.At-start, o.Makespan
		if i+1 < len(o.Steps) {
			to = o.Steps[i+1].At - start
		}
		value := of(one)
		for from < to {
			at := min(drawnPoints-1, int(from/width))
			if at < drawnPoints-1 && float64(at+1)*width <= from { // rounding
				at++
			}
			end := min(to, float64(at+1)*width)
			if at == drawnPoints-1 {
				end = to
			}
			sums[at] += value * (end - from) / width
			from = end
		}
	}
	return sums
}
