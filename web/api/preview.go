package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/web/answer"
)

type previewInput struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Like        string `query:"like" maxLength:"200" doc:"an earlier study, whose pace the plan's costs are estimated by"`
	Workers     int    `query:"workers" default:"1" minimum:"1" maximum:"1000000" doc:"how many trials are trained at once"`
	RawBody     []byte `contentType:"application/yaml"`
}

// preview is the plan of a study file or its faults. A file with faults is no
// failed request here: it is what an editor's text is most of the time.
func (s studyAPI) preview(ctx context.Context, input *previewInput) (*jsonAnswer[protocol.Preview], error) {
	format, err := formatOf(input.ContentType)
	if err != nil {
		return nil, err
	}
	reply := &jsonAnswer[protocol.Preview]{Body: protocol.Preview{Faults: []problem.Field{}}}
	def, err := studyfile.Parse(input.RawBody, format)
	if err == nil {
		err = s.checkNames(ctx, def)
	}
	var told *problem.Error
	if errors.As(err, &told) && told.Code == problem.Invalid && len(told.Fields) > 0 {
		for _, fault := range told.Fields {
			fault.Value = answer.Showable(fault.Value)
			reply.Body.Faults = append(reply.Body.Faults, fault)
		}
		return reply, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(ctx, def, input)
	reply.Body.Plan = &plan
	return reply, err
}

func describePreview(operation *huma.Operation, _ huma.Registry) {
	operation.Description = "The body is a study file, in YAML or JSON. Nothing is created. A file with faults is answered with them, for editors that ask while it is written."
	// The file is checked by its own parser, which names every fault at once.
	operation.SkipValidateBody = true
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Description: "a study file in JSON"}},
	}}
}
