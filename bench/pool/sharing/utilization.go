package sharing

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// utilizations judges the predictions of utilization and memory on recorded
// profiles, with other seeds.
func utilizations(path string, runs int) error {
	r, err := readRecording(path)
	if err != nil {
		return err
	}
	var samples []utilization.Sample
	families := map[string]bool{}
	var shares []float64
	for _, one := range r.Profiles {
		samples, families[one.Family], shares = append(samples, one.Sample), true, append(shares, 100*one.Utilization)
	}
	slices.Sort(shares)
	if len(shares) == 0 {
		return fmt.Errorf("%s has no profiles", path)
	}
	fmt.Printf("%s: %d profiles of %d families, recorded %s on %d cores (%s, PyTorch %s, load before %.2f)\n", path, len(samples), len(families), r.Recorded, r.Machine.Cores, r.Machine.Processor, r.Machine.Torch, r.Machine.Load)
	fmt.Printf("utilization is the %s: %.1f%% (%.1f to %.1f)\n\n", r.Resource, shares[len(shares)/2], shares[0], shares[len(shares)-1])
	fmt.Println("| | split | RMSLE of the utilization, % | RMSLE of the memory, MB | under by more than a tenth | within the band |\n|---|---|---|---|---|---|")
	for _, method := range []utilization.Method{utilization.Process, utilization.Mean} {
		for _, by := range []string{bySample, byFamily} {
			if err := judge(samples, method, by, runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge prints a line: the median, smallest and largest of some seeds.
func judge(samples []utilization.Sample, method utilization.Method, by string, runs int) error {
	var columns [4][]float64
	for run := range runs {
		v, err := hide(samples, method, by, uint64(run)) //nolint:gosec // a small number
		if err != nil {
			return err
		}
		for i, value := range v.columns() {
			columns[i] = append(columns[i], value)
		}
	}
	fmt.Printf("| %s | by %s | %s | %s | %s%% | %s%% |\n", method, by, spread(columns[0], 3), spread(columns[1], 3), spread(columns[2], 0), spread(columns[3], 0))
	return nil
}

// spread is the median with the smallest and the largest.
func spread(values []float64, digits int) string {
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, sorted[len(sorted)/2], digits, sorted[0], digits, sorted[len(sorted)-1])
}
