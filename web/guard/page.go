package guard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/auth"
)

// servePage lets browsers through to the pages: everybody to the login page
// and the assets, signed-in ones to the rest.
func (g *Guard) servePage(w http.ResponseWriter, r *http.Request) {
	if g.config.UI == nil {
		g.refuse(w, r, problem.New(problem.NotFound, "this server has no pages: its interface is at %s", prefix))
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		g.refuse(w, r, answer.Fault(http.StatusMethodNotAllowed, problem.Invalid, "pages are only read"))
		return
	}
	if r.URL.Path != "/login" && !strings.HasPrefix(r.URL.Path, "/assets/") {
		target := loginFor(r.URL)
		if secret, given := auth.SessionOf(r); given {
			if token, err := g.Authenticator.Session(r.Context(), secret); err == nil {
				target = linkedPage(token, r.URL.Path)
			}
		}
		if target != "" {
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, target, http.StatusSeeOther)
			return
		}
	}
	g.config.UI.ServeHTTP(w, r)
}

// loginFor returns the login page that leads back to the wanted one. The page makes
// sure that it stays on this server.
func loginFor(wanted *url.URL) string {
	if wanted.Path == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(wanted.RequestURI())
}

// linkedPage returns the page that a reader with a link belongs on, if the path is none
// of its study's pages; else empty. The API refuses everything else to the reader: this
// only keeps it from empty pages.
func linkedPage(token auth.Token, path string) string {
	if token.Scope != auth.Link {
		return ""
	}
	study, below, _ := strings.Cut(strings.TrimPrefix(path, "/studies/"), "/")
	if strings.HasPrefix(path, "/studies/") && study != "" && study != "new" && (below == "" || below == "charts" || below == "compare" || strings.HasPrefix(below, "trials/")) {
		return ""
	}
	return "/studies/" + url.PathEscape(token.Subject)
}
