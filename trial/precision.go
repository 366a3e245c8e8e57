package trial

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The precisions of a trained model: how its numbers are stored and multiplied.
const (
	FP32        = "fp32" // as it was trained
	FP16        = "fp16"
	Int8        = "int8"         // after training, with ranges from samples
	Int8Dynamic = "int8-dynamic" // with ranges from each inference's own numbers
)

// Precisions lists all of them, the one of the training first.
func Precisions() []string { return []string{FP32, FP16, Int8, Int8Dynamic} }

// Precision is a trained model in one precision.
type Precision struct {
	Name string `json:"name" enum:"fp32,fp16,int8,int8-dynamic"`
	// Architecture is the key of its graph; a report leaves it out.
	Architecture string `json:"architecture,omitempty"`
	// Value is what the script's own function says the model is worth, on so many samples.
	Value   Float `json:"value" doc:"what it is worth by the script's own function: of the study's first metric that is not about inference"`
	Samples int   `json:"samples" minimum:"0" doc:"samples of validation data on which that was measured"`
}

// maxSamples bounds what a script says it looked at.
const maxSamples = 1 << 40

// Faults names what is wrong with one that is reported.
func (p Precision) Faults() (faults []problem.Field) {
	if !slices.Contains(Precisions(), p.Name) {
		faults = append(faults, problem.Field{Path: "precision.name", Value: p.Name, Message: "must be one of " + strings.Join(Precisions(), ", ")})
	}
	if value := float64(p.Value); math.IsNaN(value) || math.IsInf(value, 0) {
		faults = append(faults, problem.Field{Path: "precision.value", Value: fmt.Sprint(value), Message: "must be a finite number"})
	}
	if p.Samples < 0 || p.Samples > maxSamples {
		faults = append(faults, problem.Field{Path: "precision.samples", Value: p.Samples, Message: "must be from 0 to 2^40"})
	}
	return faults
}

// ModelIn is the name of the artifact with the trained model in the precision.
func ModelIn(precision string) string {
	if precision == "" || precision == FP32 {
		return Model
	}
	return "model-" + precision + ".onnx"
}

// IsModel reports whether an artifact of the name is a trained model.
func IsModel(name string) bool {
	return slices.ContainsFunc(Precisions(), func(precision string) bool { return name == ModelIn(precision) })
}

// InPrecision is the trial with the model in a precision in place of one of the same name.
func (t Trial) InPrecision(p Precision) Trial {
	t.Precisions = slices.DeleteFunc(slices.Clone(t.Precisions), func(one Precision) bool { return one.Name == p.Name })
	t.Precisions = append(t.Precisions, p)
	slices.SortFunc(t.Precisions, func(a, b Precision) int {
		return slices.Index(Precisions(), a.Name) - slices.Index(Precisions(), b.Name)
	})
	return t
}
