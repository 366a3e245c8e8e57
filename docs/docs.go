// Package docs has the pages that the program shows.
package docs

import _ "embed"

// StudyFile says how a study file is written, in Markdown, StudyFields what it may have,
// Queries what a query may.
var (
	//go:embed study-file.md
	StudyFile string
	//go:embed reference/study-file.md
	StudyFields string
	//go:embed queries.md
	Queries string
)
