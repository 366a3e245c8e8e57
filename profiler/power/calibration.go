package power

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/regression"
)

const (
	// fewest is how many readings a calibration needs: half of them are left out.
	fewest = 12
	// leastSpread is by how many cores the load must change for its watts to show.
	leastSpread = 0.5
)

// Model is an estimate of a machine's power by its load, in watts.
type Model struct {
	WattsPerCore     float64 `json:"watts_per_core"` // that is busy
	IdleWattsPerCore float64 `json:"idle_watts_per_core"`
}

// Reading is what a machine drew over a span, in watts, while so many of its cores were
// busy on average.
type Reading struct{ Watts, Busy, Cores float64 }

// off are the errors of the model relative to what was drawn.
func (m Model) off(readings []Reading) []float64 {
	errs := make([]float64, len(readings))
	for i, r := range readings {
		errs[i] = math.Abs(m.WattsPerCore*r.Busy+m.IdleWattsPerCore*r.Cores-r.Watts) / r.Watts
	}
	return errs
}

// mean is the mean with half of its 95% interval by Student's t.
func mean(values []float64) (middle, half float64) {
	squares := 0.0
	for _, one := range values {
		middle += one / float64(len(values))
	}
	for _, one := range values {
		squares += (one - middle) * (one - middle)
	}
	return middle, regression.HalfWidth(squares, len(values))
}

// Calibration is a model that was fitted to a meter.
type Calibration struct {
	Model
	Meter string    `json:"meter"`
	At    time.Time `json:"at"`
	// Readings were taken, every second of which was left out of the fit. On those the
	// model is off by a share of what was drawn, the one that it replaces by another.
	Readings int     `json:"readings"`
	Off      float64 `json:"off"`
	OffHalf  float64 `json:"off_half_width"`
	Before   float64 `json:"off_before"`
}

// String says where the estimate comes from.
func (c Calibration) String() string {
	return fmt.Sprintf("calibrated %s by meter %s, off by %.1f%% ± %.1f%%", c.At.UTC().Format("2006-01-02 15:04"), c.Meter, 100*c.Off, 100*c.OffHalf)
}

// Calibrate fits a model by least squares to every second reading. It is an error where
// the load did not change, and where no difference to the model before is found on the
// readings that were left out: the 95% interval of the paired errors includes zero.
func Calibrate(readings []Reading, before Model) (c Calibration, err error) {
	var fitted, left []Reading
	low, high, sum, watts := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for i, r := range readings {
		if !(r.Watts > 0 && r.Cores > 0) {
			return c, fmt.Errorf("the meter said %g W of %g cores: that is no running machine", r.Watts, r.Cores)
		}
		if i%2 == 1 {
			left = append(left, r)
			continue
		}
		fitted = append(fitted, r)
		low, high, sum, watts = min(low, r.Busy), max(high, r.Busy), sum+r.Busy, watts+r.Watts
	}
	if len(readings) < fewest || high-low < leastSpread {
		return c, fmt.Errorf("%d readings with %.1f to %.1f busy cores tell too little: take %d readings or more, at loads that differ by %g cores", len(readings), low, high, fewest, leastSpread)
	}
	n := float64(len(fitted))
	both, squares := 0.0, 0.0
	for _, r := range fitted {
		both += (r.Busy - sum/n) * (r.Watts - watts/n)
		squares += (r.Busy - sum/n) * (r.Busy - sum/n)
	}
	c.Readings, c.WattsPerCore = len(readings), both/squares
	c.IdleWattsPerCore = (watts/n - c.WattsPerCore*sum/n) / readings[0].Cores
	after, earlier := c.off(left), before.off(left)
	better := make([]float64, len(left))
	for i := range left {
		better[i] = earlier[i] - after[i]
	}
	c.Off, c.OffHalf = mean(after)
	c.Before, _ = mean(earlier)
	gain, half := mean(better)
	switch {
	case c.WattsPerCore <= 0 || c.IdleWattsPerCore < 0:
		return c, fmt.Errorf("the fit says %.3g W per busy core and %.3g W per core at rest: the meter does not follow this machine's load", c.WattsPerCore, c.IdleWattsPerCore)
	case gain <= half:
		return c, fmt.Errorf("on readings that were left out it is off by %.1f%% ± %.1f%%, and the estimate before by %.1f%%: no difference found (%.1f%% ± %.1f%%), so it is not used", 100*c.Off, 100*c.OffHalf, 100*c.Before, 100*gain, 100*half)
	}
	return c, nil
}

// Calibrations reads what is known of machines from a file; nothing where there is none.
func Calibrations(path string) (known map[string]Calibration, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the calibration of power %s: %w", path, err)
	}
	return known, nil
}

// Keep writes the machine's calibration to the file, in place of the one before.
func (c Calibration) Keep(path, machine string) error {
	known, err := Calibrations(path)
	if err != nil {
		return err
	}
	if known == nil {
		known = map[string]Calibration{}
	}
	known[machine] = c
	return files.Keep(path, known)
}
