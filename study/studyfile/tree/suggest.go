package tree

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// suggest ends a message about an unknown name with the known one that was
// probably meant, or with all that are known.
func suggest(name string, known []string) string {
	best, fewest := "", 1+len(name)/4 // a typo in three letters is still a typo, two are another word
	for _, candidate := range known {
		if len(name) > len(candidate)+fewest {
			continue
		}
		if d := problem.Typos(strings.ToLower(name), candidate); d <= fewest && (best == "" || d < fewest) {
			best, fewest = candidate, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "it has " + strings.Join(known, ", ")
}
