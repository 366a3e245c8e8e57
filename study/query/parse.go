package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Parse reads a query over rows with the fields. The error of fields is the end of
// a sentence that begins with the name. That of Parse is [problem.Invalid] and has
// the place, the token and what to write. An empty query takes all rows. The field
// without a name has the texts in which plain words are found.
func Parse[R any](text string, fields func(name string) (Field[R], error)) (Query[R], error) {
	list, err := tokens(text)
	if err != nil {
		return Query[R]{}, err
	}
	p := parser[R]{tokens: list, fields: fields}
	return p.query()
}

type parser[R any] struct {
	tokens        []token // the last one is the end
	depth, values int
	fields        func(string) (Field[R], error)
}

// next is the token that comes; take goes on behind it.
func (p *parser[R]) next() token { return p.tokens[0] }

func (p *parser[R]) take() token {
	one := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return one
}

// takes goes on behind the token if it is one of these.
func (p *parser[R]) takes(words ...string) bool {
	is := p.next().is(words...)
	if is {
		p.take()
	}
	return is
}

// expected is the error of a token that should have been something else.
func (p *parser[R]) expected(what string) error {
	at := p.next()
	if at.text == "" && !at.quoted {
		return fault(at, "the query ends: write %s", what)
	}
	return fault(at, "%s cannot stand: write %s", at, what)
}

func (p *parser[R]) query() (q Query[R], err error) {
	explicit := p.takes("where")
	if end := len(p.tokens) == 1; explicit || !end && !p.next().is("order", "limit") {
		if q.keeps, err = p.either(); err != nil {
			return q, err
		}
	}
	if p.takes("order") {
		if !p.takes("by") {
			return q, p.expected("by and a field, such as order by rank")
		}
		if q.keys, err = p.keys(); err != nil {
			return q, err
		}
	}
	if p.takes("limit") {
		at := p.take()
		if q.limit, err = strconv.Atoi(at.text); err != nil || q.limit < 1 {
			return q, fault(at, "limit takes a whole number from 1, such as limit 20")
		}
	}
	if len(p.tokens) > 1 {
		return q, p.expected("and, or, order by, limit, or nothing more")
	}
	return q, nil
}

func (p *parser[R]) keys() (keys []Key[R], err error) {
	for {
		at := p.next()
		field, err := p.field()
		if err != nil {
			return nil, err
		}
		if err := p.count(at); err != nil {
			return nil, err
		}
		descending := p.takes("desc")
		if !descending {
			p.takes("asc")
		}
		keys = append(keys, Key[R]{field.Of, descending})
		if !p.takes(",") {
			return keys, nil
		}
	}
}

// either reads conditions between which "or" stands, both those with "and".
func (p *parser[R]) either() (func(R) bool, error) {
	return p.joined("or", p.both, func(a, b func(R) bool) func(R) bool { return func(row R) bool { return a(row) || b(row) } })
}

func (p *parser[R]) both() (func(R) bool, error) {
	return p.joined("and", p.single, func(a, b func(R) bool) func(R) bool { return func(row R) bool { return a(row) && b(row) } })
}

func (p *parser[R]) joined(word string, part func() (func(R) bool, error), join func(a, b func(R) bool) func(R) bool) (func(R) bool, error) {
	all, err := part()
	for err == nil && p.takes(word) {
		var further func(R) bool
		if further, err = part(); err == nil {
			all = join(all, further)
		}
	}
	return all, err
}

// single reads a condition, one in parentheses, or the opposite of one.
func (p *parser[R]) single() (func(R) bool, error) {
	at := p.next()
	if !at.is("not", "(") {
		return p.test()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, fault(at, "more than %d conditions are inside each other: take some apart", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.takes("not") {
		return opposite(p.single())
	}
	p.take()
	inner, err := p.either()
	if err == nil && !p.takes(")") {
		err = p.expected("and, or, or )")
	}
	return inner, err
}

func opposite[R any](test func(R) bool, err error) (func(R) bool, error) {
	return func(row R) bool { return !test(row) }, err
}

// field reads the name of a field.
func (p *parser[R]) field() (Field[R], error) {
	at := p.next()
	if !at.quoted && (!at.word || at.is(keywords...)) {
		return Field[R]{}, p.expected(`the name of a field, such as state; quote one with spaces: "weight decay"`)
	}
	if _, err := strconv.ParseFloat(at.text, 64); err == nil && at.word {
		return Field[R]{}, p.expected("the field before the value, such as lr > 0.01")
	}
	p.take()
	field, err := p.fields(at.text)
	if err != nil {
		return field, fault(at, "%s %s", at, err)
	}
	return field, nil
}

// test reads the comparison of a field, or plain words.
func (p *parser[R]) test() (func(R) bool, error) {
	name := p.next()
	if p.plain() {
		return p.words()
	}
	field, err := p.field()
	if err != nil {
		return nil, err
	}
	return p.comparison(field, name)
}

// comparison reads what stands behind the name of a field.
func (p *parser[R]) comparison(field Field[R], name token) (func(R) bool, error) {
	at := p.next()
	switch {
	case p.takes("is"):
		if p.takes("not") {
			return opposite(p.absent(field))
		}
		return p.absent(field)
	case p.takes("not"):
		if !p.next().is("in", "contains") {
			return nil, p.expected("in or contains behind not")
		}
		return opposite(p.comparison(field, name))
	case p.takes("in"):
		return p.among(field)
	case p.takes("contains"):
		return p.contains(field, name)
	case p.takes("=", "=="):
		return p.equals(field)
	case p.takes("!=", "<>"):
		return opposite(p.equals(field))
	case p.takes("<", "<=", ">", ">="):
		return p.compares(field, name, at.text)
	}
	return nil, p.expected("=, !=, <, <=, >, >=, in (...), contains or is null behind " + name.String())
}

// absent reads what stands behind "is".
func (p *parser[R]) absent(field Field[R]) (func(R) bool, error) {
	switch {
	case p.takes("null"):
		return func(row R) bool { return field.Of(row).standing == nothing }, nil
	case p.takes("nan"):
		return func(row R) bool { return field.Of(row).standing == diverged }, nil
	}
	return nil, p.expected("null, nan, not null or not nan behind is")
}

// among reads a list of values.
func (p *parser[R]) among(field Field[R]) (func(R) bool, error) {
	if !p.takes("(") {
		return nil, p.expected("values in parentheses, such as in (1, 2)")
	}
	any, err := p.joined(",", func() (func(R) bool, error) { return p.equals(field) },
		func(a, b func(R) bool) func(R) bool { return func(row R) bool { return a(row) || b(row) } })
	if err == nil && !p.takes(")") {
		err = p.expected("a comma or )")
	}
	return any, err
}

// value takes the token of a value.
func (p *parser[R]) value() (token, error) {
	at := p.next()
	if !at.quoted && (!at.word || at.is(keywords...)) {
		return at, p.expected("a value; for one that is missing is null, for NaN is nan")
	}
	return p.take(), p.count(at)
}

// count counts a value, or a key of the order.
func (p *parser[R]) count(at token) error {
	if p.values++; p.values > maxValues {
		return fault(at, "the query has more than %d values: ask for less at once", maxValues)
	}
	return nil
}

// contains reads the part of a text, upper or lower case.
func (p *parser[R]) contains(field Field[R], name token) (func(R) bool, error) {
	if !field.Texts {
		return nil, fault(name, "%s has numbers: compare it with =, !=, <, <=, > or >=", name)
	}
	at, err := p.value()
	part := strings.ToLower(at.text)
	return func(row R) bool { return strings.Contains(strings.ToLower(field.Of(row).text), part) }, err
}

func (p *parser[R]) equals(field Field[R]) (func(R) bool, error) {
	at, err := p.value()
	if err != nil {
		return nil, err
	}
	if field.List != nil {
		return func(row R) bool { return slices.Contains(field.List(row), at.text) }, nil
	}
	var want Value
	switch number, known := numberOf(at, field.Seconds); {
	case len(field.Choices) > 0:
		if want, err = chosen(at, field.Choices); err != nil {
			return nil, err
		}
		return func(row R) bool {
			value := field.Of(row)
			return value.equal(want) || value.equal(Number(number)) && known
		}, nil
	case field.Texts:
		want = Text(at.text)
	case !known:
		return nil, notNumber(at, field.Seconds)
	default:
		want = Number(number)
	}
	return func(row R) bool { return field.Of(row).equal(want) }, nil
}

// chosen is the choice that the token names.
func chosen(at token, choices []string) (Value, error) {
	number, known := numberOf(at, false)
	for _, choice := range choices {
		same, is := numberOf(token{text: choice}, false)
		if choice == at.text || known && is && same == number {
			return Text(at.text), nil
		}
	}
	return Value{}, fault(at, "%s is no value of the field: %s", at, Meant(at.text, choices))
}

// compares reads the value behind <, <=, > or >=.
func (p *parser[R]) compares(field Field[R], name token, sign string) (func(R) bool, error) {
	if field.Texts {
		return nil, fault(name, "%s has texts, which have no order: compare it with =, !=, in or contains", name)
	}
	at, err := p.value()
	if err != nil {
		return nil, err
	}
	bound, known := numberOf(at, field.Seconds)
	if !known {
		return nil, notNumber(at, field.Seconds)
	}
	return func(row R) bool {
		value := field.Of(row)
		if value.standing != numeric {
			return false
		}
		switch sign {
		case "<":
			return value.number < bound
		case "<=":
			return value.number <= bound
		case ">":
			return value.number > bound
		}
		return value.number >= bound
	}, nil
}

// numberOf is the number that a token is, a span in seconds.
func numberOf(at token, seconds bool) (float64, bool) {
	number, err := strconv.ParseFloat(at.text, 64)
	if err != nil && seconds {
		var span time.Duration
		span, err = time.ParseDuration(at.text)
		number = span.Seconds()
	}
	return number, err == nil && !math.IsNaN(number)
}

func notNumber(at token, seconds bool) error {
	if seconds {
		return fault(at, "%s is no time: write seconds, or 90s, 10m or 2h", at)
	}
	return fault(at, "%s is no number: write one such as 0.01 or 1e-3", at)
}

// Meant is the fix for a name that is none of the known ones.
func Meant(name string, known []string) string {
	if meant := problem.Meant(name, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	const most = 16
	more := ""
	if len(known) > most {
		known, more = known[:most], ", ..."
	}
	return "write one of " + strings.Join(known, ", ") + more
}
