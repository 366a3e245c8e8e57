// Package tree reads the structure of a study file, YAML or JSON, within bounds, and
// takes values from it. Its faults name the path, the line, the value and the fix.
package tree

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of a study file, whatever its format.
const (
	MaxBytes = 1 << 20 // of the file
	maxDepth = 32
	maxNodes = 30_000
	MaxKey   = 128 // bytes of a name
)

// WholeFile is the path of a fault that no field is to blame for.
const WholeFile = "(file)"

// Kind is what a node of the file is.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Boolean
	Number
	Text
	// Unclear is an unquoted YAML scalar that different versions of YAML read
	// as different things: yes, 010, 0x10, 1_000, .inf.
	Unclear
	List
	Mapping
)

// Node is one value of the file, in either format.
type Node struct {
	Kind Kind
	// Raw is a scalar as it was written, without quotes.
	Raw     string
	Items   []*Node // of a list
	Entries []Entry // of a mapping, in the order of the file
	Line    int     // 0 when unknown
}

// Entry is one key of a mapping.
type Entry struct {
	Key   string
	Line  int
	Value *Node
}

// Is names what the node is, for a message.
func (n *Node) Is() string {
	return cmp.Or(map[Kind]string{Null: "empty", Boolean: "a boolean", Number: "a number", List: "a list", Mapping: "a mapping"}[n.Kind], "text")
}

// shown is the node's value for a fault: absent for what has no short form.
func (n *Node) shown() any {
	switch n.Kind {
	case Null, List, Mapping:
		return nil
	case Boolean:
		return strings.EqualFold(n.Raw, "true")
	default:
		return Shorten(n.Raw)
	}
}

// Shorten cuts a text to what a message can show.
func Shorten(s string) string {
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

func (b *builder) Fault(path string, line int, format string, args ...any) {
	b.faults = append(b.faults, problem.Field{Path: path, Message: fmt.Sprintf(format, args...), Line: line})
}

// take counts a node at the depth; its error says that the file is too large.
func (b *builder) take(depth, line int) error {
	b.nodes++
	switch {
	case depth > maxDepth:
		return FileFault(line, "%s", tooDeep())
	case b.nodes > maxNodes:
		return FileFault(line, "has more than %d values", maxNodes)
	}
	return nil
}

// add appends an entry unless the mapping has its key already.
func (b *builder) add(at string, m *Node, e Entry, seen map[string]int) {
	if e.Key == "" {
		b.Fault(cmp.Or(at, WholeFile), e.Line, "has a field without a name: give it one, or remove it")
		return
	}
	if first, twice := seen[e.Key]; twice {
		message := "is given twice: keep one of the two"
		if first > 0 {
			message = fmt.Sprintf("is given twice, first in line %d: keep one of the two", first)
		}
		b.Fault(Join(at, e.Key), e.Line, "%s", message)
		return
	}
	if len(e.Key) > MaxKey {
		b.Fault(Join(at, Shorten(e.Key)), e.Line, "is a name of %d bytes: at most %d", len(e.Key), MaxKey)
		return
	}
	seen[e.Key] = e.Line
	b.Text(Join(at, e.Key), e.Key, e.Line)
	m.Entries = append(m.Entries, e)
}

// Text refuses what no field may contain: a NUL ends the strings of the system
// calls that start a command, and a replaced character was not what was meant.
func (b *builder) Text(at, s string, line int) {
	if strings.ContainsRune(s, 0) {
		b.Fault(at, line, "contains a NUL character: remove it")
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		b.Fault(at, line, "contains a character that is not valid Unicode (U+FFFD): write the character that was meant")
	}
}

// FileFault is the error of a file that cannot be read as a tree.
func FileFault(line int, format string, args ...any) error {
	return problem.WithFields("the study file cannot be read", []problem.Field{
		{Path: WholeFile, Message: fmt.Sprintf(format, args...), Line: line},
	})
}

func tooDeep() string {
	return fmt.Sprintf("is nested more than %d levels deep: a study needs 5", maxDepth)
}

// Join appends a name to a path; the root's is empty.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Index appends an element's index to a path.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
