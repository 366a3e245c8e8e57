package report

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

// systemFigure says under which system configurations the epochs ran.
func systemFigure(source Source) figure {
	f := figure{ID: "system", Title: "System configurations", Width: wide, Height: 40}
	uses := source.Study.Progress.SystemUse
	if len(uses) == 0 {
		return f
	}
	shown := uses[:min(len(uses), maxBars)]
	most, total := 0, 0
	for _, one := range uses {
		most, total = max(most, one.Epochs), total+one.Epochs
	}
	f.Height = 22*float64(len(shown)) + 34
	f.Summary = fmt.Sprintf("%s ran under %s, tuned while trials trained.", format.Count(total, "epoch"), format.Count(len(uses), "system configuration"))
	f.Numbers = &table{Caption: "What the epochs took, and what was measured to be saved against the default",
		Heading: []string{"Configuration", "Why", "Epochs", "Seconds an epoch", "Energy of these epochs", "Saved seconds", "Saved joules"}}
	x := scale{low: 0, high: float64(most), from: 330, to: f.Width - 130}
	for i, one := range shown {
		y := 8 + 22*float64(i)
		configuration, phase := format.Parameters(one.Configuration), string(cmp.Or(one.Phase, "not followed"))
		f.text("label end", x.from-8, y+13, clipped(configuration+", "+phase, 46))
		f.bar("bar", box{x.from, y, x.at(float64(one.Epochs)) - x.from, 16}, configuration+", "+phase)
		f.text("label", x.at(float64(one.Epochs))+6, y+13, format.Count(one.Epochs, "epoch"))
		f.Numbers.Rows = append(f.Numbers.Rows, systemRow(source, one, configuration, phase))
	}
	f.line("axis", x.from, 4, x.from, f.Height-22)
	if left := len(uses) - len(shown); left > 0 {
		f.note(fmt.Sprintf("%s left out.", format.Count(left, "configuration")))
	}
	return f
}

func systemRow(source Source, one trial.SystemUse, configuration, phase string) []cell {
	mean := "-"
	if one.Epochs > 0 {
		mean = fmt.Sprintf("%.3g", float64(one.Seconds)/float64(one.Epochs))
	}
	seconds, joules := "-", "-"
	if one.Saved != nil {
		seconds, joules = saved(one.Saved.Seconds), saved(one.Saved.Joules)
	}
	// What the study's joules are, these are: the sums carry no method of their own.
	energy := format.Energy(trial.Energy{Joules: one.Joules, Method: source.Study.Progress.Energy.Method})
	return []cell{words(configuration), words(phase), numeral(fmt.Sprint(one.Epochs)), numeral(mean), numeral(energy), numeral(seconds), numeral(joules)}
}

func saved(value trial.Float) string {
	if math.IsNaN(float64(value)) {
		return "-"
	}
	return fmt.Sprintf("%.3g", float64(value))
}

// savedWithInterval is a saving with its bounds, where it has some.
func savedWithInterval(of trial.Saving) string {
	with := func(value trial.Float, low, high *trial.Float, unit string) string {
		if low == nil || high == nil {
			return fmt.Sprintf("%s %s (an estimate)", saved(value), unit)
		}
		return fmt.Sprintf("%s %s (95%% interval %s to %s)", saved(value), unit, saved(*low), saved(*high))
	}
	return with(of.Seconds, of.SecondsLow, of.SecondsHigh, "s of machines") + ", " + with(of.Joules, of.JoulesLow, of.JoulesHigh, "J")
}
