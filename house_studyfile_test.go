package tandem_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// fieldSchema is what docs/openapi.json says of a field of the study file.
type fieldSchema struct {
	Ref         string                  `json:"$ref"`
	Type        any                     `json:"type"`
	Description string                  `json:"description"`
	See         string                  `json:"x-see"`
	Default     any                     `json:"default"`
	Enum        []any                   `json:"enum"`
	Minimum     *json.Number            `json:"minimum"`
	Maximum     *json.Number            `json:"maximum"`
	MinItems    *json.Number            `json:"minItems"`
	MaxItems    *json.Number            `json:"maxItems"`
	MaxLength   *json.Number            `json:"maxLength"`
	MaxMembers  *json.Number            `json:"maxProperties"`
	Properties  map[string]*fieldSchema `json:"properties"`
	Required    []string                `json:"required"`
	Items       *fieldSchema            `json:"items"`
	OneOf       []*fieldSchema          `json:"oneOf"`
}

type fieldBook map[string]*fieldSchema

func (b fieldBook) of(s *fieldSchema) *fieldSchema {
	if s.Ref == "" {
		return s
	}
	found := *b[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	return &found
}

func between(low, high *json.Number, unit string) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf(", %s to %s%s", *low, *high, unit)
	case high != nil:
		return fmt.Sprintf(", at most %s%s", *high, unit)
	case low != nil && *low != "0":
		return fmt.Sprintf(", at least %s%s", *low, unit)
	}
	return ""
}

// value says what a field may be, in words.
func (b fieldBook) value(s *fieldSchema) string {
	if strings.HasSuffix(s.Ref, "/StudyFileValue") {
		return "value"
	}
	if strings.HasSuffix(s.Ref, "/StudyFileChoices") {
		return "mapping of parameters to values"
	}
	s = b.of(s)
	switch {
	case len(s.OneOf) > 0:
		var forms []string
		for _, one := range s.OneOf {
			if form := b.value(one); !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
		return strings.Join(forms, " or ")
	case len(s.Enum) > 0:
		return "`" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", "`, `"), "[]") + "`"
	case s.Type == "array":
		return "list" + between(s.MinItems, s.MaxItems, " items")
	case s.Type == "object" && len(s.Properties) > 0 && len(s.Properties) < 4:
		return "`{" + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ") + "}`"
	case s.Type == "object":
		return "mapping" + between(nil, s.MaxMembers, " members")
	case s.Type == "string":
		return "text" + between(nil, s.MaxLength, " characters")
	}
	return fmt.Sprint(s.Type) + between(s.Minimum, s.Maximum, "")
}

// meaning is its description, with where to read on.
func meaning(s *fieldSchema) string {
	text := s.Description
	if s.See != "" {
		text = strings.TrimSuffix(text, ".") + " ([more](../" + s.See + "))"
	}
	return strings.ReplaceAll(text, "|", "\\|")
}

// rows are those of the fields of a mapping, and of the mappings in it.
func (b fieldBook) rows(prefix string, s *fieldSchema, deep bool, text *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		value := b.value(field)
		switch content, _ := json.Marshal(field.Default); {
		case slices.Contains(s.Required, name):
			value += " (required)"
		case field.Default != nil:
			value += fmt.Sprintf(" (`%s`)", strings.NewReplacer(`"`, "", ":", ": ", ",", ", ").Replace(string(content)))
		}
		said := *field
		if said.Description == "" && field.Ref != "" {
			said.Description = b.of(field).Description
		}
		fmt.Fprintf(text, "| `%s%s` | %s | %s |\n", prefix, name, value, meaning(&said))
		if !deep {
			continue
		}
		for _, one := range append([]*fieldSchema{field}, field.OneOf...) {
			if one.Ref == "" && len(one.Properties) > 0 && one.Properties["values"] == nil {
				b.rows(prefix+name+".", one, true, text)
			}
		}
	}
}

// section is the mapping that a field of the file is, if it is one of its own.
func (b fieldBook) section(field *fieldSchema) *fieldSchema {
	for _, one := range append([]*fieldSchema{field}, field.OneOf...) {
		if strings.HasPrefix(one.Ref, "#/components/schemas/StudyFile") && len(b.of(one).Properties) > 0 {
			return b.of(one)
		}
	}
	return nil
}

// TestTheReferenceOfTheStudyFileIsThatOfTheDocument makes docs/reference/study-file.md
// from docs/openapi.json, whose fields of a study file are those of web/openapi/studyfile.json.
func TestTheReferenceOfTheStudyFileIsThatOfTheDocument(t *testing.T) {
	content, err := os.ReadFile("docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct{ Schemas fieldBook }
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	book := document.Components.Schemas
	file := book["StudyFile"]
	var text strings.Builder
	text.WriteString("# Every field of the study file\n\nMade from [openapi.json](../openapi.json) by `go test . -run ReferenceOfTheStudyFile -update`; the words stand in `web/openapi/studyfile.json`. How to write one: [the study file](../study-file.md).\n\n| field | value (default) | meaning |\n|---|---|---|\n")
	book.rows("", file, false, &text)
	sections := map[string]*fieldSchema{}
	for name, field := range file.Properties {
		if found := book.section(field); found != nil {
			sections[name] = found
		} else if len(field.Properties) > 0 {
			sections[name] = field
		}
	}
	sections["space"] = book["StudyFileParameter"]
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&text, "\n## `%s`\n\n", name)
		if said := meaning(sections[name]); said != "" {
			text.WriteString(said + "\n\n")
		}
		text.WriteString("| field | value (default) | meaning |\n|---|---|---|\n")
		book.rows("", sections[name], true, &text)
	}
	const reference = "docs/reference/study-file.md"
	if *update {
		if err := os.WriteFile(reference, []byte(text.String()), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text.String() {
		t.Error("docs/reference/study-file.md is not of docs/openapi.json: run go test . -run ReferenceOfTheStudyFile -update")
	}
}
