package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

// documented is the committed document, which is the one that is served, with
// what finds the path of it that a request's path is of.
var documented = sync.OnceValues(func() (contractBook, error) {
	text, err := os.ReadFile(golden)
	if err != nil {
		return contractBook{}, err
	}
	var book contractBook
	if err := json.Unmarshal(text, &book.contract); err != nil {
		return contractBook{}, err
	}
	for _, template := range slices.Sorted(maps.Keys(book.Paths)) {
		pattern := regexp.MustCompile(`\\\{[a-z0-9]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
		book.shapes = append(book.shapes, pathShape{template, regexp.MustCompile("^" + pattern + "$")})
	}
	return book, nil
})

type contractBook struct {
	contract
	shapes []pathShape
}

type pathShape struct {
	template string
	pattern  *regexp.Regexp
}

// judge holds values against the document.
func (b contractBook) judge(t testing.TB) *routeFuzzer {
	return &routeFuzzer{t: t, contract: b.contract}
}

// answerOf is the schema of an answer; nil where the document has none.
func (b contractBook) answerOf(method, path string, status int, kind string) *schema {
	for _, shape := range b.shapes {
		operation := b.Paths[shape.template][strings.ToLower(method)]
		if operation == nil || !shape.pattern.MatchString(path) {
			continue
		}
		found, has := operation.Responses[strconv.Itoa(status)]
		if !has {
			found = operation.Responses["default"]
		}
		return found.Content[kind].Schema
	}
	return nil
}

// holdToDocument holds an answer against the document: every answer that a test
// of this package sees goes through it, so that clients which were generated
// from the document are told no untruth.
func holdToDocument(t testing.TB, method, path string, got answer) {
	t.Helper()
	kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	if method == "HEAD" || kind != "application/json" && kind != "application/problem+json" {
		return
	}
	book, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ = strings.Cut(path, "?")
	schema := book.answerOf(method, path, got.status, kind)
	if schema == nil {
		return // no route of the table, or an error that came before one was found
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		t.Errorf("%s %s: the answer is no JSON: %v", method, path, err)
		return
	}
	if faults := book.judge(t).faults(schema, value, "answer"); len(faults) > 0 {
		t.Errorf("%s %s was answered %d with what docs/openapi.json does not allow:\n%s\n%.2000s", method, path, got.status, strings.Join(faults[:min(len(faults), 8)], "\n"), got.body)
	}
}

// TestAnswersAreHeldAgainstTheDocument finds what it should in an answer that is
// not what the document says.
func TestAnswersAreHeldAgainstTheDocument(t *testing.T) {
	t.Parallel()
	book, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	schema := book.answerOf("GET", "/api/v1/studies", 200, "application/json")
	if schema == nil {
		t.Fatal("the document has no answer for the list of studies")
	}
	for text, says := range map[string]string{
		`{"studies":[]}`:   "",
		`{"studies":null}`: ".studies is no array",
		`{}`:               "studies is missing",
		`{"studies":[{"rungs":[{"index":0.5}]}]}`: ".index is no integer",
		`{"studies":[],"more":1}`:                 "more is not a field",
		`{"studies":[{"status":"gone"}]}`:         "is none of",
	} {
		if got := strings.Join(book.judge(t).faults(schema, valueOf(t, []byte(text)), "answer"), "\n"); (says == "") != (got == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", text, got, says)
		}
	}
}

// TestTheDocumentKnowsEveryStudyFile of the examples and of the documentation,
// and the longer form in which a server answers them.
func TestTheDocumentKnowsEveryStudyFile(t *testing.T) {
	t.Parallel()
	book, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range []string{"../../examples/any-language/study.yaml", "../../examples/digits-sklearn/study.yaml", "../../examples/lenet-fashion-mnist/edge.yaml", "../../examples/lenet-fashion-mnist/study.yaml", "../../examples/postgres-pgbench/study.yaml"} {
		files[path] = read(t, path)
	}
	for i, block := range regexp.MustCompile("(?s)```yaml\n(name: .*?)```").FindAllSubmatch(read(t, "../../docs/study-file.md"), -1) {
		files[fmt.Sprintf("docs/study-file.md, block %d", i)] = block[1]
	}
	if len(files) < 5 {
		t.Fatalf("only %d study files were found", len(files))
	}
	file := book.Components.Schemas["StudyFile"]
	for path, text := range files {
		s := newStage(t)
		// What reads YAML here takes 1e-3 for a text, as YAML 1.1 does.
		plain, err := yaml.YAMLToJSON(regexp.MustCompile(`\b(\d+)e(-?\d+)\b`).ReplaceAll(text, []byte("${1}.0e${2}")))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if faults := book.judge(t).faults(file, valueOf(t, plain), "file"); len(faults) > 0 {
			t.Errorf("%s is no StudyFile of docs/openapi.json:\n%s", path, strings.Join(faults, "\n"))
		}
		made := s.admin("POST", "/api/v1/studies", string(plain))
		if made.status != 201 {
			t.Errorf("%s: the server refuses it: %s", path, made.body)
			continue
		}
		long := valueOf(t, made.body).(map[string]any)["definition"]
		if faults := book.judge(t).faults(file, long, "definition"); len(faults) > 0 {
			t.Errorf("%s, as the server answers it, is no StudyFile of docs/openapi.json:\n%s", path, strings.Join(faults, "\n"))
		}
	}
}

func valueOf(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return value
}
