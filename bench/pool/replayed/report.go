package replayed

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	poolreplay "github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/internal/format"
)

// The bounds of a drawing, in pixels, and what is drawn in it at most.
const (
	drawnWidth    = 1000.0
	drawnHeight   = 120.0
	barHeight     = 8.0
	drawnMachines = 40
	drawnStays    = 2_000
)

// drawing is what the page shows of a policy.
type drawing struct {
	Policy, Says string
	// Busy is the line of the GPUs at work, and Waits that of the jobs that wait.
	Busy, Waits string
	Rows        []drawnRow
	Height      float64
	Left        string
}

// drawnRow is a machine with what ran there.
type drawnRow struct {
	Name string
	At   float64
	Bars []drawnBar
}

type drawnBar struct {
	From, Wide float64
	Says       string
}

var page = template.Must(template.New("replay").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Replay of {{.Trace}}</title>
<style>body{font:15px sans-serif;margin:2em auto;max-width:1160px}pre{overflow-x:auto}svg{background:#f6f6f6;display:block;margin:.5em 0}text{font-size:9px}.bar{fill:#3b6ea5}.busy{fill:none;stroke:#3b6ea5}.waits{fill:none;stroke:#b3541e}</style>
<h1>Replay of {{.Trace}}</h1>
<p>Nothing was run: seconds follow from the recorded work, and joules, which are estimates, from it and the watts of the machines.</p>
<pre>{{.Table}}</pre>
{{range .Drawings}}<h2>{{.Policy}}</h2><p>{{.Says}}</p>
<svg width="1160" height="130" role="img" aria-label="GPUs at work and jobs that wait over time"><g transform="translate(140 5)"><polyline class="busy" points="{{.Busy}}"/><polyline class="waits" points="{{.Waits}}"/></g></svg>
<svg width="1160" height="{{.Height}}" role="img" aria-label="What ran where">{{range .Rows}}{{$at := .At}}<text x="2" y="{{.At}}" dy="8">{{.Name}}</text>{{range .Bars}}<rect class="bar" x="{{.From}}" y="{{$at}}" width="{{.Wide}}" height="7"><title>{{.Says}}</title></rect>{{end}}{{end}}</svg>
{{with .Left}}<p>{{.}}</p>{{end}}{{end}}</html>
`))

// writeReport writes a page with the utilization over time and what ran where.
func writeReport(path string, answer replayAnswer, table string) error {
	var drawings []drawing
	for _, one := range answer.Outcomes {
		drawings = append(drawings, drawn(one))
	}
	file, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	err = page.Execute(file, map[string]any{"Trace": filepath.Base(answer.Trace), "Table": table, "Drawings": drawings})
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func drawn(one poolreplay.Outcome) drawing {
	most, start := 1, 0.0
	for _, step := range one.Steps {
		most = max(most, step.Waiting)
	}
	if len(one.Steps) > 0 {
		start = one.Steps[0].At
	}
	x := func(at float64) float64 { return drawnWidth * (at - start) / max(one.Makespan, 1e-9) }
	d := drawing{Policy: one.Policy, Says: fmt.Sprintf("Over %s: GPUs at work, of %d (blue), and jobs that wait, at most %d (brown). Below, what ran where.", format.Seconds(one.Makespan), one.Units, most)}
	every := max(1, len(one.Steps)/drawnStays)
	for i := 0; i < len(one.Steps); i += every {
		step := one.Steps[i]
		d.Busy += fmt.Sprintf("%.1f,%.1f ", x(step.At), drawnHeight*(1-step.Busy/max(1, float64(one.Units))))
		d.Waits += fmt.Sprintf("%.1f,%.1f ", x(step.At), drawnHeight*(1-float64(step.Waiting)/float64(most)))
	}
	places, stays := map[string]int{}, 0
	for _, span := range one.Spans {
		place, known := places[span.Machine]
		if !known {
			if len(places) == drawnMachines {
				continue
			}
			place = len(d.Rows)
			places[span.Machine] = place
			d.Rows = append(d.Rows, drawnRow{Name: span.Machine})
		}
		if stays++; stays <= drawnStays {
			d.Rows[place].Bars = append(d.Rows[place].Bars, drawnBar{From: 140 + x(span.From), Wide: max(0.5, x(span.To)-x(span.From)), Says: fmt.Sprintf("job %s, %s, %s", span.Job, format.Count(len(span.GPUs), "GPU"), format.Seconds(span.To-span.From))})
		}
	}
	slices.SortFunc(d.Rows, func(a, b drawnRow) int { return strings.Compare(a.Name, b.Name) })
	for i := range d.Rows {
		d.Rows[i].At = 4 + float64(i)*barHeight*1.5
	}
	d.Height = 12 + float64(len(d.Rows))*barHeight*1.5
	if stays > drawnStays || len(places) == drawnMachines {
		d.Left = fmt.Sprintf("At most %d machines and %d stays are drawn.", drawnMachines, drawnStays)
	}
	return d
}
