// Package openapi has the schemas of types that are not what their Go type looks like, and
// completes the OpenAPI document that is read off the routes.
package openapi

import (
	"bytes"
	_ "embed" // the study file's schema
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// The OpenAPI document is what other languages' clients are generated from, so
// it says more than the framework reads off Go's types: which words a text may
// be, that lists in answers are never null, what an event of each kind holds,
// and what a study file is made of. Requests are not checked against that part:
// the study file has its own parser, and a null where a list may be left out is
// still taken. The tests of web/api hold every answer they see against it.

// studyFileSchemas are those of a study file, by name.
//
//go:embed studyfile.json
var studyFileSchemas []byte

// pathPrefix is what all paths of the API begin with.
const pathPrefix = "/api/v1"

// tree is a piece of a JSON document.
type tree = map[string]any

// Complete is the framework's document with all that.
func Complete(framework *huma.OpenAPI) ([]byte, error) {
	plain, err := json.Marshal(framework)
	if err != nil {
		return nil, err
	}
	var document tree
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	schemas := inside(document, "components", "schemas")
	asked := askedFor(document)
	for name, schema := range schemas {
		neverNull(schema, asked[name])
	}
	neverNull(document["paths"], false)
	for place, words := range wordings() {
		if err := enumerate(schemas, place, words); err != nil {
			return nil, err
		}
	}
	if err := describeEvents(schemas); err != nil {
		return nil, err
	}
	if err := describeStudyFile(document, schemas); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

// inside is the tree at the end of the path; nil where there is none.
func inside(at tree, path ...string) tree {
	for _, name := range path {
		at, _ = at[name].(tree)
	}
	return at
}

// askedFor are the schemas that requests are made of.
func askedFor(document tree) map[string]bool {
	schemas, asked := inside(document, "components", "schemas"), map[string]bool{}
	var walk func(node any)
	walk = func(node any) {
		switch branch := node.(type) {
		case tree:
			if reference, is := branch["$ref"].(string); is {
				if name := strings.TrimPrefix(reference, "#/components/schemas/"); !asked[name] {
					asked[name] = true
					walk(schemas[name])
				}
			}
			for _, child := range branch {
				walk(child)
			}
		case []any:
			for _, child := range branch {
				walk(child)
			}
		}
	}
	for _, methods := range inside(document, "paths") {
		for _, operation := range methods.(tree) {
			walk(operation.(tree)["requestBody"])
		}
	}
	return asked
}

// neverNull takes null from the types of lists. In what requests are made of, a
// list that must be given may be null, as it always could be: there only lists
// that may be left out are changed.
func neverNull(node any, asked bool) {
	branch, is := node.(tree)
	if !is {
		if list, several := node.([]any); several {
			for _, child := range list {
				neverNull(child, asked)
			}
		}
		return
	}
	if kinds, several := branch["type"].([]any); several && slices.Contains(kinds, any(huma.TypeArray)) {
		branch["type"] = huma.TypeArray
	}
	required, _ := branch["required"].([]any)
	properties, _ := branch["properties"].(tree)
	for name, property := range properties {
		if !asked || !slices.Contains(required, any(name)) {
			neverNull(property, asked)
		}
	}
	for name, child := range branch {
		if name != "properties" {
			neverNull(child, asked)
		}
	}
}

// wordings are the texts that may stand in a property of a schema, by
// "schema.property", where the Go type says no more than that it is a text.
func wordings() map[string][]any {
	statuses := listOf(protocol.StudyRunning, protocol.StudyPaused, protocol.StudyCompleted, protocol.StudyStopped, protocol.StudyFailed)
	directions := listOf(definition.Maximize, definition.Minimize)
	kinds := listOf(space.Model, space.Training, space.System, space.Inference)
	return map[string][]any{
		"StudyView.status": statuses, "Recommendation.status": statuses,
		"Objective.direction": directions,
		"Parameter.kind":      kinds, "ParameterImportance.kind": kinds,
		"Expectation.sure":            listOf(space.Low, space.Medium, space.High),
		"Parameter.type":              listOf(space.FloatType, space.IntType, space.CategoricalType, space.OrdinalType),
		"Settings.policy":             listOf(budget.Multi, budget.Epochs, budget.Dataset, budget.Seconds, budget.Joules),
		"Settings.growth":             listOf(budget.Geometric, budget.Linear),
		"Search.learning":             listOf(search.LowerRungs, search.OneRung),
		"Settings.rounding":           listOf(budget.Nearest, budget.Down),
		"AcceptedReport.system_phase": listOf(trial.Phases()...),
	}
}

func listOf[T ~string](words ...T) []any {
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return list
}

func enumerate(schemas tree, place string, words []any) error {
	schema, property, _ := strings.Cut(place, ".")
	found := inside(schemas, schema, "properties", property)
	if found == nil || found["type"] != huma.TypeString {
		return fmt.Errorf("the document has no text %s: correct wordings", place)
	}
	found["enum"] = words
	return nil
}

// eventData is the schema of the data of an event, by its kind; empty where
// there are none.
func eventData() map[string]any {
	reference := func(name string) tree { return tree{"$ref": "#/components/schemas/" + name} }
	return map[string]any{
		"study_created":  reference("Definition"),
		"study_status":   nil,
		"study_extended": reference("Stop"),
		"study_set":      reference("SetRequest"),
		"study_owner":    reference("Ownership"),
		"trial_state":    reference("LoggedTrial"),
		"report":         reference("AcceptedReport"),
		"checkpoint":     reference("Checkpoint"),
		"emulation":      reference("InferenceCost"),
		"annotation":     reference("Annotation"),
		"search":         tree{"type": huma.TypeObject, "additionalProperties": true, "description": "the search's input and its answer, for replays"},
	}
}

// describeEvents makes an event one of several, which its kind tells apart.
func describeEvents(schemas tree) error {
	event, ranked := inside(schemas, "Event"), inside(schemas, "RankedTrial")
	if event == nil || ranked == nil {
		return fmt.Errorf("the document has no Event or no RankedTrial: correct describeEvents")
	}
	// A trial as the log has it: without what only a leaderboard knows, and with
	// what old logs have for a trial that was not measured.
	logged, err := copied(ranked)
	if err != nil {
		return err
	}
	properties := inside(logged, "properties")
	delete(properties, "rank")
	delete(properties, "repeated")
	inside(properties, "results")["type"] = []any{huma.TypeArray, "null"}
	logged["required"] = slices.DeleteFunc(logged["required"].([]any), func(name any) bool { return name == "rank" })
	logged["description"] = "a trial at the moment of the event"
	schemas["LoggedTrial"] = logged
	var kinds []any
	data := eventData()
	for _, kind := range slices.Sorted(maps.Keys(data)) {
		one, err := copied(event)
		if err != nil {
			return err
		}
		fields := inside(one, "properties")
		fields["kind"] = tree{"type": huma.TypeString, "enum": []any{kind}}
		delete(fields, "data")
		if data[kind] != nil {
			fields["data"] = data[kind]
		}
		kinds = append(kinds, one)
	}
	schemas["Event"] = tree{"oneOf": kinds, "description": "one line of a study's history; kind says what data is"}
	return nil
}

func copied(from tree) (tree, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	var to tree
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return to, decoder.Decode(&to)
}

// describeStudyFile says what a study file is, and that one is previewed and
// creates a study.
func describeStudyFile(document, schemas tree) error {
	var file tree
	decoder := json.NewDecoder(bytes.NewReader(studyFileSchemas))
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		return fmt.Errorf("read studyfile.json: %w", err)
	}
	for name, schema := range file {
		if _, taken := schemas[name]; taken {
			return fmt.Errorf("the document has a schema %s already: rename the one in studyfile.json", name)
		}
		schemas[name] = schema
	}
	body := inside(document, "paths", pathPrefix+"/studies", "post", "requestBody", "content", "application/json", "schema")
	choices, _ := body["oneOf"].([]any)
	if len(choices) != 2 {
		return fmt.Errorf("a study is not created from one of two documents: correct describeStudyFile")
	}
	reference := tree{"$ref": "#/components/schemas/StudyFile"}
	choices[0] = reference
	with, _ := choices[1].(tree)
	inside(with, "properties")["study"] = reference
	inside(document, "paths", pathPrefix+"/preview", "post", "requestBody", "content", "application/json")["schema"] = reference
	return nil
}
