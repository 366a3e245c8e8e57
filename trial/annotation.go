package trial

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of what people write about a study or a trial.
const (
	MaxTags      = 32   // of one study or trial
	MaxTagLetter = 64   // characters of a tag
	MaxNoteBytes = 4096 // bytes of a note
)

// Annotation is what people wrote about a study or a trial. It changes nothing
// that is decided.
type Annotation struct {
	// Tags are words to find it by, sorted, each there once.
	Tags []string `json:"tags,omitempty" doc:"words to find it by"`
	// Note is plain text: never markup.
	Note string `json:"note,omitempty" doc:"what people wrote about it, as plain text"`
}

// Amendment changes an annotation. Tags are added and removed one by one, so
// that two people who tag the same thing lose nothing of each other's.
type Amendment struct {
	AddTags    []string `json:"add_tags,omitempty" maxItems:"32" doc:"tags to add; those that are there already stay"`
	RemoveTags []string `json:"remove_tags,omitempty" maxItems:"32" doc:"tags to remove; those that are not there are no fault"`
	// Note replaces the note; nil leaves it as it is, empty text removes it.
	Note *string `json:"note,omitempty" doc:"the new note, as plain text; empty: none; absent: as it is"`
}

// Amended returns the annotation with the change. The error is invalid and names
// every fault: an amendment that asks for nothing, a tag that is no word, more
// tags or a longer note than allowed, a note with control characters.
func (a Annotation) Amended(change Amendment) (Annotation, error) {
	var faults []problem.Field
	fault := func(path string, value any, message string) {
		faults = append(faults, problem.Field{Path: path, Value: value, Message: message})
	}
	if len(change.AddTags)+len(change.RemoveTags) == 0 && change.Note == nil {
		fault("body", nil, "must have add_tags, remove_tags or note: there is nothing to change")
	}
	tags := slices.DeleteFunc(slices.Clone(a.Tags), func(tag string) bool { return slices.Contains(change.RemoveTags, tag) })
	for i, tag := range change.AddTags {
		if !isTag(tag) {
			fault(fmt.Sprintf("add_tags[%d]", i), shortened(tag), fmt.Sprintf("must be a word of 1 to %d letters, digits and . _ - + /", MaxTagLetter))
		}
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(tags) > MaxTags {
		fault("add_tags", len(tags), fmt.Sprintf("would make %d tags, and there may be %d: remove some", len(tags), MaxTags))
	}
	note := a.Note
	if change.Note != nil {
		note = strings.TrimSpace(strings.ReplaceAll(*change.Note, "\r\n", "\n"))
		switch {
		case len(note) > MaxNoteBytes:
			fault("note", len(note), fmt.Sprintf("has %d bytes, and may have %d", len(note), MaxNoteBytes))
		case !isProse(note):
			fault("note", nil, "must be text without control characters other than line breaks and tabs")
		}
	}
	if len(faults) > 0 {
		return a, problem.WithFields("the annotation is not valid", faults)
	}
	if len(tags) == 0 {
		tags = nil
	}
	return Annotation{Tags: tags, Note: note}, nil
}

// isTag reports whether the text may be a tag: a word that a search takes as one.
func isTag(text string) bool {
	if text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > MaxTagLetter {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._-+/", r)
	}) < 0
}

// isProse reports whether the text is for people to read.
func isProse(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) < 0
}

// shortened is a refused text as far as it helps to find it.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > MaxTagLetter {
		return string(runes[:MaxTagLetter]) + "…"
	}
	return text
}
