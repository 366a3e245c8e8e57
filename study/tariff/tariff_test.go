package tariff_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/tariff"
	"github.com/tandem-tune/tandem/trial"
)

const prices = `
currency: EUR
timezone: Europe/Berlin
energy:
  - {from: 2026-03-01, to: 2026-03-02, price: 1}
  - {from: "22:00", to: "06:00", price: 0.1}
  - {price: 0.4}
machines:
  - {machine: "*H200*", price: 3}
  - {machine: "*", from: "08:00", to: "20:00", price: 0.5}
`

const carbon = `
intensity:
  - {from: "10:00", to: "16:00", grams: 100}
  - {grams: 400}
`

func read(t *testing.T, prices, carbon string) *tariff.Tariff {
	t.Helper()
	var p, c []byte
	if prices != "" {
		p = []byte(prices)
	}
	if carbon != "" {
		c = []byte(carbon)
	}
	read, err := tariff.Read(p, c)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestWhatAnEpochCosts(t *testing.T) {
	t.Parallel()
	all := read(t, prices, carbon)
	kwh := trial.Energy{Joules: 3.6e6, Method: "rapl"}
	guess := trial.Energy{Joules: 3.6e6, Method: "estimate: 10 W"}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, test := range map[string]struct {
		tariff          *tariff.Tariff
		epoch           tariff.Epoch
		amount, grams   float64
		method          string
		currency, known bool
	}{
		"by day in winter":             {all, tariff.Epoch{Machine: "x", Seconds: 3600, Energy: kwh, At: at("2026-01-10T12:00:00Z")}, 0.9, 100, "rapl", true, true},
		"at night, over midnight":      {all, tariff.Epoch{Machine: "x", Seconds: 3600, Energy: guess, At: at("2026-01-10T00:30:00Z")}, 0.1, 400, "estimate: 10 W", true, true},
		"half in each price":           {all, tariff.Epoch{Machine: "x", Seconds: 7200, Energy: kwh, At: at("2026-01-10T06:00:00Z")}, 0.25, 400, "rapl", true, true},
		"summer time":                  {all, tariff.Epoch{Machine: "x", Seconds: 60, Energy: kwh, At: at("2026-07-10T20:30:00Z")}, 0.1, 400, "rapl", true, true},
		"a day of its own":             {all, tariff.Epoch{Machine: "x", Seconds: 60, Energy: kwh, At: at("2026-03-01T03:00:00Z")}, 1, 400, "rapl", true, true},
		"a machine shared by three":    {all, tariff.Epoch{Machine: "NVIDIA H200, 16 cores", Neighbours: 2, Seconds: 3600, At: at("2026-01-10T03:00:00Z")}, 1, math.NaN(), "", true, true},
		"nothing of it has a price":    {all, tariff.Epoch{Machine: "x", Seconds: 3600, At: at("2026-01-10T03:00:00Z")}, 0, 0, "", false, false},
		"carbon alone":                 {read(t, "", carbon), tariff.Epoch{Seconds: 60, Energy: kwh, At: at("2026-01-10T12:00:00Z")}, 0, 100, "rapl", false, true},
		"no file":                      {nil, tariff.Epoch{Seconds: 60, Energy: kwh, At: at("2026-01-10T12:00:00Z")}, 0, 0, "", false, false},
		"longer than a day, all night": {read(t, "currency: EUR\nenergy: [{price: 0.25}]", ""), tariff.Epoch{Seconds: 1e6, Energy: kwh, At: at("2026-01-10T12:00:00Z")}, 0.25, math.NaN(), "rapl", true, true},
	} {
		cost := test.tariff.Cost(test.epoch)
		if (cost != nil) != test.known {
			t.Errorf("%s: %+v", name, cost)
		}
		if cost == nil {
			continue
		}
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !near(float64(cost.Amount), test.amount) || cost.Method != test.method || (cost.Currency == "EUR") != test.currency || (cost.CO2 == nil) != math.IsNaN(test.grams) || cost.CO2 != nil && !near(float64(*cost.CO2), test.grams) {
			t.Errorf("%s: %+v, %v g", name, cost, cost.Grams())
		}
	}
}

func TestFaultyFilesNameTheFieldTheValueAndTheFix(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"energy: [{price: 1}]":                 "currency",
		"currency: EUR":                        "energy",
		"currency: EUR\nenergy: []":            "1 to 10000",
		"currency: EUR\nenergy: [{prise: 1}]":  "prise",
		"currency: EUR\nenergy: [{price: -1}]": "energy[0].price",
		"currency: EUR\nenergy: [{from: 7 o'clock, price: 1}, {price: 1}]":                  "energy[0].from",
		"currency: EUR\nenergy: [{from: \"06:00\", to: \"22:00\", price: 1}]":               "every hour of a day",
		"currency: EUR\nenergy: [{from: 2026-02-01, to: 2026-01-01, price: 1}, {price: 1}]": "after from",
		"currency: EUR\ntimezone: Mars\nenergy: [{price: 1}]":                               "timezone",
		"currency: EUR\nmachines: [{price: 1}]":                                             "machine",
		"currency: EUR\nmachines: [{machine: \"[\", price: 1}]":                             "pattern",
		"currency: EUR\nmachine: {}":                                                        "machines",
		"- 1":                                                                               "mapping",
	} {
		_, err := tariff.Read([]byte(file), nil)
		detailed, is := err.(*problem.Error)
		if !is || !problem.Is(err, problem.Invalid) {
			t.Errorf("%q: %v", file, err)
			continue
		}
		text := ""
		for _, field := range detailed.Fields {
			text += field.Path + ": " + field.Message + "; "
		}
		if !strings.Contains(text, want) {
			t.Errorf("%q: %s", file, text)
		}
	}
	if _, err := tariff.Read(nil, []byte("intensity: [{price: 3}]")); err == nil {
		t.Error("a carbon file with prices is taken")
	}
}

func TestStudiesWaitForCheapHours(t *testing.T) {
	t.Parallel()
	all := read(t, "currency: EUR\nenergy: [{from: \"22:00\", to: \"06:00\", price: 0.1}, {price: 0.4}]", carbon)
	created := time.Date(2026, 1, 10, 8, 0, 0, 0, time.UTC)
	cheap := &definition.When{PriceBelow: new(0.2), LatestStartHours: 24}
	for name, test := range map[string]struct {
		tariff *tariff.Tariff
		when   *definition.When
		after  time.Duration
		want   string
	}{
		"by day":           {all, cheap, time.Hour, "it waits for power below 0.2 EUR a kWh (now 0.4), which begins 10 January 22:00 UTC; at the latest it starts 11 January 08:00 UTC (when)"},
		"at night":         {all, cheap, 15 * time.Hour, ""},
		"after the latest": {all, cheap, 24 * time.Hour, ""},
		"both":             {all, &definition.When{PriceBelow: new(0.2), CO2Below: new(200.0), LatestStartHours: 24}, time.Hour, "it waits for power below 0.2 EUR a kWh (now 0.4) and less than 200 g of CO2 a kWh (now 400); at the latest it starts 11 January 08:00 UTC (when)"},
		"green":            {all, &definition.When{CO2Below: new(200.0), LatestStartHours: 24}, 3 * time.Hour, ""},
		"no prices":        {nil, cheap, time.Hour, ""},
		"any hour":         {all, nil, time.Hour, ""},
	} {
		if got := test.tariff.Waits(test.when, created, created.Add(test.after)); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
