package record

import "github.com/tandem-tune/tandem/study"

// Documents are the parts of a change that a store keeps as text, each list in
// the order of the change's. They are made before the change's turn to be
// written, so that the one who writes only writes.
type Documents struct {
	Definition                              string
	Trials, Reports, Records, Architectures []string
}

// FormatChange returns the change's documents.
func FormatChange(change study.Change) (Documents, error) {
	var d Documents
	var err error
	if change.Insert != nil {
		if d.Definition, err = FormatDefinition(change.Insert.Definition); err != nil {
			return d, err
		}
	}
	trialOf := func(write study.TrialWrite) (string, error) { return FormatTrial(write.Trial) }
	if d.Trials, err = formatAll(change.Trials, trialOf); err != nil {
		return d, err
	}
	if d.Reports, err = formatAll(change.Reports, FormatReport); err != nil {
		return d, err
	}
	if d.Records, err = formatAll(change.Records, FormatRecord); err != nil {
		return d, err
	}
	d.Architectures, err = formatAll(change.Architectures, FormatArchitecture)
	return d, err
}

func formatAll[T any](values []T, format func(T) (string, error)) ([]string, error) {
	var documents []string
	for _, value := range values {
		document, err := format(value)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}
