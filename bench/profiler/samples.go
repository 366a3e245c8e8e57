package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// sampledRun is what one run showed.
type sampledRun struct {
	Kept    bool    `json:"kept"`
	CPU     float64 `json:"cpu_milliseconds_a_second"` // of the process that watches
	Samples int     `json:"samples,omitempty"`
	Metrics int     `json:"metrics,omitempty"`
	Bytes   float64 `json:"bytes_a_sample,omitempty"`
	Pack    float64 `json:"pack_milliseconds,omitempty"` // the whole series once
}

// measureSamples watches two busy threads for so many seconds, in turn with samples that
// are kept and without.
func measureSamples(seconds, pairs int) error {
	var more, bytes, pack []float64
	metrics := 0
	for at := range pairs {
		var both [2]sampledRun
		for half := range 2 {
			kept := (half + at) % 2
			one, err := watchSamples(time.Duration(seconds)*time.Second, kept == 1)
			if err != nil {
				return err
			}
			line, err := json.Marshal(one)
			if err != nil {
				return err
			}
			fmt.Fprintln(os.Stderr, string(line))
			both[kept] = one
		}
		more, metrics = append(more, both[1].CPU-both[0].CPU), both[1].Metrics
		bytes, pack = append(bytes, both[1].Bytes), append(pack, both[1].Pack)
	}
	low, high := interval(more)
	fmt.Printf("%s\n\n| what | median of %d | spread |\n|---|---|---|\n", machine(), pairs)
	fmt.Printf("| CPU time more, ms for each second | %.2f | %.2f to %.2f (95%% by bootstrap) |\n", median(more), low, high)
	fmt.Printf("| bytes of a sample of %d metrics | %.0f | %.0f to %.0f |\n", metrics, median(bytes), slices.Min(bytes), slices.Max(bytes))
	fmt.Printf("| KiB of a trial of an hour, %.0f samples | %.0f | %.0f to %.0f |\n", inAnHour(), median(bytes)*inAnHour()/1024, slices.Min(bytes)*inAnHour()/1024, slices.Max(bytes)*inAnHour()/1024)
	fmt.Printf("| packing a series of %d s, ms | %.2f | %.2f to %.2f |\n", seconds, median(pack), slices.Min(pack), slices.Max(pack))
	return nil
}

// inAnHour is how many samples are left of 3,600.
func inAnHour() float64 {
	var s series.Series
	for range 3600 {
		s.Add(1, 1, nil)
	}
	return float64(len(s.Seconds))
}

func watchSamples(span time.Duration, keep bool) (one sampledRun, err error) {
	self, err := os.Executable()
	if err != nil {
		return one, err
	}
	command := exec.Command(self, "-work", "1000000")
	counters := perf.OpenCounters(perf.Events())
	if err := command.Start(); err != nil {
		return one, err
	}
	defer command.Wait()         //nolint:errcheck // it is killed
	defer command.Process.Kill() //nolint:errcheck // it runs
	var kept series.Series
	options := profiler.RecorderOptions{Leader: command.Process.Pid}
	if keep {
		options.Sampled = func(seen profiler.Profile) {
			compact := process.CompactProfile(seen)
			values := compact.Host
			maps.Copy(values, compact.Events)
			kept.Add(seen.Seconds, 1, values)
		}
	}
	before := own()
	recorder := profiler.Record(counters, options)
	time.Sleep(span)
	recorder.Stop()
	one.Kept, one.CPU = keep, (own()-before)*1e3/span.Seconds()
	if !keep {
		return one, nil
	}
	began := own()
	packed, err := kept.Encode()
	one.Pack = (own() - began) * 1e3
	one.Samples, one.Metrics = len(kept.Seconds), len(kept.Metrics)
	one.Bytes = float64(len(packed)) / float64(max(1, one.Samples))
	return one, err
}
