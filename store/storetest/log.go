package storetest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func logChecks() []check {
	return []check{
		{"a log is what was appended, once", logPieces},
		{"a log is appended only under the trial's lease", logLease},
		{"the leases of a log come in order", logLeases},
		{"a log ends at its cap and says so", logCap},
		{"a log is cut between characters", logCut},
		{"a long log in small pieces", logLong},
	}
}

// part is an append: text at an offset.
type part struct {
	offset int64
	text   string
}

func logPieces(t *testing.T, f fixture) {
	for i, one := range []struct {
		name  string
		parts []part
		want  string
	}{
		{"nothing", nil, ""},
		{"nothing, sent", []part{{0, ""}, {7, ""}}, ""},
		{"in order", []part{{0, "ab\n"}, {3, "cd\n"}}, "ab\ncd\n"},
		{"sent again", []part{{0, "ab\n"}, {0, "ab\n"}}, "ab\n"},
		{"sent again with more behind", []part{{0, "ab"}, {0, "abcd"}}, "abcd"},
		{"overlapping its end", []part{{0, "abc"}, {2, "cde"}}, "abcde"},
		{"overlapping its beginning", []part{{2, "cde"}, {0, "abc"}}, "abcde"},
		{"the first text stays", []part{{0, "abc"}, {1, "XYZ"}}, "abcZ"},
		{"a gap", []part{{0, "ab"}, {10, "kl"}}, "abkl"},
		{"a gap that is filled later", []part{{0, "ab"}, {4, "ef"}, {2, "cd"}}, "abcdef"},
		{"over several gaps", []part{{1, "b"}, {3, "d"}, {5, "f"}, {0, "aBcDeFg"}}, "abcdefg"},
		{"inside what is there", []part{{0, "abcdef"}, {2, "XX"}}, "abcdef"},
		{"out of order", []part{{6, "gh"}, {0, "ab"}, {4, "ef"}, {2, "cd"}}, "abcdefgh"},
		{"no UTF-8", []part{{0, "a\xff\xfeb"}, {4, "c"}}, "a\uFFFDbc"},
		{"a NUL", []part{{0, "a\x00b"}}, "a\uFFFDb"},
		{"offsets count bytes as they were sent", []part{{0, "\xff"}, {1, "☃"}, {4, "\xff"}, {5, "z"}}, "\uFFFD☃\uFFFDz"},
		{"quotes and backslashes", []part{{0, `'"\n%s`}}, `'"\n%s`},
	} {
		t.Run(one.name, func(t *testing.T) {
			id := fmt.Sprintf("s%d", i)
			f.seed(t, id)
			for _, p := range one.parts {
				if err := f.store.AppendLog(t.Context(), trialID(id, 1), 1, p.offset, p.text); err != nil {
					t.Fatal(err)
				}
			}
			f.wantLog(t, trialID(id, 1), one.want)
			f.wantLog(t, trialID(id, 0), "")
		})
	}
}

func (f fixture) wantLog(t *testing.T, id trial.ID, want string) {
	t.Helper()
	if got, err := f.store.Log(t.Context(), id); err != nil || got != want {
		t.Errorf("the log of %s is %s, %v; want %s", id, brief(got), err, brief(want))
	}
}

// brief quotes a text that may be very long.
func brief(text string) string {
	if len(text) <= 200 {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...%q (%d bytes)", text[:50], text[len(text)-100:], len(text))
}

func logLease(t *testing.T, f fixture) {
	f.seed(t, "s1") // under lease 1
	id := trialID("s1", 0)
	for _, one := range []struct {
		name   string
		id     trial.ID
		epoch  trial.LeaseEpoch
		offset int64
		want   problem.Code
	}{
		{"an older lease", id, 0, 0, problem.LeaseLost},
		{"a newer lease", id, 2, 0, problem.LeaseLost},
		{"no trial", "s1-9", 1, 0, problem.NotFound},
		{"before the beginning", id, 1, -1, problem.Invalid},
		{"behind any end", id, 1, 1<<63 - 2, problem.Invalid},
	} {
		t.Run(one.name, func(t *testing.T) {
			wantCode(t, "AppendLog", f.store.AppendLog(t.Context(), one.id, one.epoch, one.offset, "text"), one.want)
		})
	}
	f.wantLog(t, id, "")
}

func logLeases(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 0)
	guard := journal.Guard{State: trial.Leased, LeaseEpoch: 1}
	for _, epoch := range []trial.LeaseEpoch{1, 2, 10} {
		if epoch > 1 {
			next := sampleTrial("s1", 0, trial.Leased)
			next.LeaseEpoch = epoch
			f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: next, Guard: &guard}}})
			wantCode(t, "AppendLog under the lease before",
				f.store.AppendLog(t.Context(), id, guard.LeaseEpoch, 100, "late"), problem.LeaseLost)
			guard.LeaseEpoch = epoch
		}
		if err := f.store.AppendLog(t.Context(), id, epoch, 0, fmt.Sprintf("lease %d\n", epoch)); err != nil {
			t.Fatal(err)
		}
	}
	f.wantLog(t, id, "lease 1\nlease 2\nlease 10\n")
}

func logCap(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	half := strings.Repeat("0123456789abcdef", record.LogLimit/2/16)
	add := func(offset int, text string) {
		t.Helper()
		if err := f.store.AppendLog(t.Context(), id, 1, int64(offset), text); err != nil {
			t.Fatal(err)
		}
	}
	add(0, half)
	add(len(half), half)
	f.wantLog(t, id, half+half) // exactly full is not beyond
	add(len(half), half)        // and text that is there already does not grow it
	f.wantLog(t, id, half+half)
	add(2*len(half), "x")
	want := half + half + record.LogNotice(record.LogLimit)
	f.wantLog(t, id, want)
	add(2*len(half)+1, "y")
	f.wantLog(t, id, want)

	// The cap counts all leases together.
	next := sampleTrial("s1", 1, trial.Leased)
	next.LeaseEpoch = 2
	f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: next, Guard: &journal.Guard{State: trial.Running, LeaseEpoch: 1}}}})
	if err := f.store.AppendLog(t.Context(), id, 2, 0, "more"); err != nil {
		t.Fatal(err)
	}
	f.wantLog(t, id, want)
	if err := f.store.AppendLog(t.Context(), trialID("s1", 0), 1, 0, "another trial"); err != nil {
		t.Fatal(err)
	}
	f.wantLog(t, trialID("s1", 0), "another trial")
}

func logCut(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	if err := f.store.AppendLog(t.Context(), id, 1, 0, "ab"+strings.Repeat("☃", record.LogLimit/3)); err != nil {
		t.Fatal(err)
	}
	log, err := f.store.Log(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	kept, cut := strings.CutSuffix(log, record.LogNotice(record.LogLimit))
	if !cut || !utf8.ValidString(kept) || len(kept) > record.LogLimit || len(kept) < record.LogLimit-3 {
		t.Errorf("%d bytes are kept of %d, with notice %v: %s", len(kept), record.LogLimit, cut, brief(log))
	}
}

func logLong(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	var want strings.Builder
	for i := range 300 {
		line := fmt.Sprintf("epoch %d\n", i)
		// Every piece is sent with half of the piece before it, as after a lost answer.
		from := max(0, want.Len()-4)
		text := want.String()[from:] + line
		want.WriteString(line)
		if err := f.store.AppendLog(t.Context(), id, 1, int64(from), text); err != nil {
			t.Fatal(err)
		}
	}
	f.wantLog(t, id, want.String())
}
