package script

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestParseLine(t *testing.T) {
	tests := []struct {
		name, line string
		want       string // epoch and metrics; empty: log
		checkpoint bool
	}{
		{"plain", `{"epoch": 3, "accuracy": 0.91}`, "3 map[accuracy:0.91]", false},
		{"white space", " \t{\"epoch\":3,\"accuracy\":1}\r", "3 map[accuracy:1]", false},
		{"checkpoint", `{"epoch": 3, "a": 1, "checkpoint": true}`, "3 map[a:1]", true},
		{"no checkpoint", `{"epoch": 3, "a": 1, "checkpoint": false}`, "3 map[a:1]", false},
		{"what Python prints", `{"epoch": 1, "a": NaN, "b": Infinity, "c": -Infinity, "d": 1e-05}`, "1 map[a:NaN b:+Inf c:-Inf d:1e-05]", false},
		{"names that look like numbers", `{"epoch": 1, "NaN": 2, "x": "NaN", "y": "a \" NaN"}`, "1 map[NaN:2]", false},
		{"too large for a float", `{"epoch": 1, "a": 1e999, "b": -1e999}`, "1 map[a:+Inf b:-Inf]", false},
		{"nested and other values", `{"epoch": 1, "a": 1, "b": {"c": 2}, "d": [1], "e": null, "f": true, "g": "h"}`, "1 map[a:1]", false},
		{"no metric", `{"epoch": 1}`, "", false},
		{"no epoch", `{"accuracy": 1}`, "", false},
		{"epoch is no integer", `{"epoch": 1.5, "a": 1}`, "", false},
		{"epoch is text", `{"epoch": "1", "a": 1}`, "", false},
		{"text behind", `{"epoch": 1, "a": 1} done`, "", false},
		{"two objects", `{"epoch": 1, "a": 1}{"epoch": 2, "a": 1}`, "", false},
		{"no object", `[1]`, "", false},
		{"Python's dict", `{'epoch': 1, 'a': 1}`, "", false},
		{"almost NaN", `{"epoch": 1, "a": NaNa}`, "", false},
		{"empty", ``, "", false},
		{"too long", `{"epoch": 1, "a": 1, "b": "` + strings.Repeat("x", LongestLine) + `"}`, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			line, ok := ParseLine([]byte(test.line))
			if ok != (test.want != "") {
				t.Fatalf("report %v: %+v", ok, line)
			}
			if got := fmt.Sprintf("%d %v", line.Epoch, line.Metrics); ok && got != test.want {
				t.Errorf("got %d %v, want %s", line.Epoch, line.Metrics, test.want)
			}
			if line.Checkpoint != test.checkpoint {
				t.Errorf("checkpoint %v", line.Checkpoint)
			}
		})
	}
}

// FuzzParseLine checks that whatever is taken for a report is one, and that
// ordinary JSON means what encoding/json says.
func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		`{"epoch": 3, "accuracy": 0.91, "checkpoint": true}`, `{"epoch": 1, "a": NaN, "b": -Infinity}`,
		`{"epoch": 1, "x": "\"NaN"}`, `{"epoch": -1, "a": 1e999}`, "{\"epoch\":1,\"\xff\":2}", `{`, `{}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := string(line)
		report, ok := ParseLine(line)
		if string(line) != before {
			t.Fatal("the line was changed")
		}
		if !ok {
			return
		}
		if len(report.Metrics) == 0 {
			t.Fatal("a report without a metric")
		}
		var plain map[string]any
		if json.Unmarshal(line, &plain) != nil {
			return // with NaN or Infinity
		}
		for name, value := range report.Metrics {
			// Too large a number makes the whole line fail for encoding/json.
			if want, isNumber := plain[name].(float64); !isNumber || want != float64(value) && !math.IsNaN(want) {
				t.Fatalf("%q is %v, want %v", name, value, plain[name])
			}
		}
		if epoch, isNumber := plain["epoch"].(float64); !isNumber || math.Abs(epoch) < 1<<53 && int(epoch) != report.Epoch {
			t.Fatalf("epoch %d, want %v", report.Epoch, plain["epoch"])
		}
	})
}
