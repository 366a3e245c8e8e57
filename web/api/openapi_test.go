package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const golden = "../../docs/openapi.json"

func TestOpenAPIDocumentIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	got := newStage(t).do(ask{method: "GET", path: "/api/v1/openapi.json"}).body
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, read(t, golden)) {
		t.Fatal("the interface is not the one of docs/openapi.json: look at the difference, then run go test ./web/api -run OpenAPI -update")
	}
}

func TestOpenAPIDescribesTheValuesThatAreNotPlain(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(newStage(t).do(ask{method: "GET", path: "/api/v1/openapi.json"}).body, &document); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ schema, property, has string }{
		{"Report", "metrics", `"enum":["NaN","Infinity","-Infinity"]`}, {"Report", "seconds", `"type":"number"`},
		{"Best", "params", `"type":"boolean"`}, {"Condition", "in", `"type":"string"`}, {"FinishReply", "state", `"pruned"`},
		{"HeldLease", "trial_id", `"type":"string"`}, {"Problem", "code", `"lease_lost"`}, {"Problem", "errors", `#/components/schemas/Field`},
		{"AcceptedReport", "lease_epoch", `"integer"`},
	} {
		var tight bytes.Buffer
		if err := json.Compact(&tight, document.Components.Schemas[c.schema].Properties[c.property]); err != nil || !strings.Contains(tight.String(), c.has) {
			t.Errorf("%s.%s is %s, without %s", c.schema, c.property, tight.String(), c.has)
		}
	}
}
