package tandem_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/rest.md")

// TestTheReferenceOfRESTIsThatOfTheDocument makes docs/reference/rest.md from
// docs/openapi.json, which another test holds to the server.
func TestTheReferenceOfRESTIsThatOfTheDocument(t *testing.T) {
	content, err := os.ReadFile("docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Summary     string   `json:"summary"`
			Scopes      []string `json:"x-scopes"`
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					} `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("# Every route\n\nMade from [openapi.json](../openapi.json), which has all fields, answers and bounds, and which every server shows at `/api/v1/openapi.json`: `go test . -run ReferenceOfREST -update`. How to use it, with `curl`: [the protocol](../protocol.md).\n\n| | route | what | body | tokens |\n|---|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			one := document.Paths[path][method]
			body := ""
			for _, kind := range slices.Sorted(maps.Keys(one.RequestBody.Content)) {
				body = kind
				if name := one.RequestBody.Content[kind].Schema.Ref; name != "" {
					body = "`" + name[strings.LastIndexByte(name, '/')+1:] + "`"
				}
			}
			scopes := strings.Join(one.Scopes, ", ")
			if scopes == "" {
				scopes = "none needed"
			}
			fmt.Fprintf(&text, "| %s | `%s` | %s | %s | %s |\n", strings.ToUpper(method), strings.TrimPrefix(path, "/api/v1"), one.Summary, body, scopes)
		}
	}
	const reference = "docs/reference/rest.md"
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
		t.Error("docs/reference/rest.md is not of docs/openapi.json: run go test . -run ReferenceOfREST -update")
	}
}
