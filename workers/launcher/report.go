package launcher

import (
	"cmp"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

// Report is all that is known, for the server. Engine and EverySeconds are left to who
// looks; trouble is why nothing could be seen of the engine, or nil.
func (p *Planner) Report(now time.Time, notes []crew.LaunchNote, trouble error) crew.LauncherReport {
	m := p.Memory
	report := crew.LauncherReport{Over: slices.Clone(m.Over[:min(len(m.Over), mostOver)])}
	if trouble != nil {
		report.Trouble = clip(trouble.Error(), 1024)
	}
	report.Notes = []crew.LaunchNote{}
	for _, note := range notes[:min(len(notes), mostNotes)] {
		note.Says = clip(note.Says, 1024)
		report.Notes = append(report.Notes, note)
	}
	report.Ends = append([]crew.LaunchEnd{}, m.Ends...)
	report.Shapes = []crew.LaunchShape{}
	for _, shape := range p.Shapes {
		if r := m.record(shape.Name); len(report.Shapes) < mostShapes {
			report.Shapes = append(report.Shapes, p.shown(now, shape, r))
		}
	}
	return report
}

// mostShapes, mostReasons and mostNotes bound a report.
const mostShapes, mostReasons, mostNotes = 50, 10, 50

// shown is a shape with what there is of it.
func (p *Planner) shown(now time.Time, s Shape, r *record) crew.LaunchShape {
	shown := crew.LaunchShape{
		Name: s.Name, GPUs: s.GPUs, GPUType: s.GPUType, Cores: s.Cores, MemoryGiB: s.MemoryGiB, Trials: s.Trials, Most: s.Most,
		Wanted: r.Wanted + r.Withheld,
	}
	waits := map[string]*crew.LaunchWait{}
	for _, h := range p.Memory.Launches {
		switch {
		case h.Job.Shape != s.Name || h.Over:
		case h.Job.State == Pending:
			shown.Pending++
			since := cmp.Or(h.Ordered, h.Seen)
			why := clip(h.Job.Why, 512)
			wait := waits[why]
			if wait == nil {
				wait = &crew.LaunchWait{Why: why, Since: since}
				waits[why] = wait
			}
			wait.Workers++
			if since.Before(wait.Since) {
				wait.Since = since
			}
		case h.Registered.IsZero():
			shown.Starting++
		default:
			shown.Running++
		}
	}
	for _, wait := range waits {
		shown.Waits = append(shown.Waits, *wait)
	}
	slices.SortFunc(shown.Waits, func(a, b crew.LaunchWait) int { return cmp.Or(b.Workers-a.Workers, cmp.Compare(a.Why, b.Why)) })
	shown.Waits = shown.Waits[:min(len(shown.Waits), mostReasons)]
	if count := len(r.Waits); count > 0 {
		sorted := slices.Sorted(slices.Values(r.Waits))
		shown.Learned = &crew.LaunchLearned{Workers: count, MedianSeconds: sorted[(count-1)/2].Seconds(), MostSeconds: sorted[(count*9+9)/10-1].Seconds()}
	}
	if now.Before(r.Until) {
		shown.Hold = &crew.LaunchHold{Why: r.Why, Until: r.Until}
	}
	return shown
}
