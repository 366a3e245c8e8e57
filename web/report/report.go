// Package report makes one page of a study: its answer with what it rests on,
// what it cost, charts, the leaderboard and the definition, in one HTML file
// that needs no network and no script, for mail and for print.
//
// Its one invariant: everything in the page that comes from a user or a script
// is escaped where it stands, since it is all written by html/template; no text
// is turned into markup by hand. The page's policy forbids scripts and loading
// anything besides. What is an estimate says so wherever it is shown, and where
// a large study is cut, the page says what was left out.
//
// The package is pure: it is told the study and the time, and writes to what it
// is given.
package report

import (
	"crypto/sha256"
	_ "embed" // the template and the style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Source is what a report is made of.
type Source struct {
	Study          protocol.StudyView
	Recommendation protocol.Recommendation
	// Trials are all of the study's, the best first.
	Trials []protocol.RankedTrial
	// History is what happened, in its order.
	History History
	// Importance is nil where nobody computed it.
	Importance *protocol.Importance
	// Workers are the names of workers by their ids; those without are shown
	// by their id.
	Workers map[string]string
	// Server is the address the study was read from.
	Server string
	// Written is when, Program by which version.
	Written time.Time
	Program string
}

// The bounds of a page. What is beyond them is left out, and the page says so.
const (
	maxRows       = 200   // of the leaderboard
	maxDots       = 1_500 // measurements of a chart
	maxCurves     = 60    // learning curves
	maxLines      = 400   // lines over parallel axes
	maxAxes       = 16    // parameters in parallel coordinates
	maxSpans      = 3_000 // bars of the timeline, about
	maxLanes      = 60    // workers of the timeline
	maxBars       = 20    // bars of other charts
	maxDefinition = 64 << 10
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// Write writes the page. An error is that of the writer: every study has one.
func Write(out io.Writer, source Source) error {
	page, err := template.New("page").Funcs(template.FuncMap{"number": coordinate}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the template of reports: %w", err)
	}
	return page.Execute(out, pageOf(source))
}

// contentPolicy is that of a page: nothing may be loaded or run, and the style is
// the one of this program.
func contentPolicy() string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}
