package device

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxFileBytes bounds a device's file.
const MaxFileBytes = 64 << 10

// The bounds of a file's structure: the parser recurses without one.
const (
	maxTokens = 8_000
	maxDepth  = 8
)

// Read reads and checks one device's file. The error is [problem.Invalid] and
// names every fault with its field, its value and what would be right.
func Read(data []byte) (Device, error) {
	if len(data) > MaxFileBytes {
		return Device{}, fault(0, fmt.Sprintf("has %d bytes: a device's file has at most %d", len(data), MaxFileBytes))
	}
	if err := guard(lexer.Tokenize(string(data))); err != nil {
		return Device{}, err
	}
	var d Device
	if err := yaml.UnmarshalWithOptions(data, &d, yaml.Strict()); err != nil {
		return Device{}, unreadable(err)
	}
	if faults := check(d); len(faults) > 0 {
		return Device{}, problem.WithFields("the device is described wrongly", faults)
	}
	return d, nil
}

func fault(line int, message string) error {
	return problem.WithFields("the device is described wrongly", []problem.Field{{Path: "file", Message: message, Line: line}})
}

// unreadable turns the parser's error into a fault with its line.
func unreadable(err error) error {
	var syntax interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &syntax) {
		return fault(0, "cannot be read: "+shorten(err.Error()))
	}
	message := syntax.GetMessage()
	if strings.Contains(message, "unknown field") {
		message += ": leave it out, or see the fields of a device in docs/edge.md"
	} else {
		message = "cannot be read: " + message
	}
	return fault(lineOf(syntax.GetToken()), shorten(message))
}

func shorten(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// guard refuses what no device needs and what would let a small file mean a huge
// one, before the parser sees it.
func guard(tokens token.Tokens) error {
	if len(tokens) == 0 {
		return fault(0, "is empty: it needs at least name, title, processor, clusters, memory, power and default_runtime")
	}
	if len(tokens) > maxTokens {
		return fault(0, fmt.Sprintf("has more than %d words and signs: describe one device in a file", maxTokens))
	}
	flow := 0
	var columns []int
	for _, t := range tokens {
		if message := refusal(t); message != "" {
			return fault(lineOf(t), message)
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		block := t.Type == token.SequenceEntryType || t.Next != nil && t.Next.Type == token.MappingValueType
		if flow <= 0 && block && t.Position != nil {
			columns = open(columns, t.Position.Column)
		}
		if flow+len(columns) > 2*maxDepth || flow > maxDepth || len(columns) > maxDepth {
			return fault(lineOf(t), fmt.Sprintf("nests deeper than %d levels: no device does", maxDepth))
		}
	}
	return nil
}

// open notes that a block begins or goes on at the column.
func open(columns []int, column int) []int {
	for len(columns) > 0 && columns[len(columns)-1] > column {
		columns = columns[:len(columns)-1]
	}
	if len(columns) == 0 || columns[len(columns)-1] < column {
		columns = append(columns, column)
	}
	return columns
}

// decimals are the numbers that all readers of YAML understand alike.
var decimals = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// refusal says what is wrong with a token that no device has, or nothing.
func refusal(t *token.Token) string {
	switch t.Type {
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return "uses an anchor, an alias or a merge key (&, * or <<): write the values out"
	case token.TagType, token.DirectiveType, token.MappingKeyType:
		return "uses a tag, a directive or a ? key, which a device does not have: leave it out"
	case token.DocumentHeaderType:
		if t.Prev != nil {
			return "has several YAML documents: describe one device in a file"
		}
	case token.IntegerType, token.FloatType:
		if !decimals.MatchString(t.Value) {
			return "has the number " + shorten(t.Value) + ", which readers of YAML understand differently: write it as 1500000000 or 1.5e9"
		}
	case token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.InfinityType, token.NanType:
		return "has the number " + shorten(t.Value) + ": write a decimal number, such as 1500000000 or 1.5e9"
	}
	return ""
}
