package document

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/internal/problem"
)

// field is one field of a message as it is on the wire.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bits   uint64 // of a number
	bytes  []byte // of text, a message or a packed list: part of the file, not a copy
}

// fields calls visit for each field of a message, in order.
func fields(message []byte, visit func(field) error) error {
	for at := 0; at < len(message); {
		number, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return malformed(at, n)
		}
		at += n
		one := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			one.bits, n = protowire.ConsumeVarint(message[at:])
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(message[at:])
			one.bits = uint64(bits)
		case protowire.Fixed64Type:
			one.bits, n = protowire.ConsumeFixed64(message[at:])
		case protowire.BytesType:
			one.bytes, n = protowire.ConsumeBytes(message[at:])
		default: // groups are in no version of ONNX
			return problem.New(problem.Invalid, "this is not an ONNX file: a field of type %d at byte %d of a message", kind, at)
		}
		if n < 0 {
			return malformed(at, n)
		}
		at += n
		if err := visit(one); err != nil {
			return err
		}
	}
	return nil
}

// Field is one of a message: a number, or a content that is a text or a message.
type Field struct {
	Number  int
	Value   uint64
	Content []byte
}

// Visit calls visit for each field of a message, in order. It ends where the bytes
// make no sense.
func Visit(message []byte, visit func(Field)) {
	_ = fields(message, func(f field) error {
		visit(Field{int(f.number), f.bits, f.bytes})
		return nil
	})
}

func malformed(at, code int) error {
	return problem.New(problem.Invalid, "this is not an ONNX file, or only a part of one: byte %d of a message: %w", at, protowire.ParseError(code))
}

// integers appends those of a field to a list, whether it is packed or not; no
// more than limit are kept.
func (f field) integers(list []int64, limit int) ([]int64, error) {
	if f.kind != protowire.BytesType {
		if len(list) < limit {
			list = append(list, int64(f.bits))
		}
		return list, nil
	}
	for rest := f.bytes; len(rest) > 0 && len(list) < limit; {
		bits, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return nil, malformed(len(f.bytes)-len(rest), n)
		}
		list, rest = append(list, int64(bits)), rest[n:]
	}
	return list, nil
}

// each calls visit for each integer of a field, packed or not.
func (f field) each(visit func(int64) error) error {
	if f.kind != protowire.BytesType {
		return visit(int64(f.bits))
	}
	for rest := f.bytes; len(rest) > 0; {
		bits, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return malformed(len(f.bytes)-len(rest), n)
		}
		if err := visit(int64(bits)); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// count is how many numbers of a fixed width a field holds.
func (f field) count(width int) int {
	if f.kind == protowire.BytesType {
		return len(f.bytes) / width
	}
	return 1
}
