package device

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// MaxFileBytes bounds a device's file.
const MaxFileBytes = 64 << 10

const wrongly = "the device is described wrongly"

// Read reads and checks one device's file. The error is [problem.Invalid] and
// names every fault with its field, its value and what would be right.
func Read(data []byte) (Device, error) {
	if len(data) > MaxFileBytes {
		return Device{}, problem.WithFields(wrongly, []problem.Field{{Path: tree.WholeFile, Message: fmt.Sprintf("has %d bytes: a device's file has at most %d", len(data), MaxFileBytes)}})
	}
	root, faults, err := tree.ParseYAML(data)
	if told, ok := errors.AsType[*problem.Error](err); ok {
		return Device{}, problem.WithFields(wrongly, told.Fields)
	} else if err != nil {
		return Device{}, err
	}
	d := &tree.Decoder{Faults: faults, Of: "a device"}
	own := From(d, "", root)
	if len(d.Faults) > 0 {
		return Device{}, problem.WithFields(wrongly, d.Faults)
	}
	return own, nil
}

// From is the device that a part of a file describes. What is wrong with it is among the
// decoder's faults.
func From(d *tree.Decoder, at string, n *tree.Node) (own Device) {
	before := len(d.Faults)
	written, err := json.Marshal(d.Plain(at, n))
	if len(d.Faults) > before {
		return own
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(written))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&own)
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		wanted := map[reflect.Kind]string{
			reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number",
			reflect.Float64: "a number", reflect.Slice: "a list", reflect.Struct: "a mapping, such as {value: 4, source: vendor}",
		}[kind.Type.Kind()]
		d.Report(problem.Field{Path: cmp.Or(tree.Join(at, kind.Field), tree.WholeFile), Message: "must be " + wanted + ", not a " + kind.Value})
	case err != nil:
		d.Fault(cmp.Or(at, tree.WholeFile), n, "has an %s: leave it out, or see the fields of a device in docs/edge.md", strings.TrimPrefix(err.Error(), "json: "))
	}
	if err == nil {
		for _, fault := range check(own) {
			fault.Path = tree.Join(at, fault.Path)
			d.Report(fault)
		}
	}
	return own
}

func shorten(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
