package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// seen is a listing of so many things, each with what is said of it.
func seen(over bool, said ...string) Listing {
	return Listing{Over: over, Print: func(out io.Writer) error {
		_, err := fmt.Fprintln(out, strings.Join(append([]string{"HEADING"}, said...), "\n"))
		return err
	}}
}

func TestAListingIsShownUntilItIsOver(t *testing.T) {
	t.Parallel()
	moments := []Listing{seen(false, "a queued"), seen(false, "a done"), seen(true, "b done")}
	var out strings.Builder
	at := 0
	err := keepListing(t.Context(), func(one Listing) error { return one.Print(&out) }, time.Millisecond, func(context.Context) (Listing, error) {
		at++
		return moments[at-1], nil
	})
	if want := "HEADING\na queued\nHEADING\na done\nHEADING\nb done\n"; err != nil || out.String() != want {
		t.Errorf("it says\n%s%v, want\n%s", out.String(), err, want)
	}
	if at != len(moments) {
		t.Errorf("it looked %d times, want %d", at, len(moments))
	}
}

func TestAListingIsWatchedOnTerminalsOnly(t *testing.T) {
	t.Parallel()
	err := ShowListing(t.Context(), io.Discard, true, func(context.Context) (Listing, error) { return seen(true), nil })
	if err == nil || err.Error() != ErrWatched.Error() {
		t.Errorf("in a pipe it ends with %v", err)
	}
}

func TestAListingEndsWithItsContextAndItsErrors(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	nowhere := func(Listing) error { return nil }
	err := keepListing(ctx, nowhere, time.Hour, func(context.Context) (Listing, error) {
		cancel()
		return seen(false, "a"), nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, it ends with %v", err)
	}
	broken := errors.New("no server")
	if err := keepListing(t.Context(), nowhere, time.Hour, func(context.Context) (Listing, error) { return Listing{}, broken }); !errors.Is(err, broken) {
		t.Errorf("it ends with %v", err)
	}
}

// TestOnATerminalAListingIsRedrawnInPlace plays what is written on a small
// screen, and looks at that.
func TestOnATerminalAListingIsRedrawnInPlace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &frame{out: &out, size: func() (int, int) { return 12, 5 }}
	for _, one := range []Listing{seen(false, "a", "b", "c"), seen(false, "a is far too long for it", "b"), seen(true, "z")} {
		if err := f.show(one); err != nil {
			t.Fatal(err)
		}
		t.Logf("%q", out.String())
	}
	if got := played(out.String()); got != "HEADING\nz\n" {
		t.Errorf("on the screen stands %q", got)
	}
	out.Reset()
	f = &frame{out: &out, size: func() (int, int) { return 12, 5 }}
	if err := f.show(seen(false, "1", "2", "3", "4", "5", "6")); err != nil {
		t.Fatal(err)
	}
	if got := played(out.String()); strings.Count(got, "\n") != 4 || !strings.Contains(got, "and 4 more") {
		t.Errorf("seven lines on a screen of five are %q", got)
	}
}

// played is what a terminal shows after the text: it knows moving up, clearing
// to the end of a line, and clearing below.
func played(text string) string {
	lines, row := []string{""}, 0
	for text != "" {
		var up int
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			text = text[3:]
		case strings.HasPrefix(text, "\x1b[J"):
			lines, text = lines[:row+1], text[3:]
			lines[row] = ""
		case strings.HasPrefix(text, "\x1b["):
			if _, err := fmt.Sscanf(text, "\x1b[%dF", &up); err != nil {
				return "unknown: " + text
			}
			row -= up
			text = text[strings.IndexByte(text, 'F')+1:]
			lines[row] = ""
		case text[0] == '\n':
			row++
			if row == len(lines) {
				lines = append(lines, "")
			}
			lines[row], text = "", text[1:]
		default:
			lines[row] += text[:1]
			text = text[1:]
		}
	}
	return strings.Join(lines, "\n")
}
