package tree

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// guard walks YAML tokens before the parser does. The parser recurses without a
// bound and keeps the path of every value: what would make it use up the stack
// or the memory ends here, and so does what a study file does not have.
func guard(tokens token.Tokens) error {
	if len(tokens) > 2*maxNodes {
		return FileFault(0, "has more than %d values", maxNodes)
	}
	var g guardian
	for _, t := range tokens {
		if refused := refusal(t); refused != "" {
			return FileFault(line(t), "%s", refused)
		}
		if err := g.see(t); err != nil {
			return err
		}
	}
	return nil
}

// refusal says what is wrong with a token that no study file has, or nothing.
func refusal(t *token.Token) string {
	switch t.Type {
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return "uses an anchor, an alias or a merge key (&, * or <<), which these files do not have: write the values out"
	case token.TagType:
		return "uses the tag " + Shorten(t.Value) + ", and these files have no tags: leave it out, or put text in quotes"
	case token.DirectiveType:
		return "uses a YAML directive (%), which these files do not have: leave it out"
	case token.MappingKeyType:
		return "marks a key with ?, which these files do not have: write name: value"
	}
	return ""
}

// guardian measures how deep the tokens nest.
type guardian struct {
	columns []int // of the block mappings and lists that are open
	flow    int   // how many [ and { are open
}

func (g *guardian) see(t *token.Token) error {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		g.flow++
	case token.SequenceEndType, token.MappingEndType:
		g.flow--
	}
	key := t.Next != nil && t.Next.Type == token.MappingValueType
	if key && len(t.Value) > MaxKey {
		return FileFault(line(t), "has a name of %d bytes (%s): at most %d", len(t.Value), Shorten(strings.TrimSpace(t.Value)), MaxKey)
	}
	if g.flow <= 0 && (key || t.Type == token.SequenceEntryType) {
		g.open(t.Position.Column)
	}
	if g.flow > maxDepth || len(g.columns) > maxDepth {
		return FileFault(line(t), "%s", tooDeep())
	}
	return nil
}

// open notes that a block begins or goes on at the column.
func (g *guardian) open(column int) {
	for len(g.columns) > 0 && g.columns[len(g.columns)-1] > column {
		g.columns = g.columns[:len(g.columns)-1]
	}
	if len(g.columns) == 0 || g.columns[len(g.columns)-1] < column {
		g.columns = append(g.columns, column)
	}
}
