package ui

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed templates
var templateFiles embed.FS

// page is what a template is filled with.
type page struct {
	// Name is the template's and the module's name.
	Name  string
	Title string
	// Study and Number come from the path; the module fetches what they name.
	Study  string
	Number int
	// Assets is the folder of the assets, Modules what the page's module needs:
	// both are filled in when the page is written.
	Assets  string
	Modules []string
}

// pages holds one parsed template a page, each with the common layout.
type pages map[string]*template.Template

// newPages parses the embedded templates. They are part of the program, so a
// fault in them is a programming error and panics.
func newPages() pages {
	layout := template.Must(template.ParseFS(templateFiles, "templates/layout.html", "templates/deploy.html", "templates/picker.html", "templates/placement.html", "templates/study-cards.html", "templates/charts-cards.html"))
	list := pages{}
	for _, name := range []string{"login", "studies", "new-study", "study", "charts", "trial", "compare-trials", "workers", "pool", "ground-truth", "compare-studies", "edge", "missing"} {
		list[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return list
}

// write sends a page. It is rendered whole before the first byte goes out, so
// that a fault never leaves half a page behind a success.
func (p pages) write(w http.ResponseWriter, status int, content page) {
	content.Assets, content.Modules = embedded().base, embedded().modules(content.Name+".js")
	var body bytes.Buffer
	if err := p[content.Name].ExecuteTemplate(&body, "layout.html", content); err != nil {
		http.Error(w, "the page could not be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Cache-Control", "no-cache")
	w.WriteHeader(status)
	w.Write(body.Bytes()) //nolint:errcheck // the reader went away: nobody is left to tell
}

func (p pages) missing(w http.ResponseWriter) {
	p.write(w, http.StatusNotFound, page{Name: "missing", Title: "Not found"})
}
