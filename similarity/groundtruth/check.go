package groundtruth

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// The bounds of what is imported. What a server writes itself is far within.
const (
	maxCells    = system.MaxConfigurations
	maxFeatures = 256
	maxCount    = 1_000_000_000 // of epochs
	// maxLog bounds the logarithm of seconds and joules: e to its power is 10^26.
	maxLog = 60.0
	// ahead is how far another server's clock may be ahead of ours. A record of
	// the future would never be the oldest, and so never go.
	ahead = 24 * time.Hour
	// maxFaults bounds the faults told at once.
	maxFaults     = 100
	maxNeighbours = 4096 // of trials on one machine
)

// checker gathers the faults of a ground truth from elsewhere.
type checker struct{ faults []problem.Field }

func (c *checker) fault(path string, value any, format string, args ...any) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, problem.Field{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
	}
}

// Check names the faults of what is to be imported, as a problem with fields.
func Check(sent protocol.GroundTruth, now time.Time) error {
	var c checker
	if sent.Version != protocol.GroundTruthVersion {
		c.fault("version", sent.Version, "must be %d: another version of tandem has to read this", protocol.GroundTruthVersion)
	}
	if len(sent.Records) > MaxRecords {
		c.fault("records", len(sent.Records), "must be at most %d: send them in several requests", MaxRecords)
		sent.Records = nil
	}
	seen := make(map[string]bool, len(sent.Records))
	for i, record := range sent.Records {
		at := fmt.Sprintf("records[%d]", i)
		if seen[record.ID] {
			c.fault(at+".id", record.ID, "comes twice")
		}
		seen[record.ID] = true
		c.record(at, record, now)
	}
	if len(c.faults) > 0 {
		return problem.WithFields("the ground truth has faults", c.faults)
	}
	return nil
}

func (c *checker) record(at string, record similarity.Record, now time.Time) {
	if len(record.ID) < 8 || !word(record.ID) {
		c.fault(at+".id", record.ID, "must be 8 to 64 letters, digits, - and _")
	}
	if record.Machine == "" || len(record.Machine) > 1024 || strings.ContainsFunc(record.Machine, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.fault(at+".machine", record.Machine, "must be the type of a machine, of at most 1,024 bytes")
	}
	for _, one := range []struct{ name, key string }{{"study", record.Study}, {"script", record.Script}, {"code", record.Code}, {"fixed", record.Fixed}} {
		if one.key != "" && !word(one.key) {
			c.fault(at+"."+one.name, one.key, "must be at most 64 letters, digits, - and _")
		}
	}
	if record.Contrast != nil {
		c.contrast(at+".contrast", *record.Contrast)
	}
	c.knobs(at+".reads", record.Reads)
	if record.Process != nil {
		c.process(at+".process", *record.Process)
	}
	c.within(at+".uncompared", float64(record.Uncompared), 0, maxCount)
	if record.Updated.Year() < 1970 || record.Updated.After(now.Add(ahead)) {
		c.fault(at+".updated", record.Updated, "must be from 1970 on and at most a day ahead of the clock of this server")
	}
	if len(record.Cells) > maxCells {
		c.fault(at+".cells", len(record.Cells), "must be at most %d", maxCells)
		return
	}
	type place struct {
		key        string
		neighbours int
	}
	seen := make(map[place]bool, len(record.Cells))
	for i, cell := range record.Cells {
		inside := fmt.Sprintf("%s.cells[%d]", at, i)
		if one := (place{cell.Configuration.Key(), cell.Neighbours}); seen[one] {
			c.fault(inside, one.key, "comes twice with as many neighbours")
		} else {
			seen[one] = true
		}
		c.cell(inside, cell)
	}
}

// contrast checks a comparison that is being made.
func (c *checker) contrast(at string, contrast similarity.Contrast) {
	c.knobs(at+".configuration", contrast.Configuration)
	c.within(at+".neighbours", float64(contrast.Neighbours), 0, maxNeighbours)
	c.within(at+".before", float64(contrast.Before), 0, maxCount)
	c.within(at+".after", float64(contrast.After), 0, maxCount)
	c.within(at+".log_seconds", contrast.LogSeconds, -maxLog, maxLog)
	c.within(at+".log_joules", contrast.LogJoules, -maxLog, maxLog)
	c.within(at+".default_log_seconds", contrast.DefaultLogSeconds, -maxLog, maxLog)
	c.within(at+".default_log_joules", contrast.DefaultLogJoules, -maxLog, maxLog)
}

// process checks what a process has loaded.
func (c *checker) process(at string, process similarity.Process) {
	if len(process.Loaded) > maxCells {
		c.fault(at+".loaded", len(process.Loaded), "must be at most %d", maxCells)
		return
	}
	for i, loaded := range process.Loaded {
		c.knobs(fmt.Sprintf("%s.loaded[%d]", at, i), loaded)
	}
	c.features(at+".memory", process.Memory)
	c.features(at+".grown", process.Grown)
}

// compared checks comparisons.
func (c *checker) compared(at string, compared similarity.Compared) {
	c.within(at+".count", float64(compared.Count), 1, maxCount)
	c.within(at+".seconds", compared.Seconds, -2*maxLog, 2*maxLog)
	c.within(at+".joules", compared.Joules, -2*maxLog, 2*maxLog)
	most := 4 * maxLog * maxLog * maxCount
	c.within(at+".seconds_squares", compared.SecondsSquares, 0, most)
	c.within(at+".joules_squares", compared.JoulesSquares, 0, most)
}

// within checks that a number is within bounds.
func (c *checker) within(at string, value, low, high float64) {
	if !(value >= low && value <= high) {
		c.fault(at, fmt.Sprint(value), "must be a number from %g to %g", low, high)
	}
}

func (c *checker) cell(at string, cell similarity.Cell) {
	c.knobs(at+".configuration", cell.Configuration)
	if cell.Compared != nil {
		c.compared(at+".compared", *cell.Compared)
	}
	if cell.ComparedAlone != nil {
		c.compared(at+".compared_alone", *cell.ComparedAlone)
	}
	for _, one := range []struct {
		name        string
		count, most int
	}{{"neighbours", cell.Neighbours, maxNeighbours}, {"epochs", cell.Epochs, maxCount}, {"firsts", cell.Firsts, maxCount}, {"profiles", cell.Profiles, maxCount}} {
		if one.count < 0 || one.count > one.most {
			c.fault(at+"."+one.name, one.count, "must be from 0 to %d", one.most)
		}
	}
	for _, one := range []struct {
		name             string
		value, low, high float64
	}{{"log_seconds", cell.LogSeconds, -maxLog, maxLog}, {"log_joules", cell.LogJoules, -maxLog, maxLog}, {"variance", cell.Variance, 0, maxLog * maxLog},
		{"first_log_seconds", cell.FirstLogSeconds, -maxLog, maxLog}, {"first_log_joules", cell.FirstLogJoules, -maxLog, maxLog}} {
		c.within(at+"."+one.name, one.value, one.low, one.high)
	}
	c.features(at+".features", cell.Features)
}

// features checks numbers by name.
func (c *checker) features(at string, features map[string]float64) {
	if len(features) > maxFeatures {
		c.fault(at, len(features), "must be at most %d", maxFeatures)
		return
	}
	for name, value := range features {
		if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			c.fault(at, name, "must have names of 1 to 128 visible ASCII characters")
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			c.fault(at+"."+name, fmt.Sprint(value), "must be a number")
		}
	}
}

// knobs checks the values of a configuration.
func (c *checker) knobs(at string, configuration system.Configuration) {
	for name, value := range configuration {
		c.knob(at+"."+name, name, value)
	}
}

// knob checks a value of a configuration against the catalogue.
func (c *checker) knob(at, name string, value space.Value) {
	knob, known := system.Find(name)
	if !known {
		c.fault(at, value, "is not a knob: there are %s", strings.Join(system.Names(), ", "))
		return
	}
	text, _ := value.Text()
	switch {
	case knob.Kind == system.Word && !word(text):
		c.fault(at, value, "must be a word of at most 64 letters, digits, - and _")
	case !knob.Takes(value):
		c.fault(at, value, "must be a %s from %g to %g", map[system.Kind]string{system.Whole: "whole number", system.Number: "number"}[knob.Kind], knob.Low, knob.High)
	}
}

// word reports whether the text is one word of at most 64 plain characters.
func word(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// Wanted returns the sent records that are newer than those here, as many as there
// is room for.
func Wanted(sent, here []similarity.Record) []similarity.Record {
	versions := make(map[string]similarity.Record, len(here))
	for _, record := range here {
		versions[record.ID] = record
	}
	news := slices.DeleteFunc(slices.Clone(sent), func(record similarity.Record) bool {
		kept, there := versions[record.ID]
		return there && !record.Updated.After(kept.Updated)
	})
	for _, record := range news {
		versions[record.ID] = record
	}
	// The same order as the stores': the newest of each type stay.
	all := slices.SortedFunc(maps.Values(versions), func(a, b similarity.Record) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID)) })
	ranks, kept := make(map[string]int), make(map[string]bool)
	for _, record := range all {
		kept[record.ID] = ranks[record.Machine] < MaxRecords
		ranks[record.Machine]++
	}
	return slices.DeleteFunc(news, func(record similarity.Record) bool { return !kept[record.ID] })
}
