// Package docs has the pages that the program shows.
package docs

import _ "embed"

// StudyFile says what a study file may have, in Markdown; Queries what a query may.
var (
	//go:embed study-file.md
	StudyFile string
	//go:embed queries.md
	Queries string
)
