package definition

import (
	"errors"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML reads one YAML document into a tree: mappings, lists and scalars.
// Anchors, aliases, merge keys, tags, directives and complex keys are refused.
// No study needs them, and with them a small file can mean a huge one.
func parseYAML(data []byte, b *builder) (*node, error) {
	tokens := lexer.Tokenize(string(data))
	if err := guard(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlFault(err)
	}
	switch {
	case len(file.Docs) > 1:
		return nil, fileFault(line(file.Docs[1].Start), "has several YAML documents: write one study to a file, without a further ---")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, fileFault(0, "is empty: it needs at least name, objective and space")
	}
	r := yamlReader{builder: b}
	return r.value("", 1, file.Docs[0].Body)
}

// yamlFault turns the parser's error into a fault with its line.
func yamlFault(err error) error {
	var syntax interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &syntax) {
		return fileFault(0, "is not YAML: %s", shorten(err.Error()))
	}
	return fileFault(line(syntax.GetToken()), "is not YAML: %s", syntax.GetMessage())
}

func line(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// yamlReader builds a tree from the parser's.
type yamlReader struct{ *builder }

func (r *yamlReader) value(at string, depth int, from ast.Node) (*node, error) {
	n := &node{line: line(from.GetToken())}
	if err := r.take(depth, n.line); err != nil {
		return nil, err
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		n.kind = mapping
		return n, r.mapping(at, depth, n, v.Values)
	case *ast.MappingValueNode:
		n.kind = mapping
		return n, r.mapping(at, depth, n, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		n.kind = list
		for i, item := range v.Values {
			child, err := r.value(index(at, i), depth+1, item)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, child)
		}
		return n, nil
	case *ast.LiteralNode:
		n.kind, n.raw = text, v.Value.Value
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		// The parser reads these by other rules than ours: only the text counts.
		n.raw = from.GetToken().Value
		n.kind = plain(n.raw)
	case *ast.StringNode:
		n.kind, n.raw = text, v.Value
		if t := v.GetToken().Type; t != token.SingleQuoteType && t != token.DoubleQuoteType {
			n.kind = plain(n.raw)
		}
	default:
		return nil, fileFault(n.line, "uses a part of YAML that a study file does not have: %s", from.Type())
	}
	r.text(at, n.raw, n.line)
	return n, nil
}

func (r *yamlReader) mapping(at string, depth int, n *node, values []*ast.MappingValueNode) error {
	seen := make(map[string]int)
	for i, v := range values {
		e := entry{key: v.Key.GetToken().Value, line: line(v.Key.GetToken())}
		if i == 0 {
			n.line = e.line // the parser gives the place of the first colon
		}
		value, err := r.value(join(at, shorten(e.key)), depth+1, v.Value)
		if err != nil {
			return err
		}
		e.value = value
		r.add(at, n, e, seen)
	}
	return nil
}
