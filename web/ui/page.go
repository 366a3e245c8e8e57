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
	Assets string
	// Cards are those of a page that has only tables.
	Cards   []card
	Modules []string
}

// card is a table of a page, with what stands below it.
type card struct {
	Name, Title string
	Columns     []string
	Note        string
}

// accessCards are those of the page about who may do what.
var accessCards = []card{
	{"users", "Users", []string{"User", "Tokens", "Last used", "Identity", "Its groups there"}, "Users begin with a token of their name, or by signing in."},
	{"groups", "Groups", []string{"Group", "Members"}, "Owners share studies with their groups: tandem study share STUDY --group GROUP."},
	{"tokens", "Tokens", []string{"Name", "Scope", "Id", "Created", "Expires", "Last used"}, "Only hashes of their secrets are kept."},
	{"quotas", "Quotas", []string{"User", "Quota", "Trials now", "GPUs now"}, "A trial beyond its user’s quota waits. Users without one have what there is."},
	{"reservations", "Reservations", []string{"What", "For", "From", "To"}, "Make one: tandem reservation make."},
	{"audit", "Audit log", []string{"When", "What", "Outcome", "Who", "On", "From", "Detail"}, "The newest 200 lines. tandem audit verify checks the whole log. What was asked was done, unless a later line says that it failed."},
}

// pages holds one parsed template a page, each with the common layout.
type pages map[string]*template.Template

// newPages parses the embedded templates. They are part of the program, so a
// fault in them is a programming error and panics.
func newPages() pages {
	layout := template.Must(template.ParseFS(templateFiles, "templates/layout.html", "templates/deploy.html", "templates/picker.html", "templates/placement.html", "templates/study-cards.html", "templates/charts-cards.html"))
	list := pages{}
	for _, name := range []string{"login", "studies", "new-study", "study", "charts", "trial", "compare-trials", "workers", "pool", "ground-truth", "access", "compare-studies", "edge", "missing"} {
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
