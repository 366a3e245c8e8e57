package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// token is a word, a sign or a quoted text of a query.
type token struct {
	text   string
	at     int // character, from 1
	word   bool
	quoted bool
}

// is reports whether the token is one of the keywords or signs.
func (t token) is(words ...string) bool {
	return !t.quoted && slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(t.text, word) })
}

// String is the token as errors show it.
func (t token) String() string {
	const most = 40
	if short := []rune(t.text); len(short) > most {
		return string(short[:most]) + "..."
	}
	return t.text
}

// keywords are the words that a field or a value has only in quotes.
var keywords = []string{"and", "or", "not", "in", "is", "null", "nan", "contains", "order", "by", "asc", "desc", "limit", "where"}

// signs are the longest first.
var signs = []string{"==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ","}

// instead has what to write for what other languages write.
var instead = map[rune]string{
	'&': "write and", '|': "write or", '!': "write not or !=", '~': "write contains", '*': "there is no arithmetic: compare a field with a value",
	'`': `write a name or a text in quotes: "weight decay"`, '#': "write number = 12",
}

// fault is an error at a token; the message goes on from the token's place.
func fault(at token, format string, args ...any) error {
	field := problem.Field{Path: "query", Message: fmt.Sprintf("at character %d, ", at.at) + fmt.Sprintf(format, args...)}
	if at.text != "" {
		field.Value = at.String()
	}
	return problem.WithFields("the query is not valid", []problem.Field{field})
}

// inWord reports whether a character can stand in a name or value without quotes.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-+:/@%", r)
}

// tokens reads all tokens of a query; the last one is empty and stands behind it.
func tokens(text string) ([]token, error) {
	if len(text) > MaxLength {
		return nil, fault(token{at: MaxLength + 1}, "the query goes on: at most %d bytes, not %d", MaxLength, len(text))
	}
	var list []token
	at := 1
	for text != "" {
		first, size := utf8.DecodeRuneInString(text)
		one := token{at: at}
		switch sign := slices.IndexFunc(signs, func(sign string) bool { return strings.HasPrefix(text, sign) }); {
		case unicode.IsSpace(first):
		case first == '"' || first == '\'':
			end := strings.IndexRune(text[size:], first)
			if end < 0 {
				return nil, fault(token{text: text, at: at}, "a quoted text has no end: close it with %c", first)
			}
			one.text, one.quoted, size = text[size:size+end], true, end+2*size
		case sign >= 0:
			one.text, size = signs[sign], len(signs[sign])
		case inWord(first):
			if size = strings.IndexFunc(text, func(r rune) bool { return !inWord(r) }); size < 0 {
				size = len(text)
			}
			one.text, one.word = text[:size], true
		default:
			fix, known := instead[first]
			if !known {
				fix = "put names and texts that have it into quotes"
			}
			return nil, fault(token{text: string(first), at: at}, "%q means nothing here: %s", first, fix)
		}
		if one.text != "" || one.quoted {
			list = append(list, one)
		}
		at += utf8.RuneCountInString(text[:size])
		text = text[size:]
	}
	return append(list, token{at: at}), nil
}
