package record

import "github.com/tandem-tune/tandem/trial"

// FormatAnnotation returns the annotation as a JSON document; empty text where
// nothing was written.
func FormatAnnotation(a trial.Annotation) (string, error) {
	if len(a.Tags) == 0 && a.Note == "" {
		return "", nil
	}
	return format("an annotation", a)
}

// ParseAnnotation reads what FormatAnnotation wrote.
func ParseAnnotation(text string) (trial.Annotation, error) {
	if text == "" {
		return trial.Annotation{}, nil
	}
	return parse[trial.Annotation](text)
}
