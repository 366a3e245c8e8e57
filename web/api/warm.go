package api

import (
	"bytes"
	"encoding/json"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/strict"
)

// warmStudy is a study file together with results that were measured
// elsewhere. No study file has one of these names at its top, so that the body
// of a creation shows which of the two it is.
type warmStudy struct {
	// Study is a study file in JSON, StudyFile one in YAML; one of them is set.
	Study     json.RawMessage        `json:"study,omitempty"`
	StudyFile string                 `json:"study_file,omitempty"`
	Prior     []protocol.Observation `json:"prior"`
}

// creation returns the study file of a body, and the results of elsewhere that it has.
func creation(format studyfile.Format, body []byte) (studyfile.Format, []byte, []protocol.Observation, error) {
	if format != studyfile.JSON || !isWarm(body) {
		return format, body, nil, nil
	}
	if err := answer.Malformed(strict.Check(body)); err != nil {
		return format, nil, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var asked warmStudy
	if err := decoder.Decode(&asked); err != nil {
		return format, nil, nil, problem.WithFields("the body has a fault", []problem.Field{{Path: "body",
			Message: "must be {study, prior} or {study_file, prior}, where prior is a list of {params, values}: " + err.Error()}})
	}
	switch {
	case (len(asked.Study) > 0) == (asked.StudyFile != ""):
		return format, nil, nil, problem.WithFields("the body has a fault", []problem.Field{
			{Path: "study", Message: "must be the study in JSON, or else study_file its text in YAML: one of them"}})
	case len(asked.Study) > 0:
		return studyfile.JSON, asked.Study, asked.Prior, nil
	}
	return studyfile.YAML, []byte(asked.StudyFile), asked.Prior, nil
}

// isWarm reports whether the body is an object with a study in it.
func isWarm(body []byte) bool {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return false // the study file's parser says what is wrong
	}
	_, inJSON := top["study"]
	_, inYAML := top["study_file"]
	return inJSON || inYAML
}
