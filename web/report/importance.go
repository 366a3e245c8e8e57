package report

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/format"
)

// importanceFigure says which parameters made the good trials good, at the
// highest rung with enough trials.
func importanceFigure(source Source) figure {
	f := figure{ID: "importance", Title: "Which parameters mattered", Width: wide, Height: 40}
	if source.Importance == nil || len(source.Importance.Rungs) == 0 {
		f.Summary = "Not known: too few trials were measured."
		return f
	}
	rung := source.Importance.Rungs[0]
	bars := rung.Parameters[:min(len(rung.Parameters), maxBars)]
	f.Height = 22*float64(len(bars)) + 34
	f.Summary = fmt.Sprintf("Each parameter's part in what makes the best %d of %s at rung %d (%s) good.", rung.Best, format.Count(rung.Trials, "trial"), rung.Rung, format.Budget(rung.Budget))
	f.Numbers = &table{Caption: "Shares, and the chance of as much if the parameter did nothing", Heading: []string{"Parameter", "Share", "Chance", ""}}
	x := scale{low: 0, high: 1, from: 190, to: f.Width - 220}
	for i, one := range bars {
		y := 8 + 22*float64(i)
		share, doubt, class := fmt.Sprintf("%.0f%%", 100*one.Share), "", "bar"
		if one.Chance != nil && *one.Chance > 0.05 {
			doubt, class = "may be chance", "bar faint"
		}
		f.text("label end", x.from-8, y+13, clipped(one.Name, 26))
		f.bar(class, box{x.from, y, x.at(one.Share) - x.from, 16}, one.Name+": "+share)
		f.text("label", x.at(one.Share)+6, y+13, share+suffix(doubt))
		chance := ""
		if one.Chance != nil {
			chance = fmt.Sprintf("%.3f", *one.Chance)
		}
		f.Numbers.Rows = append(f.Numbers.Rows, []cell{words(one.Name), numeral(share), numeral(chance), words(doubt)})
	}
	f.line("axis", x.from, 4, x.from, f.Height-22)
	if left := len(rung.Parameters) - len(bars); left > 0 {
		f.note(fmt.Sprintf("%s with smaller shares are left out.", format.Count(left, "parameter")))
	}
	f.Notes = append(f.Notes, source.Importance.Notes...)
	f.note("Method: " + source.Importance.Method)
	return f
}

func suffix(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
