package problem

import "strings"

// Typos counts the insertions, deletions and replacements of bytes and the swaps
// of neighbours that turn a into b (optimal string alignment): how far a name that
// is not known is from one that was perhaps meant. It takes time with the product
// of both lengths, so callers bound them.
func Typos(a, b string) int {
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

// Meant is the known name that an unknown one was probably meant to be, or begins; empty:
// none of them.
func Meant(name string, known []string) (best string) {
	const longest = 128 // bytes of a name that is compared
	name = strings.ToLower(name[:min(len(name), longest)])
	worst := 1 + len(name)/4 // a typo in three letters is still a typo, two are another word
	fewest := worst + 2
	for _, candidate := range known {
		typos := Typos(name, strings.ToLower(candidate[:min(len(candidate), longest)]))
		if typos > worst && len(name) > 2 && strings.HasPrefix(strings.ToLower(candidate), name) {
			typos = worst + 1
		} else if typos > worst {
			continue
		}
		if typos < fewest {
			best, fewest = candidate, typos
		}
	}
	return best
}
