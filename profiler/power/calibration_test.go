package power_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/power"
)

// readings are of a machine of 4 cores that takes 20 W and 7 W for each busy core, with
// noise of two percent.
func readings(n int, most float64) []power.Reading { return drawn(n, most, 1) }

func drawn(n int, most float64, seed uint64) []power.Reading {
	random := rand.New(rand.NewPCG(seed, 2))
	var list []power.Reading
	for range n {
		busy := most * random.Float64()
		list = append(list, power.Reading{Watts: (20 + 7*busy) * (1 + 0.02*random.NormFloat64()), Busy: busy, Cores: 4})
	}
	return list
}

func TestACalibrationFollowsTheMeter(t *testing.T) {
	c, err := power.Calibrate(readings(200, 4), power.Model{WattsPerCore: 10, IdleWattsPerCore: 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(c.WattsPerCore-7) > 0.3 || math.Abs(c.IdleWattsPerCore-5) > 0.2 || c.Off > 0.03 || !(c.OffHalf > 0 && c.OffHalf < 0.01) || c.Before < 0.1 || c.Readings != 200 {
		t.Errorf("%+v", c)
	}
	c.Meter, c.At = "plug", time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "state", "power.json")
	if known, err := power.Calibrations(path); err != nil || len(known) > 0 {
		t.Errorf("before there is one: %v, %v", known, err)
	}
	if err := (power.Calibration{Meter: "other"}).Keep(path, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := c.Keep(path, "here"); err != nil {
		t.Fatal(err)
	}
	if known, err := power.Calibrations(path); err != nil || known["here"] != c || known["elsewhere"].Meter != "other" {
		t.Errorf("%v, %v", known, err)
	}
	if told := c.String(); !strings.HasPrefix(told, "calibrated 2026-11-28 12:00 by meter plug, off by ") {
		t.Errorf("it is %q", told)
	}
}

// What a calibration cannot improve it leaves as it is: the placebo is a model that is
// right already.
func TestACalibrationThatDoesNotHelpIsRefused(t *testing.T) {
	backwards := readings(40, 4)
	for i := range backwards {
		backwards[i].Watts = 60 - 5*backwards[i].Busy
	}
	for name, test := range map[string]struct {
		readings []power.Reading
		before   power.Model
		want     string
	}{
		"the model is right already": {readings(12, 4), power.Model{WattsPerCore: 7, IdleWattsPerCore: 5}, "it is not used"},
		"too few":                    {readings(11, 4), power.Model{}, "11 readings"},
		"always the same load":       {readings(100, 0.1), power.Model{}, "tell too little"},
		"another machine's meter":    {backwards, power.Model{}, "does not follow"},
		"a dead meter":               {make([]power.Reading, 20), power.Model{}, "no running machine"},
	} {
		if c, err := power.Calibrate(test.readings, test.before); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// Of machines whose estimate is right already, hardly any is told that it was improved.
func TestARightEstimateIsRarelyReplaced(t *testing.T) {
	for _, n := range []int{12, 60} {
		replaced := 0
		for seed := range uint64(1000) {
			if _, err := power.Calibrate(drawn(n, 4, seed), power.Model{WattsPerCore: 7, IdleWattsPerCore: 5}); err == nil {
				replaced++
			}
		}
		if t.Logf("%d readings: %d of 1000", n, replaced); replaced > 40 {
			t.Errorf("%d of 1000 right estimates were replaced after %d readings", replaced, n)
		}
	}
}
