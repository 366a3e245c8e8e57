package workercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/power"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/workers/agent/probe"
)

const (
	// A calibration takes so many readings, or more where they would take longer than the
	// longest.
	calibrationReadings = 60
	longestReading      = time.Minute
	// In less, readings are so short that a meter that lags by a second flattens the slope.
	leastCalibration = 10 * time.Minute
)

// calibrationOfHere is the file with calibrations, and this machine's name in it.
func calibrationOfHere() (path, machine string, err error) {
	host, err := os.Hostname()
	if err != nil {
		return "", "", err
	}
	beside, err := probe.DefaultFile()
	return filepath.Join(filepath.Dir(beside), "power.json"), host + ", " + profiler.ThisMachine().CPUModel, err
}

// calibratePower fits the estimate of this machine's power to the meter, and keeps it.
func calibratePower(ctx context.Context, source string, span time.Duration, out io.Writer) error {
	if source == "" || span < leastCalibration || span > 24*time.Hour {
		return term.Misuse("--calibrate-power takes 10m to 24h and needs --meter, the power meter to follow: got %v and %q", span, source)
	}
	here := profiler.ThisMachine()
	if len(here.GPUs) > 0 {
		return fmt.Errorf("this machine has GPUs, which a meter of the whole machine includes and the estimate does not: use the meter itself, with tandem worker --meter %s", source)
	}
	path, machine, err := calibrationOfHere()
	if err != nil {
		return err
	}
	meter, err := power.Open(power.Source(source), "/")
	if err != nil {
		return term.Misuse("--meter: %w", err)
	}
	defer meter.Close()
	fmt.Fprintf(out, "Keeps 0 to %d cores busy for %v and follows the meter %s.\n", here.Cores, span, meter.Name())
	var readings []power.Reading
	for began := time.Now(); time.Since(began) < span; {
		// Two of each load: one to fit, and one to leave out.
		one, err := readPower(ctx, meter, len(readings)/2%(here.Cores+1), min(span/calibrationReadings, longestReading))
		if err != nil {
			return err
		}
		readings = append(readings, one)
	}
	return keepCalibration(readings, meter.Name(), path, machine, out)
}

// readPower keeps so many cores busy for a while, and reads what that takes.
func readPower(ctx context.Context, meter *power.Meter, cores int, span time.Duration) (one power.Reading, err error) {
	began := time.Now()
	before, err := meter.Joules(began)
	if err != nil {
		return one, err
	}
	working, stop := context.WithTimeout(ctx, span)
	defer stop()
	var busy sync.WaitGroup
	used, all := proc.MachineSeconds(proc.NewHost(""))
	for range cores {
		busy.Go(func() {
			for sum := 0; working.Err() == nil; {
				for i := range 1 << 16 {
					sum += i
				}
			}
		})
	}
	<-working.Done()
	ended := time.Now()
	after, failed := meter.Joules(ended)
	usedNow, allNow := proc.MachineSeconds(proc.NewHost(""))
	seconds := ended.Sub(began).Seconds()
	busy.Wait()
	if err := errors.Join(ctx.Err(), failed); err != nil {
		return one, err
	}
	return power.Reading{Watts: (after - before) / seconds, Busy: (usedNow - used) / seconds, Cores: (allNow - all) / seconds}, nil
}

// keepCalibration fits, keeps and tells.
func keepCalibration(readings []power.Reading, meter, path, machine string, out io.Writer) error {
	var before power.Model
	before.WattsPerCore, before.IdleWattsPerCore, _ = profiler.AssumedWatts("/")
	known, err := power.Calibrations(path)
	if err != nil {
		return err
	}
	if last, has := known[machine]; has {
		before = last.Model
	}
	c, err := power.Calibrate(readings, before)
	if err != nil {
		return err
	}
	c.Meter, c.At = meter, time.Now().UTC().Truncate(time.Second)
	if err := c.Keep(path, machine); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%.3g W per busy core and %.3g W per core at rest, from %d readings.\nOn the half that was left out it is off by %.1f%% ± %.1f%% (95%%); the estimate before was off by %.1f%%.\nWorkers on this machine use it from their next start (%s).\n",
		c.WattsPerCore, c.IdleWattsPerCore, c.Readings, 100*c.Off, 100*c.OffHalf, 100*c.Before, path)
	return err
}
