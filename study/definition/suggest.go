package definition

import (
	"fmt"
	"strings"
)

// suggest ends a message about an unknown name with the known one that was
// probably meant, or with all that are known.
func suggest(name string, known []string) string {
	best, fewest := "", 1+len(name)/3 // a typo in three letters is still a typo
	for _, candidate := range known {
		if len(name) > len(candidate)+fewest {
			continue
		}
		if d := distance(strings.ToLower(name), candidate); d <= fewest && (best == "" || d < fewest) {
			best, fewest = candidate, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "it has " + strings.Join(known, ", ")
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b string) int {
	beforeLast, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, row
	}
	return last[len(b)]
}
