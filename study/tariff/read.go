package tariff

import (
	"path"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

const (
	mostRows  = 10_000
	mostPrice = 1e9
)

// Read reads a file of prices and one of carbon intensities; nil is one that is not given.
// The error names every fault.
func Read(prices, carbon []byte) (*Tariff, error) {
	var t Tariff
	if prices != nil {
		err := decode("the file of prices", prices, []string{"currency", "timezone", "energy", "machines"}, func(s tree.Section) {
			if n, at := s.Need("currency", "the currency of all its prices, such as EUR"); n != nil {
				s.TextOf(at, n, 16, &t.currency)
			}
			zone := readZone(s)
			t.energy = readTable(s, "energy", "price", zone)
			t.machines = readTable(s, "machines", "price", zone)
			if len(t.energy.rows)+len(t.machines.rows) == 0 && len(s.Faults) == 0 {
				s.Fault("energy", s.Node, "is missing, and machines too: list prices, such as energy: [{price: 0.3}]")
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if carbon != nil {
		err := decode("the carbon file", carbon, []string{"timezone", "intensity"}, func(s tree.Section) {
			if n, _ := s.Need("intensity", "g of CO2 per kWh, such as intensity: [{grams: 380}]"); n != nil {
				t.carbon = readTable(s, "intensity", "grams", readZone(s))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// decode reads a mapping of the fields.
func decode(what string, data []byte, fields []string, read func(tree.Section)) error {
	if len(data) > tree.MaxBytes {
		return problem.New(problem.Invalid, "%s has %d bytes, and at most %d are read", what, len(data), tree.MaxBytes)
	}
	root, faults, err := tree.ParseYAML(data)
	if err != nil {
		return err
	}
	d := &tree.Decoder{Faults: faults}
	if s, ok := d.Open("", root, fields...); ok {
		read(s)
	}
	if len(d.Faults) > 0 {
		return problem.WithFields(what+" is not valid", d.Faults)
	}
	return nil
}

func readZone(s tree.Section) *time.Location {
	name := "UTC"
	s.Text("timezone", tree.MaxKey, &name)
	zone, err := time.LoadLocation(name)
	if n, at := s.Get("timezone"); err != nil && n != nil {
		s.Fault(at, n, "must be a time zone of this machine, such as UTC or Europe/Berlin")
	}
	if err != nil {
		return time.UTC
	}
	return zone
}

func readTable(s tree.Section, name, value string, zone *time.Location) table {
	t := table{zone: zone}
	n, at := s.Get(name)
	if n == nil {
		return t
	}
	items, paths := tree.Elements(at, n)
	if len(items) > mostRows || len(items) == 0 {
		s.Fault(at, n, "must list 1 to %d entries", mostRows)
		return t
	}
	fields := []string{"from", "to", value}
	if name == "machines" {
		fields = append(fields, "machine")
	}
	always := name == "machines" // a machine without a price has none
	for i, item := range items {
		one, ok := s.Open(paths[i], item, fields...)
		if !ok {
			return t
		}
		r := row{high: 24 * 60}
		if need, _ := one.Need(value, "a number from 0 on"); need != nil {
			one.Number(value, 0, mostPrice, &r.value)
		}
		if name == "machines" {
			if need, where := one.Need("machine", `a type of machine as tandem workers shows it, or a pattern such as "*"`); need != nil {
				one.TextOf(where, need, 256, &r.machine)
				if _, err := path.Match(r.machine, ""); err != nil || r.machine == "" {
					one.Fault(where, need, "must be a type of machine, or a pattern with * and ?")
				}
			}
		}
		from, to := readMoment(one, "from", &r.low, &r.from, zone), readMoment(one, "to", &r.high, &r.to, zone)
		if from && to && !r.from.IsZero() && !r.to.IsZero() && !r.from.Before(r.to) || r.low == r.high {
			one.Fault(tree.Join(paths[i], "to"), item, "must be after from")
		}
		t.rows = append(t.rows, r)
		always = always || r.from.IsZero() && r.to.IsZero()
	}
	if len(s.Faults) == 0 && name != "machines" && !t.covers() {
		s.Fault(at, n, "must have a value for every hour of a day: add an entry with %s alone at its end", value)
	}
	return t
}

// covers reports whether the rows of each day hold at all its minutes.
func (t table) covers() bool {
	for minute := range 24 * 60 {
		held := false
		for _, r := range t.rows {
			day := time.Date(2000, 1, 1, minute/60, minute%60, 0, 0, time.UTC)
			held = held || r.from.IsZero() && r.to.IsZero() && r.holds(day, "")
		}
		if !held {
			return false
		}
	}
	return true
}

// readMoment reads a time of day or a moment; false where it is not given.
func readMoment(s tree.Section, name string, minute *int, moment *time.Time, zone *time.Location) bool {
	n, at := s.Get(name)
	if n == nil {
		return false
	}
	text, ok := s.Written(at, n, tree.MaxKey)
	if !ok {
		return false
	}
	if text == "24:00" {
		*minute = 24 * 60
		return true
	}
	if day, err := time.Parse("15:04", text); err == nil {
		*minute = day.Hour()*60 + day.Minute()
		return true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02"} {
		if parsed, err := time.ParseInLocation(layout, text, zone); err == nil {
			*moment = parsed
			return true
		}
	}
	s.Fault(at, n, `must be a time of day in quotation marks, such as "06:00", or a moment, such as 2026-12-01T06:00`)
	return false
}
