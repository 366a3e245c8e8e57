package api_test

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// composed is a request, and what the document has against it.
type composed struct {
	target string
	header http.Header
	body   []byte
	faults []string
}

// compose makes a request of an operation.
func (f *routeFuzzer) compose(one *described) composed {
	request := composed{header: http.Header{}}
	target, query := one.path, url.Values{}
	for _, parameter := range one.Parameters {
		if parameter.In != "path" && !parameter.Required && f.random.IntN(2) == 0 {
			continue
		}
		if parameter.Required && parameter.In == "query" && f.random.IntN(12) == 0 {
			request.faults = append(request.faults, parameter.Name+" is missing")
			continue
		}
		text, faulty := f.parameter(parameter.Schema, parameter.Name)
		switch parameter.In {
		case "path":
			if text == "" { // that would be another route
				text = "x"
				faulty = f.faults(parameter.Schema, readAs(parameter.Schema, text), parameter.Name)
			}
			target = strings.ReplaceAll(target, "{"+parameter.Name+"}", url.PathEscape(text))
		case "query":
			query.Set(parameter.Name, text)
			if text == "" && !parameter.Required {
				faulty = nil // it counts as not given
			}
		case "header":
			text = strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f {
					return -1 // net/http lets no such header through
				}
				return r
			}, text)
			request.header.Set(parameter.Name, text)
			faulty = nil // what is left may be fine
		}
		request.faults = append(request.faults, faulty...)
	}
	if f.random.IntN(20) == 0 {
		query.Set("nobody_asked", f.word())
		request.faults = append(request.faults, "there is no query parameter nobody_asked")
	}
	request.target = target
	if len(query) > 0 {
		request.target += "?" + query.Encode()
	}
	f.fill(one, &request)
	return request
}

// parameter draws the text of a parameter.
func (f *routeFuzzer) parameter(s *schema, name string) (text string, faults []string) {
	value := f.value(s, name, 0)
	if f.random.IntN(4) == 0 {
		value = f.junk()
	}
	switch value := value.(type) {
	case string:
		text = value
	case float64:
		text = strconv.FormatFloat(value, 'f', -1, 64)
	case bool:
		text = strconv.FormatBool(value)
	default:
		text = f.word()
	}
	return text, f.faults(s, readAs(s, text), name)
}

// readAs is the text as a value of the schema's type, or as a text.
func readAs(s *schema, text string) any {
	switch s.Type {
	case "integer", "number":
		if number, err := strconv.ParseFloat(text, 64); err == nil && regexp.MustCompile(`^-?[0-9.]+$`).MatchString(text) {
			return number
		}
	case "boolean":
		if truth, err := strconv.ParseBool(text); err == nil {
			return truth
		}
	case "array":
		var list []any
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, part)
		}
		return list
	}
	if list, ok := s.Type.([]any); ok && slices.Contains(list, any("array")) {
		return strings.Split(text, ",")
	}
	return text
}

// fill gives a request its body, where the operation takes one.
func (f *routeFuzzer) fill(one *described, request *composed) {
	if one.Body == nil {
		if f.random.IntN(10) == 0 && one.method != "GET" && one.method != "HEAD" {
			request.body = []byte(f.word())
		}
		return
	}
	kinds := slices.Sorted(maps.Keys(one.Body.Content))
	kind := kinds[f.random.IntN(len(kinds))]
	request.header.Set("Content-Type", kind)
	if kind != "application/json" {
		request.body = []byte(f.file())
		return
	}
	s := one.Body.Content[kind].Schema
	value := f.value(s, "", 0)
	for range f.random.IntN(3) {
		value = f.mutate(value)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		f.t.Fatal(err)
	}
	request.body = encoded
	if one.path != "/api/v1/studies" { // its schema only says that it is an object
		request.faults = append(request.faults, f.faults(s, value, "body")...)
	}
	if f.random.IntN(10) == 0 {
		broken, why := f.damage(encoded)
		request.body, request.faults = broken, append(request.faults, why)
	}
	if len(request.body) > 1<<20 {
		request.faults = append(request.faults, "the body is too large")
	}
}

// file is a body that is not JSON.
func (f *routeFuzzer) file() string {
	switch f.random.IntN(5) {
	case 0:
		return "weights"
	case 1:
		return strings.Replace(smallStudy, "small", "x"+strconv.Itoa(f.random.IntN(1000)), 1)
	case 2:
		return strings.Replace(smallStudy, "0.001", f.word(), 1)
	case 3:
		return smallStudy + "\n" + f.word() + ": " + f.word() + "\n"
	}
	return strings.Repeat(f.word()+"\n", f.random.IntN(100))
}

// damage makes JSON that nobody may accept.
func (f *routeFuzzer) damage(encoded []byte) (broken []byte, why string) {
	text := string(encoded)
	switch f.random.IntN(7) {
	case 0:
		return []byte(text[:len(text)-1]), "the body ends too early"
	case 1:
		return []byte(text + " {}"), "there is something behind the value"
	case 2:
		return []byte(`{"a":1,"a":2}`), "a name comes twice"
	case 3:
		return []byte(`{"name":"` + "\xff\xfe" + `"}`), "it is not UTF-8"
	case 4:
		return []byte(`{"name":"\ud800"}`), "it has half a character"
	case 5:
		return []byte(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)), "it is too deep"
	}
	return []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`), "it is too large"
}

// value draws a value that the schema allows, mostly.
func (f *routeFuzzer) value(s *schema, name string, depth int) any {
	if known := f.known[name]; len(known) > 0 && f.random.IntN(10) < 7 {
		return known[f.random.IntN(len(known))]
	}
	s = f.resolve(s)
	switch {
	case len(s.OneOf) > 0:
		return f.value(s.OneOf[f.random.IntN(len(s.OneOf))], name, depth)
	case len(s.Enum) > 0:
		return s.Enum[f.random.IntN(len(s.Enum))]
	}
	switch kindOf(s) {
	case "string":
		return f.text(s)
	case "integer", "number":
		return f.number(s)
	case "boolean":
		return f.random.IntN(2) == 0
	case "array":
		list := []any{}
		for range bound(s.MinItems, 0) + f.random.IntN(3) {
			list = append(list, f.value(s.Items, name, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, property) || depth < 5 && f.random.IntN(3) == 0 {
			object[property] = f.value(s.Properties[property], property, depth+1)
		}
	}
	if more := additional(s); more != nil && depth < 5 {
		for range bound(s.MinProperties, 0) + f.random.IntN(2) {
			object[f.word()] = f.value(more, "", depth+1)
		}
	}
	return object
}

func (f *routeFuzzer) text(s *schema) string {
	switch s.Pattern {
	case "^[0-9a-f]{64}$":
		return strings.Repeat("0a", 32)
	case "^[A-Za-z0-9_-]+$", "^[!-~]{1,128}$":
		return "word-" + strconv.Itoa(1000+f.random.IntN(9000))
	}
	if s.Format == "date-time" {
		return "2026-01-02T03:04:05Z"
	}
	if s.MaxLength != nil && f.random.IntN(10) == 0 {
		return strings.Repeat("x", *s.MaxLength+f.random.IntN(2))
	}
	if least := bound(s.MinLength, 0); least > 1 {
		return strings.Repeat("y", least)
	}
	return f.word()
}

func (f *routeFuzzer) number(s *schema) float64 {
	choices := []float64{0, 1, 2, 3, 10}
	if s.Minimum != nil {
		choices = append(choices, *s.Minimum, *s.Minimum-1)
	}
	if s.Maximum != nil {
		choices = append(choices, *s.Maximum, *s.Maximum+1)
	}
	if kindOf(s) == "number" {
		choices = append(choices, 0.5, 1e-300, 1e300)
	}
	return choices[f.random.IntN(len(choices))]
}

// words are what has broken other servers.
var words = []string{
	"", "x", "loss", "a b", "../../etc/passwd", "..%2f..%2fetc", `..\..\windows`, "/etc/passwd", "file:///etc/passwd", "http://169.254.169.254/", "' OR 1=1 --", `"; DROP TABLE trial; --`,
	"$(id)", "`id`", "; id", "| id", "{{7*7}}", "${7*7}", "%s%n", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "\r\nSet-Cookie: a=b", "a\x00b", "\u202eevil", "\ufeff", "\ufffd",
	"é", "e\u0301", strings.Repeat("\u0301", 200), "💥", "null", "true", "NaN", "-1", "0x10", "1e999", "9223372036854775808", "-9223372036854775809", "__proto__", "constructor", "%00", "%zz", "+", "*", "gASVKgAAAAAAAACMBXBvc2l4lIwGc3lzdGVt",
}

func (f *routeFuzzer) word() string { return words[f.random.IntN(len(words))] }

// junk is a value that nobody asked for.
func (f *routeFuzzer) junk() any {
	switch f.random.IntN(9) {
	case 0:
		return nil
	case 1:
		return []any{}
	case 2:
		return map[string]any{}
	case 3:
		return []float64{math.MaxInt64, math.MinInt64, 1 << 53, -1, 0.5, 1e308, -1e308, 5e-324}[f.random.IntN(8)]
	case 4:
		return f.random.IntN(2) == 0
	case 5:
		return strings.Repeat(f.word()+"x", 1+f.random.IntN(3000))
	case 6:
		return []any{map[string]any{f.word(): f.word()}, f.word(), 1.0}
	case 7:
		return map[string]any{f.word(): []any{1.0}, f.word(): f.word()}
	}
	return f.word()
}

// mutate changes one thing somewhere in a value.
func (f *routeFuzzer) mutate(value any) any {
	switch value := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		changed := maps.Clone(value)
		switch choice := f.random.IntN(6); {
		case choice == 0 || len(names) == 0:
			changed[f.word()] = f.junk()
		case choice == 1:
			delete(changed, names[f.random.IntN(len(names))])
		case choice == 2:
			name := names[f.random.IntN(len(names))]
			changed[strings.ToUpper(name)] = changed[name]
		default:
			name := names[f.random.IntN(len(names))]
			changed[name] = f.mutate(changed[name])
		}
		return changed
	case []any:
		if len(value) == 0 || f.random.IntN(3) == 0 {
			return append(slices.Clone(value), f.junk())
		}
		changed := slices.Clone(value)
		at := f.random.IntN(len(changed))
		changed[at] = f.mutate(changed[at])
		return changed
	}
	return f.junk()
}
