package definition

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of a study file, whatever its format.
const (
	maxBytes = 1 << 20
	maxDepth = 32
	maxNodes = 30_000
	maxKey   = 128
	// maxFaults bounds the faults told at once: the answer to a file that is
	// wrong throughout stays readable.
	maxFaults = 100
)

// wholeFile is the path of a fault that no field is to blame for.
const wholeFile = "(file)"

// kind is what a node of the file is.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	// unclear is an unquoted YAML scalar that different versions of YAML read
	// as different things: yes, 010, 0x10, 1_000, .inf.
	unclear
	list
	mapping
)

// node is one value of the file, in either format.
type node struct {
	kind kind
	// raw is a scalar as it was written, without quotes.
	raw     string
	items   []*node // of a list
	entries []entry // of a mapping, in the order of the file
	line    int     // 0 when unknown
}

// entry is one key of a mapping.
type entry struct {
	key   string
	line  int
	value *node
}

// is names what the node is, for a message.
func (n *node) is() string {
	switch n.kind {
	case null:
		return "empty"
	case boolean:
		return "a boolean"
	case number:
		return "a number"
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	default:
		return "text"
	}
}

// shown is the node's value for a fault: absent for what has no short form.
func (n *node) shown() any {
	switch n.kind {
	case null, list, mapping:
		return nil
	case boolean:
		return strings.EqualFold(n.raw, "true")
	default:
		return shorten(n.raw)
	}
}

// shorten cuts a text to what a message can show.
func shorten(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "..."
}

// builder makes a tree and keeps its bounds, for both formats.
type builder struct {
	nodes  int
	faults []problem.Field
}

func (b *builder) fault(path string, line int, format string, args ...any) {
	b.faults = append(b.faults, problem.Field{Path: path, Message: fmt.Sprintf(format, args...), Line: line})
}

// take counts a node at the depth; its error says that the file is too large.
func (b *builder) take(depth, line int) error {
	b.nodes++
	switch {
	case depth > maxDepth:
		return fileFault(line, "%s", tooDeep())
	case b.nodes > maxNodes:
		return fileFault(line, "has more than %d values", maxNodes)
	}
	return nil
}

// add appends an entry unless the mapping has its key already.
func (b *builder) add(at string, m *node, e entry, seen map[string]int) {
	if e.key == "" {
		b.fault(cmp.Or(at, wholeFile), e.line, "has a field without a name: give it one, or remove it")
		return
	}
	if first, twice := seen[e.key]; twice {
		message := "is given twice: keep one of the two"
		if first > 0 {
			message = fmt.Sprintf("is given twice, first in line %d: keep one of the two", first)
		}
		b.fault(join(at, e.key), e.line, "%s", message)
		return
	}
	if len(e.key) > maxKey {
		b.fault(join(at, shorten(e.key)), e.line, "is a name of %d bytes: at most %d", len(e.key), maxKey)
		return
	}
	seen[e.key] = e.line
	b.text(join(at, e.key), e.key, e.line)
	m.entries = append(m.entries, e)
}

// text refuses what no field may contain: a NUL ends the strings of the system
// calls that start a command, and a replaced character was not what was meant.
func (b *builder) text(at, s string, line int) {
	if strings.ContainsRune(s, 0) {
		b.fault(at, line, "contains a NUL character: remove it")
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		b.fault(at, line, "contains a character that is not valid Unicode (U+FFFD): write the character that was meant")
	}
}

// fileFault is the error of a file that cannot be read as a tree.
func fileFault(line int, format string, args ...any) error {
	return problem.WithFields("the study file cannot be read", []problem.Field{
		{Path: wholeFile, Message: fmt.Sprintf(format, args...), Line: line},
	})
}

func tooDeep() string {
	return fmt.Sprintf("is nested more than %d levels deep: a study needs 5", maxDepth)
}

// join appends a name to a path; the root's is empty.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
