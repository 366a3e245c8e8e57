package guard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/answer"
)

// Dated adds both versions to the refusal of a path or a field that this server does not
// know, where a client of ours of another version asked for it. Who has no token hears
// of no version.
func (g *Guard) Dated(ctx context.Context, document *answer.Document) *answer.Document {
	known := requestOf(ctx)
	program, version, _ := strings.Cut(known.program, "/")
	version, _, _ = strings.Cut(version, " (")
	if g.config.Version == "" || known.token.ID == "" || !strings.HasPrefix(program, "tandem") || version == g.config.Version {
		return document
	}
	missing := known.route == nil && (document.Status == http.StatusNotFound || document.Status == http.StatusMethodNotAllowed)
	if missing || slices.ContainsFunc(document.Errors, unknown) {
		document.Detail += fmt.Sprintf(" (this server is tandem %s, asked by %s: upgrade the older one)", g.config.Version, known.program)
	}
	return document
}

func unknown(fault problem.Field) bool {
	return strings.HasPrefix(fault.Message, "is not a field of ") || fault.Message == "is not a parameter of this request"
}
