package record_test

import (
	"cmp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/store/record"
)

// A store compares and orders times by their text.
func TestTextOfTimesSortsAsTheTimesDo(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(r *rapid.T) time.Time {
		seconds := rapid.Int64Range(-62_135_596_800, 253_402_300_799).Draw(r, "seconds") // years 1 to 9999
		zone := rapid.IntRange(-12*3600, 14*3600).Draw(r, "zone")
		return time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(r, "nanoseconds")).In(time.FixedZone("", zone))
	})
	rapid.Check(t, func(r *rapid.T) {
		first, second := draw.Draw(r, "first"), draw.Draw(r, "second")
		if rapid.Bool().Draw(r, "close") {
			second = first.Add(time.Duration(rapid.Int64Range(-2_000_000_000, 2_000_000_000).Draw(r, "apart")))
		}
		if second.UTC().Year() < 1 || second.UTC().Year() > 9999 {
			r.Skip("beyond the years a text of fixed width has")
		}
		if got, want := cmp.Compare(record.FormatTime(first), record.FormatTime(second)), first.Compare(second); got != want {
			r.Fatalf("%v and %v compare as %d, their text as %d", first, second, want, got)
		}
		read, err := record.ParseTime(record.FormatTime(first))
		if err != nil || !read.Equal(first) || read.Location() != time.UTC {
			r.Fatalf("%v became %v, %v", first, read, err)
		}
	})
}

func TestDamagedTextIsAnError(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(string) error{
		"time":       func(text string) error { _, err := record.ParseTime(text); return err },
		"definition": func(text string) error { _, err := record.ParseDefinition(text); return err },
		"trial":      func(text string) error { _, err := record.ParseTrial(text); return err },
		"report":     func(text string) error { _, err := record.ParseReport(text); return err },
		"record":     func(text string) error { _, err := record.ParseRecord(text); return err },
	} {
		for _, text := range []string{"", "{", "7", `{"number":`, "2026-01-01"} {
			if read(text) == nil {
				t.Errorf("%s: %q was read", name, text)
			}
		}
	}
}
