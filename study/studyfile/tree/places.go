package tree

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Places knows where in the file each part of the domain's values came from:
// the packages that check them name their own paths, and know no lines.
type Places struct {
	known map[string]place
	// spoilt lists parts that could not be read whole: what a check of them
	// finds follows from a fault that is told already.
	spoilt []string
}

// place is a path as the user wrote it, and its line.
type place struct {
	path string
	line int
}

// Put notes that the domain's path is the file's.
func (p *Places) Put(domain, file string, line int) {
	if p.known == nil {
		p.known = make(map[string]place)
	}
	p.known[domain] = place{path: file, line: line}
}

// Spoil notes that what stands at the domain's path was not read whole.
func (p *Places) Spoil(domain string) { p.spoilt = append(p.spoilt, domain) }

// IsSpoilt reports whether the path belongs to a part that was not read whole.
func (p *Places) IsSpoilt(domain string) bool {
	return slices.ContainsFunc(p.spoilt, func(spoilt string) bool {
		return domain == spoilt || strings.HasPrefix(domain, spoilt+".") || strings.HasPrefix(domain, spoilt+"[")
	})
}

// locate turns a fault with a domain's path into one with the file's: what is
// known of the longest part of the path, and the rest as it is.
func (p *Places) locate(fault problem.Field) problem.Field {
	for path := fault.Path; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if found, ok := p.known[path]; ok {
			fault.Path = found.path + fault.Path[len(path):]
			if fault.Line == 0 {
				fault.Line = found.line
			}
			break
		}
	}
	return fault
}
