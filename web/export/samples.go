package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
)

// Sampled is a trial with its samples.
type Sampled struct {
	Study  string
	Detail protocol.TrialDetail
	protocol.TrialSamples
}

// metrics are the names of all columns, in order.
func (s Sampled) metrics() []string {
	names := map[string]bool{}
	for _, lease := range s.Leases {
		for name := range lease.Metrics {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// SamplesCSV writes a line for each sample, with the system configuration of its epoch.
func SamplesCSV(s Sampled, out io.Writer) error {
	names, knobs := s.metrics(), map[string]bool{}
	type epoch struct{ rung, epoch int }
	systems := map[epoch]map[string]space.Value{}
	for _, report := range s.Detail.Reports {
		systems[epoch{report.Rung, report.Epoch}] = report.System
		for name := range report.System {
			knobs[name] = true
		}
	}
	settings := slices.Sorted(maps.Keys(knobs))
	cells := []string{"time", "lease", "rung", "epoch", "seconds", "energy_method"}
	for _, name := range settings {
		cells = append(cells, "system."+name)
	}
	for _, name := range names {
		cells = append(cells, text(name))
	}
	table := csv.NewWriter(out)
	if err := table.Write(cells); err != nil {
		return err
	}
	for _, lease := range s.Leases {
		at := lease.Begin
		for i, seconds := range lease.Seconds {
			at = at.Add(time.Duration(float64(seconds) * float64(time.Second)))
			cells = append(cells[:0], at.Format(time.RFC3339Nano), strconv.Itoa(int(lease.LeaseEpoch)), strconv.Itoa(lease.Rung), strconv.Itoa(lease.Epochs[i]), number(seconds), text(lease.Method))
			for _, name := range settings {
				cell := ""
				if value, has := systems[epoch{lease.Rung, lease.Epochs[i]}][name]; has {
					cell = valueCell(value)
				}
				cells = append(cells, cell)
			}
			for _, name := range names {
				cell := ""
				if column := lease.Metrics[name]; column != nil && !column[i].IsNaN() {
					cell = number(column[i])
				}
				cells = append(cells, cell)
			}
			if err := table.Write(cells); err != nil {
				return err
			}
		}
	}
	table.Flush()
	return table.Error()
}

// OpenMetrics writes the samples as gauges with times, as the standard of that name says.
func OpenMetrics(s Sampled, out io.Writer) error {
	to := bufio.NewWriter(out)
	leases := slices.SortedStableFunc(slices.Values(s.Leases), func(a, b protocol.LeaseSamples) int { return cmp.Compare(a.LeaseEpoch, b.LeaseEpoch) })
	for _, name := range s.metrics() {
		family := "tandem_trial_" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, name)
		fmt.Fprintf(to, "# TYPE %s gauge\n", family)
		for _, lease := range leases {
			labels, at := "", float64(lease.Begin.UnixMilli())/1e3
			if name == series.Watts {
				labels = ",method=" + quoted(lease.Method)
			}
			for i, value := range lease.Metrics[name] {
				at += float64(lease.Seconds[i])
				if !value.IsNaN() {
					fmt.Fprintf(to, "%s{study=%s,trial=\"%d\",worker=%s,lease=\"%d\",rung=\"%d\",epoch=\"%d\"%s} %s %.3f\n",
						family, quoted(s.Study), s.Detail.Trial.Number, quoted(lease.Worker), lease.LeaseEpoch, lease.Rung, lease.Epochs[i], labels, metric(value), at)
				}
			}
		}
	}
	fmt.Fprintln(to, "# EOF")
	return to.Flush()
}

// quoted is a label's value.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}

// metric is a value as OpenMetrics spells it.
func metric(value trial.Float) string { return strconv.FormatFloat(float64(value), 'g', -1, 64) }
