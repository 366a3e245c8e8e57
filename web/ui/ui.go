// Package ui is what people see of Tandem: web pages that show studies while
// they run.
//
// The pages are empty shells. A small module of each page fetches the REST API
// with the reader's own session and follows the study's events, so the pages
// can show nothing that the API would not answer. Everything is embedded: no
// page loads anything from elsewhere, and nothing is built before it is served.
//
// Its one invariant: no page carries an inline script or style, so that the
// policy of [Handler] holds and a name or a log line with markup in it stays
// text. The package must not know the domain, the store or the API's types.
package ui

import (
	"net/http"
	"strconv"
)

// policy is the Content-Security-Policy of every answer: nothing but our own
// files, nothing inline, no framing.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the pages and their assets. /login and /assets/ have to be
// reachable without a session; every other path is a page for somebody who is
// signed in, and the caller protects it.
func Handler() http.Handler {
	pages := newPages()
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{path...}", embedded())
	mux.Handle("GET /{$}", http.RedirectHandler("/studies", http.StatusSeeOther))
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "login", Title: "Sign in"})
	})
	mux.HandleFunc("GET /studies", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "studies", Title: "Studies"})
	})
	mux.HandleFunc("GET /studies/new", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "new-study", Title: "New study"})
	})
	mux.HandleFunc("GET /workers", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "workers", Title: "Workers"})
	})
	mux.HandleFunc("GET /pool", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "pool", Title: "Pool"})
	})
	mux.HandleFunc("GET /ground-truth", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "ground-truth", Title: "Ground truth"})
	})
	mux.HandleFunc("GET /access", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "access", Title: "Access", Cards: accessCards})
	})
	mux.HandleFunc("GET /compare", func(w http.ResponseWriter, r *http.Request) {
		pages.write(w, http.StatusOK, page{Name: "compare-studies", Title: "Compare studies"})
	})
	mux.HandleFunc("GET /studies/{study}/edge", func(w http.ResponseWriter, r *http.Request) {
		study := r.PathValue("study")
		pages.write(w, http.StatusOK, page{Name: "edge", Title: "Edge of " + study, Study: study})
	})
	mux.HandleFunc("GET /studies/{study}", func(w http.ResponseWriter, r *http.Request) {
		study := r.PathValue("study")
		pages.write(w, http.StatusOK, page{Name: "study", Title: study, Study: study})
	})
	mux.HandleFunc("GET /studies/{study}/charts", func(w http.ResponseWriter, r *http.Request) {
		study := r.PathValue("study")
		pages.write(w, http.StatusOK, page{Name: "charts", Title: "Charts of " + study, Study: study})
	})
	mux.HandleFunc("GET /studies/{study}/compare", func(w http.ResponseWriter, r *http.Request) {
		study := r.PathValue("study")
		pages.write(w, http.StatusOK, page{Name: "compare-trials", Title: "Compare trials of " + study, Study: study})
	})
	mux.HandleFunc("GET /studies/{study}/trials/{number}", func(w http.ResponseWriter, r *http.Request) {
		study := r.PathValue("study")
		number, err := strconv.Atoi(r.PathValue("number"))
		if err != nil || number < 0 {
			pages.missing(w)
			return
		}
		pages.write(w, http.StatusOK, page{Name: "trial", Title: "Trial " + strconv.Itoa(number) + " of " + study, Study: study, Number: number})
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { pages.missing(w) })
	return guard(mux)
}

// guard sets the headers that every answer carries.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
