package answer

import (
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/strict"
)

// Field says in our words what the framework found wrong at a place of the request.
func Field(location, message string, value any) problem.Field {
	field := problem.Field{Path: pathOf(location), Value: value}
	if rest, ok := strings.CutPrefix(message, "expected required property "); ok {
		name, _, _ := strings.Cut(rest, " ")
		if field.Path == "body" {
			field.Path = ""
		}
		return problem.Field{Path: strict.Below(field.Path, name), Message: "is missing"}
	}
	if rest, ok := strings.CutPrefix(message, "required "); ok && strings.HasSuffix(rest, " parameter is missing") {
		return problem.Field{Path: field.Path, Message: "is missing"}
	}
	switch message {
	case "unexpected property":
		return problem.Field{Path: field.Path, Message: "is not a field of this request"}
	case "unknown query parameter":
		return problem.Field{Path: field.Path, Message: "is not a parameter of this request"}
	case "expected value to match exactly one schema but matched none":
		// Requests have one kind of value with several forms: a metric.
		field.Message = `must be a number, or one of "NaN", "Infinity" and "-Infinity"`
		return field
	}
	field.Message = reword(message)
	return field
}

// reword makes "must be a number >= 1" of "expected number >= 1".
func reword(message string) string {
	rest, ok := strings.CutPrefix(message, "expected ")
	if !ok {
		return message
	}
	for _, pair := range [][2]string{
		{"number", "must be a number"}, {"integer", "must be an integer"}, {"boolean", "must be true or false"},
		{"string to match pattern", "must match the pattern"}, {"string to be", "must be"}, {"string", "must be a string"},
		{"array length", "must have a number of items"}, {"array items to be unique", "must not have an item twice"}, {"array", "must be a list"},
		{"object with", "must have"}, {"object", "must be an object"}, {"length", "must have a length"},
		{"value to be", "must be"}, {"value to", "must"},
	} {
		if end, ok := strings.CutPrefix(rest, pair[0]); ok {
			return pair[1] + end
		}
	}
	return "must be " + rest
}

// pathOf drops the part of the request from a place in it: "body.leases[0]"
// is "leases[0]" to who wrote the body.
func pathOf(location string) string {
	part, rest, found := strings.Cut(location, ".")
	if found && (part == "body" || part == "query" || part == "path" || part == "header") {
		return rest
	}
	return location
}
