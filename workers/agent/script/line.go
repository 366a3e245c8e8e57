package script

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/tandem-tune/tandem/trial"
)

// LongestLine bounds what is looked at as a report; longer lines are log.
const LongestLine = 1 << 20

// Line is an epoch as a script without a client reports it.
type Line struct {
	Epoch      int
	Metrics    map[string]trial.Float
	Checkpoint bool
}

// ParseLine reads a line of standard output. A report is one JSON object with
// an integer "epoch" and at least one number; numbers may also be NaN, Infinity
// and -Infinity, as Python's json module prints them. Its other members are
// ignored, except "checkpoint": true. Anything else is not a report, but log.
func ParseLine(line []byte) (Line, bool) {
	line = bytes.TrimSpace(line)
	if len(line) > LongestLine || len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return Line{}, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(quoted(line), &members) != nil {
		return Line{}, false
	}
	epoch, err := strconv.Atoi(string(members["epoch"]))
	if err != nil {
		return Line{}, false
	}
	report := Line{Epoch: epoch, Metrics: map[string]trial.Float{}, Checkpoint: string(members["checkpoint"]) == "true"}
	for name, member := range members {
		if value, isNumber := number(member); isNumber && name != "epoch" {
			report.Metrics[name] = value
		}
	}
	return report, len(report.Metrics) > 0
}

// unusualMark stands before Python's names of the numbers JSON does not have
// when they are quoted to get them through a JSON parser. It is a character
// for private use, so that a script's string "NaN" stays a string.
const unusualMark = "\uE000"

// quoted makes JSON of a line with bare NaN and Infinity in it. Inside strings
// nothing is changed.
func quoted(line []byte) []byte {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line
	}
	out := make([]byte, 0, len(line)+16)
	inString := false
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case inString && c == '\\' && i+1 < len(line):
			out = append(out, c, line[i+1])
			i += 2
			continue
		case c == '"':
			inString = !inString
		case !inString:
			if name := unusualAt(line[i:]); name != "" {
				out = append(out, `"`+unusualMark+name+`"`...)
				i += len(name)
				continue
			}
		}
		out = append(out, line[i])
		i++
	}
	return out
}

func unusualAt(text []byte) string {
	for _, name := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(text, []byte(name)) {
			return name
		}
	}
	return ""
}

func number(member json.RawMessage) (trial.Float, bool) {
	switch string(member) {
	case `"` + unusualMark + `NaN"`:
		return trial.Float(math.NaN()), true
	case `"` + unusualMark + `Infinity"`:
		return trial.Float(math.Inf(1)), true
	case `"` + unusualMark + `-Infinity"`:
		return trial.Float(math.Inf(-1)), true
	}
	if c := member[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	value, err := strconv.ParseFloat(string(member), 64)
	// What is too large for a float is infinite, as in Python.
	return trial.Float(value), err == nil || math.IsInf(value, 0)
}
