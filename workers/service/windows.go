package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/trial"
)

// windows are the values of each metric, one for each measured window of a trial.
type windows map[string][]trial.Float

// keptIn is the name of the checkpoint's file.
const keptIn = "windows.json"

// restored are the windows that the trial measured on lower rungs, or before it was cut
// off.
func restored(folder string) (windows, error) {
	content, err := os.ReadFile(filepath.Join(folder, keptIn))
	if errors.Is(err, os.ErrNotExist) {
		return windows{}, nil
	}
	known := windows{}
	if err == nil {
		err = json.Unmarshal(content, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the windows that were measured before: %w", err)
	}
	return known, nil
}

// keep writes the windows into the checkpoint, all of them or none.
func (w windows) keep(folder string) error {
	content, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("keep the windows: %w", err)
	}
	beside := folder + ".windows"
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		return fmt.Errorf("keep the windows: %w", err)
	}
	return os.Rename(beside, filepath.Join(folder, keptIn))
}

// add adds what one window measured.
func (w windows) add(measured map[string]float64) {
	for name, value := range measured {
		w[name] = append(w[name], trial.Float(value))
	}
}

// report are the means over all windows, with half the width of their 95% intervals
// where there are at least two.
func (w windows) report() map[string]trial.Float {
	metrics := map[string]trial.Float{}
	for name, values := range w {
		sum, squares := 0.0, 0.0
		for _, value := range values {
			sum += float64(value)
		}
		mean := sum / float64(len(values))
		for _, value := range values {
			squares += (float64(value) - mean) * (float64(value) - mean)
		}
		metrics[name] = trial.Float(mean)
		if half := trial.Float(regression.HalfWidth(squares, len(values))); half.IsFinite() {
			metrics[name+".half_width"] = half
		}
		metrics["windows"] = max(metrics["windows"], trial.Float(len(values)))
	}
	return metrics
}

// read finds the metrics in what the load printed: by their patterns, of which the last
// match counts, or as the last line, a JSON object.
func read(printed *tail, patterns map[string]string) (map[string]float64, error) {
	if len(patterns) == 0 {
		return readObject(printed)
	}
	text, measured := printed.text(), map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		pattern, err := regexp.Compile(patterns[name])
		if err != nil {
			return nil, fmt.Errorf("service.metrics.%s: %w", name, err)
		}
		found := pattern.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return nil, fmt.Errorf("service.metrics.%s: nothing that the load printed matches %q; its last line: %.200q", name, patterns[name], printed.last(1))
		}
		number := found[len(found)-1][1]
		if measured[name], err = strconv.ParseFloat(number, 64); err != nil && !math.IsInf(measured[name], 0) {
			return nil, fmt.Errorf("service.metrics.%s: %q finds %q, which is no number: put the group around the number alone", name, patterns[name], number)
		}
	}
	return measured, nil
}

func readObject(printed *tail) (map[string]float64, error) {
	line, measured := printed.last(1), map[string]float64{}
	var members map[string]any
	err := json.Unmarshal([]byte(line), &members)
	for name, member := range members {
		if value, is := member.(float64); is && name != "epoch" {
			measured[name] = value
		}
	}
	if err != nil || len(measured) == 0 {
		return nil, fmt.Errorf("the load's last line is no JSON object with numbers: %.200q; print one such as {\"p99_ms\": 12.5}, or give service.metrics", line)
	}
	return measured, nil
}
