package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestRoutesFuzzed reads our own OpenAPI document and sends each operation what
// it asks for, what is at its bounds, and what it says it refuses: wrong types,
// missing, further and huge fields, injections, broken Unicode and JSON. Then
// it holds the server to the document:
//
//   - nothing is answered with a failure of ours, and every refusal is a problem;
//   - who has no token, or one of another scope, is refused, whatever is sent;
//   - what the document calls invalid is never accepted;
//   - what comes back is what the document says;
//   - a call that is repeated with its key gets the same answer again.
//
// It runs for 3 seconds, or for TANDEM_FUZZ_TIME (10m), from the seed in
// TANDEM_FUZZ_SEED. A failure names the seed and shows the request.
func TestRoutesFuzzed(t *testing.T) {
	t.Parallel()
	span, seed := 3*time.Second, uint64(1)
	var err error
	if given := os.Getenv("TANDEM_FUZZ_TIME"); given != "" {
		if span, err = time.ParseDuration(given); err != nil {
			t.Fatal(err)
		}
	}
	if given := os.Getenv("TANDEM_FUZZ_SEED"); given != "" {
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	const visits = 300 // of one server: later ones meet what earlier ones did
	began, sent := time.Now(), 0
	for round := uint64(0); !t.Failed() && (round == 0 || time.Since(began) < span); round++ {
		f := newRouteFuzzer(t, seed, round)
		for i := range visits {
			if t.Failed() || round > 0 && time.Since(began) >= span {
				break
			}
			f.visit(f.operations[(i+int(round)*visits)%len(f.operations)])
		}
		sent += f.sent
	}
	t.Logf("%d requests from seed %d", sent, seed)
}

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

// routeFuzzer is one server with what was learned of it.
type routeFuzzer struct {
	t          testing.TB
	seed       uint64
	random     *rand.Rand
	stage      *stage
	contract   contract
	operations []*described
	// known are values that mean something to this server, by the name of the
	// field or parameter.
	known map[string][]any
	sent  int
}

func newRouteFuzzer(t *testing.T, seed, round uint64) *routeFuzzer {
	t.Helper()
	s := build(t, func(c *api.Config) {
		c.Logger, c.Limits = slog.New(slog.DiscardHandler), api.Limits{Requests: -1, Points: -1}
	})
	f := &routeFuzzer{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, round)), stage: s}
	study := s.stored()
	s.introduce()
	blob := "weights"
	f.known = map[string][]any{
		"study": {study, "small"}, "worker": {workerID}, "id": {workerID}, "trial": {study + "-0", study + "-1"}, "trial_id": {study + "-0"},
		"number": {0.0, 1.0}, "lease_epoch": {1.0, 2.0}, "epoch": {1.0, 2.0, 3.0}, "sha256": {hashOf([]byte(blob))}, "artifact": {hashOf([]byte(blob))},
		"bytes": {float64(len(blob))}, "wait_seconds": {0.0, 0.01}, "dry_run": {true, false}, "scope": {"worker", "viewer"}, "link": {"none"}, "add_tags": {[]any{"baseline"}}, "token": {"none", s.secrets[auth.Viewer]},
		"metrics": {map[string]any{"loss": 0.5}, map[string]any{"loss": "NaN"}}, "outcome": {"budget_reached", "failed", "given_back"},
		"offset": {0.0, 7.0}, "limit": {1.0, 10.0, 1000.0}, "configurations": {[]any{map[string]any{"rate": 0.1, "kind": "sgd"}}},
	}
	f.read()
	put := f.send(&described{method: "PUT", path: "/api/v1/artifacts/" + hashOf([]byte(blob))}, "/api/v1/artifacts/"+hashOf([]byte(blob)), http.Header{"Authorization": {"Bearer " + s.secrets[auth.Worker]}}, []byte(blob))
	lease, err := s.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: workerID})
	if put.status != 204 || err != nil || lease.Lease == nil {
		t.Fatalf("%d %s, %+v: %v", put.status, put.body, lease, err)
	}
	return f
}

// read reads the document from the server itself.
func (f *routeFuzzer) read() {
	f.t.Helper()
	got := f.send(&described{method: "GET", path: "/api/v1/openapi.json"}, "/api/v1/openapi.json", http.Header{}, nil)
	if err := json.Unmarshal(got.body, &f.contract); err != nil {
		f.t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(f.contract.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(f.contract.Paths[path])) {
			one := f.contract.Paths[path][method]
			one.method, one.path = strings.ToUpper(method), path
			f.operations = append(f.operations, one)
		}
	}
	if len(f.operations) < 40 {
		f.t.Fatalf("the document has %d operations", len(f.operations))
	}
}

// visit sends an operation one request, valid or not, and judges the answer.
func (f *routeFuzzer) visit(one *described) {
	request := f.compose(one)
	secret, allowed := f.credential(one)
	header := request.header.Clone()
	if secret != "" {
		header.Set("Authorization", "Bearer "+secret)
	}
	got := f.send(one, request.target, header, request.body)
	if f.t.Failed() {
		return
	}
	public := len(one.Scopes) == 0
	switch {
	case got.status == 503: // it waited longer than we do
	case !public && secret == "" && got.status != 401:
		f.fail(one, request, got, "needs a token")
	case !public && secret != "" && !allowed && got.status != 403:
		f.fail(one, request, got, "is not for this token")
	case one.path == "/api/v1/preview" && got.status == 200 && bytes.HasPrefix(got.body, []byte(`{"faults":[{`)): // it answers with what it refuses
		f.conforms(one, request, got)
	case got.status < 300 && len(request.faults) > 0:
		f.fail(one, request, got, "accepts what the document calls invalid: %v", request.faults)
	case got.status < 300:
		f.conforms(one, request, got)
		f.repeat(one, request, header, got)
	}
}

// credential draws a token, and says whether it opens the operation.
func (f *routeFuzzer) credential(one *described) (secret string, allowed bool) {
	if f.random.IntN(8) == 0 {
		return "", false
	}
	scopes := auth.Scopes()
	scope := scopes[f.random.IntN(len(scopes))]
	if len(one.Scopes) > 0 && f.random.IntN(8) != 0 {
		scope = auth.Scope(one.Scopes[f.random.IntN(len(one.Scopes))])
	}
	return f.stage.secrets[scope], slices.Contains(one.Scopes, string(scope))
}

// conforms holds a success to the document.
func (f *routeFuzzer) conforms(one *described, request composed, got answer) {
	described, known := one.Responses[strconv.Itoa(got.status)]
	if !known && !(one.path == "/api/v1/studies" && got.status == 200) { // the plan of a dry run
		f.fail(one, request, got, "the document does not say that it may be answered so")
		return
	}
	content, isJSON := described.Content["application/json"]
	if !isJSON || content.Schema == nil || got.header.Get("Content-Type") != "application/json" {
		return
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		f.fail(one, request, got, "the answer is no JSON: %v", err)
		return
	}
	if faults := f.faults(content.Schema, value, "answer"); len(faults) > 0 {
		f.fail(one, request, got, "the answer is not what the document says: %v", faults)
	}
}

// repeat sends a call that was accepted again, if it had a key.
func (f *routeFuzzer) repeat(one *described, request composed, header http.Header, first answer) {
	if header.Get("Idempotency-Key") == "" || one.method == "GET" || !one.takes("Idempotency-Key") {
		return
	}
	again := f.send(one, request.target, header, request.body)
	if again.status != first.status && !(one.path == "/api/v1/studies" && first.status == 200) || !equalJSON(again.body, first.body) {
		f.fail(one, request, again, "a repetition is answered otherwise than %d %s", first.status, first.body)
	}
}

func (d *described) takes(parameter string) bool {
	for _, one := range d.Parameters {
		if one.Name == parameter {
			return true
		}
	}
	return false
}

func equalJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	one, errOne := json.Marshal(x)
	other, errOther := json.Marshal(y)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// send calls the handler, and checks what holds for every answer.
func (f *routeFuzzer) send(one *described, target string, header http.Header, body []byte) answer {
	f.t.Helper()
	patience := 20 * time.Second
	if strings.HasSuffix(one.path, "/events") || one.path == "/api/v1/leases" {
		patience = 20 * time.Millisecond // they wait for what may never come
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	at, err := url.ParseRequestURI(target)
	if err != nil {
		f.t.Fatalf("%s: %v", target, err)
	}
	r := &http.Request{Method: one.method, URL: at, Host: "localhost", Header: header, Body: http.NoBody, ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:1"}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	recorder := httptest.NewRecorder()
	f.stage.handler.ServeHTTP(recorder, r.WithContext(ctx))
	f.sent++
	got := answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	request := composed{target: target, header: header, body: body}
	var told document
	switch {
	case got.status >= 500 && (got.status != 503 || ctx.Err() == nil):
		f.fail(one, request, got, "fails")
	case got.status >= 400 && one.method != "HEAD" && (got.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(got.body, &told) != nil || told.Status != got.status || told.Code == "" || told.Detail == ""):
		f.fail(one, request, got, "is refused without a problem")
	case got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Content-Security-Policy") == "":
		f.fail(one, request, got, "is answered without the headers that keep browsers safe")
	}
	return got
}

func (f *routeFuzzer) fail(one *described, request composed, got answer, format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("seed %d: %s %s\n%s %s\nheader %q\nbody %.2000q\nanswer %d %.1000s", f.seed, one, fmt.Sprintf(format, args...),
		one.method, request.target, request.header, request.body, got.status, got.body)
}

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
