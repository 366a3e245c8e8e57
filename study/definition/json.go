package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// parseJSON reads JSON into a tree. The standard decoder would take the last
// of two equal keys, any case of a name and null for everything, so that only
// its tokens are used.
func parseJSON(data []byte, b *builder) (*node, error) {
	// The whole text is checked first: the decoder would stop behind the first
	// value, and its errors carry no place.
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, jsonFault(data, err)
	}
	r := jsonReader{builder: b, data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	r.decoder.UseNumber()
	r.oneLine = !bytes.Contains(bytes.TrimSpace(data), []byte("\n"))
	token, err := r.next()
	if err != nil {
		return nil, jsonFault(data, err)
	}
	return r.value("", 1, token)
}

func jsonFault(data []byte, err error) error {
	line := 0
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
	}
	return fileFault(line, "is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
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

func (r *jsonReader) value(at string, depth int, token json.Token) (*node, error) {
	n := &node{line: r.place()}
	if err := r.take(depth, n.line); err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		n.kind = null
	case bool:
		n.kind, n.raw = boolean, "false"
		if v {
			n.raw = "true"
		}
	case json.Number:
		n.kind, n.raw = number, v.String()
	case string:
		n.kind, n.raw = text, v
		r.text(at, v, n.line)
	case json.Delim:
		if v == '[' {
			n.kind = list
			return n, r.list(at, depth, n)
		}
		n.kind = mapping
		return n, r.mapping(at, depth, n)
	}
	return n, nil
}

func (r *jsonReader) list(at string, depth int, n *node) error {
	for r.decoder.More() {
		token, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		item, err := r.value(index(at, len(n.items)), depth+1, token)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	return r.close()
}

func (r *jsonReader) mapping(at string, depth int, n *node) error {
	seen := make(map[string]int)
	for r.decoder.More() {
		key, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		e := entry{line: r.place()}
		e.key, _ = key.(string) // the text was checked: a key is a string
		token, err := r.next()
		if err != nil {
			return jsonFault(r.data, err)
		}
		if e.value, err = r.value(join(at, shorten(e.key)), depth+1, token); err != nil {
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
