package term

import (
	"strings"
	"testing"
)

var (
	someHeading = []string{"NAME", "ID", "VALUE", "WHY", "learning_rate_of_the_head"}
	someRows    = [][]string{
		{"a study with a rather long name", "k3vqh8w2mz", "0.91234 (estimate)", "the study is over: it ended because all of its trials had been measured", "0.00012346"},
		{"short", "a1b2c3d4e5", "-", "", "12"},
	}
)

func TestATableIsWholeWhereNothingBoundsIt(t *testing.T) {
	t.Parallel()
	text := layout(someHeading, someRows, 0)
	for _, row := range append([][]string{someHeading}, someRows...) {
		for _, cell := range row {
			if !strings.Contains(text, cell) {
				t.Errorf("the table lacks %q:\n%s", cell, text)
			}
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, " \n") {
			t.Errorf("%q ends in spaces", line)
		}
	}
}

// TestATableFitsTheTerminal at every width, and never cuts a number or an id.
func TestATableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for columns := 160; columns >= 24; columns-- {
		text := layout(someHeading, someRows, columns)
		for line := range strings.Lines(text) {
			if wide := displayWidth(strings.TrimSuffix(line, "\n")); wide > columns {
				t.Fatalf("in %d columns a line has %d:\n%s", columns, wide, text)
			}
		}
		for column, cell := range map[int]string{1: "k3vqh8w2mz", 2: "0.91234 (estimate)", 4: "0.00012346"} {
			_, left, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), "has them): ")
			name := shorten(someHeading[column]+",", columns)
			if !strings.Contains(text, cell) && !strings.Contains(left+",", strings.TrimRight(name, ",…")) {
				t.Fatalf("in %d columns %s is cut, and nothing says that %s is left out:\n%s", columns, cell, someHeading[column], text)
			}
		}
	}
	text := layout(someHeading, someRows, 90)
	if !strings.Contains(text, "…") || strings.Contains(text, "Left out") {
		t.Errorf("in 90 columns texts are to be shortened and nothing left out:\n%s", text)
	}
	if text := layout(someHeading, someRows, 40); !strings.Contains(text, "Left out for want of room") || !strings.Contains(text, "NAME") {
		t.Errorf("in 40 columns:\n%s", text)
	}
}

func TestWideLettersCountTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"abc": 3, "模型": 4, "e\u0301": 1, "": 0, "ｆ": 2} {
		if got := displayWidth(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"abcdef": "abcd…", "模型模型": "模型…", "abc": "abc", "ab cdefg": "ab c…", "abc defg": "abc…"} {
		if got := shorten(text, 5); got != want {
			t.Errorf("%q in 5 columns is %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsANumber(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]bool{"0.5": true, "-3 J": true, "12/27": true, "-": true, "": true, "1m02s": true, "NaN": true, "adam": false, "a1": false, "estimate: 3": false} {
		if numeric(cell) != want {
			t.Errorf("%q: %v", cell, !want)
		}
	}
}

// A name that turns what stands behind it around looks like another one.
func TestNoCellSteersTheTerminal(t *testing.T) {
	t.Parallel()
	text := layout([]string{"NAME\u202e", "B"}, [][]string{{"abc\u202edef\x1b[2J\u2066", "1"}, {"\u061cx\u200f", "2"}}, 0)
	want := "NAME\\u202e             B\nabc\\u202edef[2J\\u2066  1\n\\u061cx\\u200f          2\n"
	if text != want {
		t.Errorf("the table is\n%s\nwant\n%s", text, want)
	}
}
