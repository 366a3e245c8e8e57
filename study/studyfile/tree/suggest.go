package tree

import (
	"regexp"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// suggest ends a message about an unknown name with the known one that was
// probably meant, or with all that are known.
func suggest(name string, known []string) string {
	if meant := problem.Meant(name, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "it has " + strings.Join(known, ", ")
}

var (
	aside = regexp.MustCompile(`^must be (one of )?| \([^)]*\)|, not .*|[:;].*`)
	words = regexp.MustCompile(`^[a-z0-9_-]+(, [a-z0-9_-]+)+$`)
)

// Suggest adds to each fault of a text that is none of several words the one that was
// probably meant.
func Suggest(faults []problem.Field) {
	for i, fault := range faults {
		list := strings.ReplaceAll(aside.ReplaceAllString(fault.Message, ""), " or ", ", ")
		if given, text := fault.Value.(string); text && words.MatchString(list) {
			if meant := problem.Meant(given, strings.Split(list, ", ")); meant != "" {
				faults[i].Message += "; did you mean " + meant + "?"
			}
		}
	}
}
