package tree

import (
	"bytes"
	"errors"
	"regexp"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tandem-tune/tandem/internal/problem"
)

// ParseYAML reads one YAML document into a tree: mappings, lists and scalars.
// Anchors, aliases, merge keys, tags, directives and complex keys are refused.
// No study needs them, and with them a small file can mean a huge one. What is
// wrong with single keys and texts is among the faults.
func ParseYAML(data []byte) (root *Node, faults []problem.Field, err error) {
	tokens := lexer.Tokenize(string(data))
	if err := guard(tokens); err != nil {
		return nil, nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, yamlFault(data, err)
	}
	switch {
	case len(file.Docs) > 1:
		return nil, nil, FileFault(line(file.Docs[1].Start), "has several YAML documents: write one to a file, without a further ---")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, nil, FileFault(0, "is empty: it needs at least name, objective and space")
	}
	r := yamlReader{builder: &builder{}}
	root, err = r.value("", 1, file.Docs[0].Body)
	return root, r.faults, err
}

// indent is a line that begins with a tab, perhaps after spaces.
var indent = regexp.MustCompile(`(?m)^ *\t[ \t]*\S`)

// yamlFault turns the parser's error into a fault with its line.
func yamlFault(data []byte, err error) error {
	if at := indent.FindIndex(data); at != nil {
		return FileFault(1+bytes.Count(data[:at[0]], []byte("\n")), "is not YAML: the line begins with a tab; YAML indents with spaces")
	}
	var syntax interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &syntax) {
		return FileFault(0, "is not YAML: %s", Shorten(err.Error()))
	}
	return FileFault(line(syntax.GetToken()), "is not YAML: %s", syntax.GetMessage())
}

func line(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// yamlReader builds a tree from the parser's.
type yamlReader struct{ *builder }

func (r *yamlReader) value(at string, depth int, from ast.Node) (*Node, error) {
	n := &Node{Line: line(from.GetToken())}
	if err := r.take(depth, n.Line); err != nil {
		return nil, err
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		n.Kind = Mapping
		return n, r.mapping(at, depth, n, v.Values)
	case *ast.MappingValueNode:
		n.Kind = Mapping
		return n, r.mapping(at, depth, n, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		n.Kind = List
		for i, item := range v.Values {
			child, err := r.value(Index(at, i), depth+1, item)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, child)
		}
		return n, nil
	case *ast.LiteralNode:
		n.Kind, n.Raw = Text, v.Value.Value
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		// The parser reads these by other rules than ours: only the text counts.
		n.Raw = from.GetToken().Value
		n.Kind = plain(n.Raw)
	case *ast.StringNode:
		n.Kind, n.Raw = Text, v.Value
		if t := v.GetToken().Type; t != token.SingleQuoteType && t != token.DoubleQuoteType {
			n.Kind = plain(n.Raw)
		}
	default:
		return nil, FileFault(n.Line, "uses a part of YAML that a study file does not have: %s", from.Type())
	}
	r.Text(at, n.Raw, n.Line)
	return n, nil
}

func (r *yamlReader) mapping(at string, depth int, n *Node, values []*ast.MappingValueNode) error {
	seen := make(map[string]int)
	for i, v := range values {
		e := Entry{Key: v.Key.GetToken().Value, Line: line(v.Key.GetToken())}
		if i == 0 {
			n.Line = e.Line // the parser gives the place of the first colon
		}
		value, err := r.value(Join(at, Shorten(e.Key)), depth+1, v.Value)
		if err != nil {
			return err
		}
		e.Value = value
		r.add(at, n, e, seen)
	}
	return nil
}
