// Package build tells the versions of the programs of a fleet apart.
package build

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Build is which tandem a worker, a board or a launcher is, as it called itself when it was
// last heard.
type Build struct {
	Version string `json:"version,omitempty" doc:"version of tandem; absent: it does not say"`
	// ServerVersion is only there where it is another.
	ServerVersion string `json:"server_version,omitempty" doc:"version of this server; absent: the same, or not known"`
}

// mostVersion bounds the name of a version, in bytes.
const mostVersion = 64

// Of is the build of a program that calls itself by the words, such as "tandem/1.2 (its
// user)", as a server of the version sees it.
func Of(program, server string) Build {
	name, version, _ := strings.Cut(program, "/")
	version, _, _ = strings.Cut(version, " (")
	if name != "tandem" || len(version) > mostVersion {
		return Build{} // clients in other languages have versions of their own
	}
	if version == server || version == "" {
		server = ""
	}
	return Build{version, server}
}

// shown is how many of a version are named.
const shown = 3

// Unlike says of those that are not of the server's version which they are, a line for each
// version.
func Unlike(all iter.Seq2[string, Build]) (lines []string) {
	var builds []Build
	names := map[Build][]string{}
	for name, one := range all {
		if one.ServerVersion == "" || one.Version == "" {
			continue
		}
		if len(names[one]) == 0 {
			builds = append(builds, one)
		}
		names[one] = append(names[one], name)
	}
	for _, one := range builds {
		who := names[one]
		said, are := strings.Join(who[:min(len(who), shown)], ", "), "is"
		if len(who) > 1 {
			are = "are"
		}
		if more := len(who) - shown; more > 0 {
			said += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf("%s %s tandem %s, and the server is tandem %s: upgrade the older", said, are, one.Version, one.ServerVersion))
	}
	slices.Sort(lines)
	return lines
}
