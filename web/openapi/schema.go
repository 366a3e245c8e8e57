package openapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// The domain's types know nothing of schemas: here stand the schemas of those
// that are not what their Go type looks like.

type floatSchema struct{}

// Schema describes trial.Float.
func (floatSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: `a number, or "NaN", "Infinity", "-Infinity"`,
		OneOf: []*huma.Schema{
			{Type: huma.TypeNumber},
			{Type: huma.TypeString, Enum: []any{"NaN", "Infinity", "-Infinity"}},
		},
	}
}

type valueSchema struct{}

// Schema describes space.Value.
func (valueSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "a parameter's value; a float always shows a point or an exponent",
		OneOf:       []*huma.Schema{{Type: huma.TypeNumber}, {Type: huma.TypeString}, {Type: huma.TypeBoolean}},
	}
}

type systemSchema struct{}

// Schema describes definition.System.
func (systemSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:       []*huma.Schema{{Type: huma.TypeString, Enum: []any{definition.Automatic, definition.Off}}, {Type: huma.TypeObject, AdditionalProperties: true}},
		Description: `the system section of a study file: "auto", "off", or for each knob one value, {"values": [...]} to tune it while trials run, or "auto"; and the objective "seconds", "joules" or "cost"`,
	}
}

type shareSchema struct{}

// Schema describes definition.GPUShare.
func (shareSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: `the part of one GPU that each trial takes: a number up to 1, or "auto"`,
		OneOf:       []*huma.Schema{{Type: huma.TypeNumber}, {Type: huma.TypeString, Enum: []any{"auto"}}},
	}
}

type deviceSchema struct{}

// Schema describes definition.InferenceDevice.
func (deviceSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:       []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeObject, AdditionalProperties: true}},
		Description: "a name, or a device with the fields of examples/edge-device/my-board.yaml",
	}
}

type stateSchema struct{}

// Schema describes trial.State.
func (stateSchema) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString, Description: "where a trial is in its life"}
	for _, state := range trial.States() {
		schema.Enum = append(schema.Enum, string(state))
	}
	return schema
}

// NewRegistry returns a registry that knows these schemas, and that errors are
// documents of the given type.
func NewRegistry(problem reflect.Type) huma.Registry {
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		if t == problem || t.Kind() == reflect.Pointer && t.Elem() == problem {
			return "Problem"
		}
		return schemaName(t, hint)
	})
	registry.RegisterTypeAlias(reflect.TypeFor[trial.Float](), reflect.TypeFor[floatSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[trial.State](), reflect.TypeFor[stateSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[space.Value](), reflect.TypeFor[valueSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[definition.GPUShare](), reflect.TypeFor[shareSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[definition.InferenceDevice](), reflect.TypeFor[deviceSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[definition.System](), reflect.TypeFor[systemSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), problem)
	return registry
}

// schemaName keeps apart the types that have one name in two packages.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[trial.Report]():
		return "AcceptedReport"
	case reflect.TypeFor[similarity.Record]():
		return "GroundTruthRecord"
	case reflect.TypeFor[similarity.Cell]():
		return "GroundTruthCell"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// SchemaOf is the schema of a type, by reference where it has a name.
func SchemaOf[T any](registry huma.Registry) *huma.Schema {
	return registry.Schema(reflect.TypeFor[T](), true, reflect.TypeFor[T]().Name())
}
