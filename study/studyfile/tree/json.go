package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// ParseJSON reads JSON into a tree. The standard decoder would take the last
// of two equal keys, any case of a name and null for everything, so that only
// its tokens are used. The faults are those of single keys and texts.
func ParseJSON(data []byte) (root *Node, faults []problem.Field, err error) {
	// The whole text is checked first: the decoder would stop behind the first
	// value, and its errors carry no place.
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, nil, jsonFault(data, err)
	}
	r := jsonReader{builder: &builder{}, data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	r.decoder.UseNumber()
	r.oneLine = !bytes.Contains(bytes.TrimSpace(data), []byte("\n"))
	token, err := r.next()
	if err != nil {
		return nil, nil, jsonFault(data, err)
	}
	root, err = r.value("", 1, token)
	return root, r.faults, err
}

func jsonFault(data []byte, err error) error {
	line := 0
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
	}
	return FileFault(line, "is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// jsonReader builds a tree from a stream of tokens.
type jsonReader struct {
	*builder
	data    []byte
	oneLine bool
	decoder *json.Decoder
	breaks  int   // line breaks before the last token
	counted int64 // how far they are counted
}

func (r *jsonReader) next() (json.Token, error) {
	token, err := r.decoder.Token()
	offset := r.decoder.InputOffset()
	r.breaks += bytes.Count(r.data[r.counted:offset], []byte("\n"))
	r.counted = offset
	return token, err
}

// place is the line of the last token; unknown in a text of one line, as
// programs send it.
func (r *jsonReader) place() int {
	if r.oneLine {
		return 0
	}
	return r.breaks + 1
}

func (r *jsonReader) value(at string, depth int, token json.Token) (*Node, error) {
	n := &Node{Line: r.place()}
	if err := r.take(depth, n.Line); err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Raw = Boolean, "false"
		if v {
			n.Raw = "true"
		}
	case json.Number:
		n.Kind, n.Raw = Number, v.String()
	case string:
		n.Kind, n.Raw = Text, v
		r.Text(at, v, n.Line)
	case json.Delim:
		if v == '[' {
			n.Kind = List
			return n, r.list(at, depth, n)
		}
		n.Kind = Mapping
		return n, r.mapping(at, depth, n)
	}
	return n, nil
}

func (r *jsonReader) list(at string, depth int, n *Node) error {
	for r.decoder.More() {
		token, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		item, err := r.value(Index(at, len(n.Items)), depth+1, token)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	return r.close()
}

func (r *jsonReader) mapping(at string, depth int, n *Node) error {
	seen := make(map[string]int)
	for r.decoder.More() {
		key, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		e := Entry{Line: r.place()}
		e.Key, _ = key.(string) // the text was checked: a key is a string
		token, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		if e.Value, err = r.value(Join(at, Shorten(e.Key)), depth+1, token); err != nil {
			return err
		}
		r.add(at, n, e, seen)
	}
	return r.close()
}

func (r *jsonReader) close() error {
	if _, err := r.next(); err != nil {
		return jsonFault(r.data, err)
	}
	return nil
}
