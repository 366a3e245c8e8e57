package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// contract is the OpenAPI document, as far as it is needed.
type contract struct {
	Paths      map[string]map[string]*described `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// described is an operation.
type described struct {
	method, path string
	Scopes       []string `json:"x-scopes"`
	Parameters   []struct {
		Name     string  `json:"name"`
		In       string  `json:"in"`
		Required bool    `json:"required"`
		Schema   *schema `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

func (d *described) String() string { return d.method + " " + d.path }

// schema is a JSON schema with the words that the document uses.
type schema struct {
	Ref           string             `json:"$ref"`
	Type          any                `json:"type"` // a word, or several
	Properties    map[string]*schema `json:"properties"`
	Required      []string           `json:"required"`
	Additional    json.RawMessage    `json:"additionalProperties"`
	Items         *schema            `json:"items"`
	Enum          []any              `json:"enum"`
	OneOf         []*schema          `json:"oneOf"`
	Pattern       string             `json:"pattern"`
	Format        string             `json:"format"`
	Minimum       *float64           `json:"minimum"`
	Maximum       *float64           `json:"maximum"`
	MinLength     *int               `json:"minLength"`
	MaxLength     *int               `json:"maxLength"`
	MinItems      *int               `json:"minItems"`
	MaxItems      *int               `json:"maxItems"`
	MinProperties *int               `json:"minProperties"`
	MaxProperties *int               `json:"maxProperties"`
}

func (f *routeFuzzer) resolve(s *schema) *schema {
	for s.Ref != "" {
		found, known := f.contract.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if !known {
			f.t.Fatalf("the document has no %s", s.Ref)
		}
		s = found
	}
	return s
}

// faults lists what the schema has against a value.
func (f *routeFuzzer) faults(s *schema, value any, path string) []string {
	s = f.resolve(s)
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, path+" "+fmt.Sprintf(format, args...)) }
	if len(s.OneOf) > 0 {
		fits := 0
		for _, one := range s.OneOf {
			if len(f.faults(one, value, path)) == 0 {
				fits++
			}
		}
		if fits != 1 {
			fault("fits %d of the forms", fits)
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		fault("is none of %v", s.Enum)
	}
	if s.Type != nil && !isOf(s, value) {
		fault("is no %v", s.Type)
		return faults
	}
	switch value := value.(type) {
	case string:
		length := utf8.RuneCountInString(value)
		if length < bound(s.MinLength, 0) || length > bound(s.MaxLength, math.MaxInt) {
			fault("has %d characters", length)
		}
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value) {
			fault("does not match %s", s.Pattern)
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339, value); err != nil {
				fault("is no time")
			}
		}
	case float64:
		if s.Minimum != nil && value < *s.Minimum || s.Maximum != nil && value > *s.Maximum {
			fault("is out of bounds")
		}
	case []any:
		if len(value) < bound(s.MinItems, 0) || len(value) > bound(s.MaxItems, math.MaxInt) {
			fault("has %d items", len(value))
		}
		for i, item := range value {
			if s.Items != nil {
				faults = append(faults, f.faults(s.Items, item, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case map[string]any:
		faults = append(faults, f.faultsOfMembers(s, value, path)...)
	}
	return faults
}

func (f *routeFuzzer) faultsOfMembers(s *schema, value map[string]any, path string) []string {
	var faults []string
	if len(value) < bound(s.MinProperties, 0) || len(value) > bound(s.MaxProperties, math.MaxInt) {
		faults = append(faults, fmt.Sprintf("%s has %d members", path, len(value)))
	}
	for _, name := range s.Required {
		if _, given := value[name]; !given {
			faults = append(faults, path+"."+name+" is missing")
		}
	}
	more := additional(s)
	for name, member := range value {
		switch property, known := s.Properties[name]; {
		case known && member == nil && !slices.Contains(s.Required, name): // as if it were not there
		case known:
			faults = append(faults, f.faults(property, member, path+"."+name)...)
		case more != nil:
			faults = append(faults, f.faults(more, member, path+"."+name)...)
		case string(s.Additional) == "false":
			faults = append(faults, path+"."+name+" is not a field")
		}
	}
	return faults
}

// additional is the schema of members that have no name of their own; nil if
// there may be none, or any.
func additional(s *schema) *schema {
	var more schema
	if len(s.Additional) == 0 || s.Additional[0] != '{' || json.Unmarshal(s.Additional, &more) != nil {
		return nil
	}
	return &more
}

// kindOf is the type of a schema's values that are not null.
func kindOf(s *schema) string {
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []any:
		for _, one := range kind {
			if one != "null" {
				return fmt.Sprint(one)
			}
		}
	}
	return "object"
}

func isOf(s *schema, value any) bool {
	list, several := s.Type.([]any)
	if !several {
		list = []any{s.Type}
	}
	for _, kind := range list {
		fits := false
		switch value := value.(type) {
		case nil:
			fits = kind == "null"
		case string:
			fits = kind == "string"
		case bool:
			fits = kind == "boolean"
		case float64:
			fits = kind == "number" || kind == "integer" && value == math.Trunc(value)
		case []any, []string:
			fits = kind == "array"
		case map[string]any:
			fits = kind == "object"
		}
		if fits {
			return true
		}
	}
	return false
}

func bound(given *int, otherwise int) int {
	if given == nil {
		return otherwise
	}
	return *given
}
