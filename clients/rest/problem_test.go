package rest_test

import (
	"errors"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
)

// FuzzProblem feeds answers to the reader of problem documents.
func FuzzProblem(f *testing.F) {
	for _, seed := range []string{`{"code":"invalid","detail":"x","errors":[{"path":"a","message":"b","value":{"c":[1]},"line":2}]}`, `{"code":""}`, `{"errors":{}}`, `[`, "", "\xff"} {
		f.Add(422, seed)
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		if code < 300 || code > 599 {
			t.Skip()
		}
		s := &server{t: t, answer: always(code, body)}
		_, err := s.client(impatient).Studies(t.Context())
		var told *problem.Error
		if !errors.As(err, &told) || told.Code == "" {
			t.Fatalf("%d %q is answered with %#v", code, body, err)
		}
	})
}

// TestAServerOfAnotherBuildIsCalledSo has a server lack what the client asks for.
func TestAServerOfAnotherBuildIsCalledSo(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"there is nothing at this path: x":                                "there is nothing at this path: x (this server is of another build than test/1: upgrade the older one)",
		"there is nothing at this path: x (this server is tandem 2, ...)": "there is nothing at this path: x (this server is tandem 2, ...)",
		"there is no study":                                               "there is no study",
	} {
		s := &server{t: t, answer: always(404, `{"code":"not_found","detail":"`+detail+`"}`)}
		if _, err := s.client(impatient).Studies(t.Context()); !problem.Is(err, problem.NotFound) || err.Error() != want {
			t.Errorf("%s is told as %v", detail, err)
		}
	}
	for message, told := range map[string]bool{"is not a field of this request": true, "is not a field of a study": false, "must be a number": false} {
		s := &server{t: t, answer: always(422, `{"code":"invalid","detail":"the request has a fault","errors":[{"path":"agent","message":"`+message+`"}]}`)}
		_, err := s.client(impatient).AskBoard(t.Context(), emu.BoardAsk{})
		if !problem.Is(err, problem.Invalid) || strings.Contains(err.Error(), "(this server is of another build than test/1: upgrade the older one)") != told {
			t.Errorf("%s is told as %v", message, err)
		}
	}
}
