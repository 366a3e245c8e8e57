package protocol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
)

// FeaturesHeader names, with a registration, the features that the worker knows. It is no
// field of that: a server refuses fields that it does not know.
const FeaturesHeader = "Tandem-Features"

// Feature is a field of a lease that a worker has to know: one which passed over it would do
// something else than the study wants.
type Feature string

// The features.
const (
	featureDatasets   Feature = "datasets"
	featurePrecisions Feature = "precisions"
	featureProcesses  Feature = "processes"
	featureSecrets    Feature = "secrets"
)

// untold are those of a worker that names none: those there were when workers began to name
// them. A new one is for [Features] alone.
var untold = []Feature{featureDatasets, featurePrecisions, featureProcesses, featureSecrets}

// Features are those that this program's worker knows.
func Features() []Feature { return slices.Clone(untold) }

// ParseFeatures are those that the header's value names; nil: it is empty.
func ParseFeatures(value string) (known []Feature) {
	for name := range strings.FieldsSeq(value) {
		known = append(known, Feature(name))
	}
	return known
}

// Knows reports whether the worker knows the feature.
func (r WorkerRegistration) Knows(one Feature) bool {
	if r.Features == nil {
		return slices.Contains(untold, one)
	}
	return slices.Contains(r.Features, one)
}

// FeaturesOf are those that leases of the study want.
func FeaturesOf(def *definition.Definition) (wanted []Feature) {
	add := func(one Feature, wants bool) {
		if wants {
			wanted = append(wanted, one)
		}
	}
	add(featureDatasets, len(def.Datasets()) > 0)
	add(featurePrecisions, def.Inference != nil && len(def.Inference.Precision) > 0)
	add(featureProcesses, def.Processes > 1)
	add(featureSecrets, len(def.Secrets) > 0)
	return wanted
}

// Words say what a worker does that knows the feature.
func (f Feature) Words() string {
	return cmp.Or(map[Feature]string{
		featureDatasets: "decrypt data sets", featurePrecisions: "compare precisions of the trained model",
		featureProcesses: "run several processes of one trial", featureSecrets: "give secrets to commands",
	}[f], string(f))
}
