package query

import (
	"slices"
	"strings"
)

// plain reports whether the next token is a word that is no field and is compared with
// nothing: it is looked for as it is.
func (p *parser[R]) plain() bool {
	at := p.next()
	if !at.quoted && (!at.word || at.is(keywords...)) {
		return false
	}
	if len(p.tokens) > 1 && p.tokens[1].is("not", "is", "in", "contains", "=", "==", "!=", "<>", "<", "<=", ">", ">=") {
		return false
	}
	_, err := p.fields(at.text)
	return err != nil
}

// words reads plain words. Rows have all of them in their texts, upper or lower case.
func (p *parser[R]) words() (func(R) bool, error) {
	field, err := p.fields("")
	if err != nil {
		return nil, p.expected("a comparison, such as lr > 0.01")
	}
	var words []string
	for p.plain() {
		at, err := p.value()
		if err != nil {
			return nil, err
		}
		words = append(words, strings.ToLower(at.text))
	}
	return func(row R) bool {
		texts := field.List(row)
		return !slices.ContainsFunc(words, func(word string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), word) })
		})
	}, nil
}
