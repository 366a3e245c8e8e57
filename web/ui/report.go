package ui

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
)

// Report is a page in a file: a study with its charts, as its pages show them, with
// everything that they would ask the server for.
type Report struct {
	// Study is the study's id, Name what people call it.
	Study, Name string
	// View is the study as the API answers it, without what has to stay at home.
	View json.RawMessage
	// Definition is its study file, to be printed.
	Definition string
	// Objectives and Rungs are how many it has.
	Objectives, Rungs int
	// Server is the address that links lead to, such as http://127.0.0.1:7171.
	Server string
	// Written is when, Program by which version.
	Written time.Time
	Program string
	// Over says that the study has ended: a later report would say the same.
	Over    bool
	answers map[string]json.RawMessage // the API's, by path below its root
}

const (
	anyCurves   = "/curves?metric=" // those of the objective's metric
	mostMetrics = 10                // whose learning curves a report has
)

// Gather asks for everything that the page asks the API for. ask is given the path
// below the study's, with its query; its error ends the gathering.
func (r *Report) Gather(ask func(path string) (json.RawMessage, error)) error {
	paths := []string{"/trials?sort=rank&order=asc&limit=100&offset=0", "/measurements", "/recommendation", "/advice", "/importance", "/correlations", "/plan", "/timeline", anyCurves}
	for objective := range r.Objectives {
		paths = append(paths, fmt.Sprintf("/columns?objective=%d", objective))
		for rung := range r.Rungs {
			paths = append(paths, fmt.Sprintf("/columns?objective=%d&rung=%d", objective, rung))
		}
	}
	study := "/studies/" + r.Study
	r.answers = map[string]json.RawMessage{"/session": json.RawMessage(`{"scope":"link"}`), study: r.View}
	for at := 0; at < len(paths); at++ {
		answer, err := ask(paths[at])
		if err != nil {
			return err
		}
		r.answers[study+paths[at]] = answer
		if paths[at] != anyCurves {
			continue
		}
		var curves struct{ Metrics []string }
		if err := json.Unmarshal(answer, &curves); err != nil {
			return fmt.Errorf("read the learning curves: %w", err)
		}
		for _, metric := range curves.Metrics[:min(len(curves.Metrics), mostMetrics)] {
			paths = append(paths, anyCurves+url.QueryEscape(metric))
		}
	}
	return nil
}

// reportSheets are the styles of a report, in the order of the pages'.
var reportSheets = []string{"vendor/uplot/uPlot.css", "theme.css", "dark.css", "base.css", "parts.css", "pages.css", "form.css", "charts.css", "print.css"}

// reportPages are the modules that draw a report.
var reportPages = []string{"study.js", "charts.js"}

// relative finds where a module imports one beside it; the last part is its name.
var relative = regexp.MustCompile(`(?m)^((?:import|export)\s(?:[^;"]*?\sfrom\s+)?")(\.[^"]+)"`)

// WriteReport writes the page. Its policy allows the modules in it and nothing from
// elsewhere. An error is the writer's.
func WriteReport(out io.Writer, report Report) error {
	layout := template.Must(template.ParseFS(templateFiles, "templates/report.html", "templates/deploy.html", "templates/study-cards.html", "templates/charts-cards.html"))
	var head, sources strings.Builder
	for _, name := range reportSheets {
		if name == "dark.css" {
			head.WriteString(`<style id="dark-sheet" media="(prefers-color-scheme: dark)">`)
		} else {
			head.WriteString("<style>")
		}
		content := string(embedded().files[name].content)
		head.WriteString(content + "</style>\n")
		sources.WriteString(" " + hashOf(content))
	}
	styles := sources.String()
	sources.Reset()
	for _, script := range []struct{ kind, content string }{
		{"importmap", importMap()}, {"text/javascript", string(embedded().files["theme.js"].content)}, {"module", `import "` + strings.Join(reportPages, `"; import "`) + `";`},
	} {
		head.WriteString(`<script type="` + script.kind + `">` + script.content + "</script>\n")
		sources.WriteString(" " + hashOf(script.content))
	}
	return layout.ExecuteTemplate(out, "report.html", map[string]any{
		"Report": report,
		"Head":   template.HTML(head.String()), //nolint:gosec // files of this program alone
		"Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; style-src" + styles + "; script-src data:" + sources.String() + "; require-trusted-types-for 'script'; trusted-types 'none'",
		"Kept":   map[string]any{"server": report.Server, "written": report.Written, "answers": report.answers},
	})
}

// importMap names every module that a report needs, each with its text: a module in
// a file has no address that another could be found by.
func importMap() string {
	addresses := map[string]string{}
	for _, page := range reportPages {
		for _, name := range embedded().modules(page) {
			content := relative.ReplaceAllStringFunc(string(embedded().files[name].content), func(found string) string {
				parts := relative.FindStringSubmatch(found)
				return parts[1] + path.Join(path.Dir(name), parts[2]) + `"`
			})
			addresses[name] = "data:text/javascript;base64," + base64.StdEncoding.EncodeToString([]byte(content))
		}
	}
	text, _ := json.Marshal(map[string]any{"imports": addresses}) // of strings: it cannot fail
	return string(text)
}

// hashOf names an inline text in a content policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
