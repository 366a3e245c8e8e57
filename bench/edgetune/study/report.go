package main

import (
	"fmt"
	"slices"
	"strings"
)

// printReport prints a line for each arm, and what each is to the arm that knows
// nothing of inference, within each repetition.
func printReport(all []result) {
	fmt.Println("| arm | tuning s | J (estimate) | accuracy | winner: samples/s | J a sample | ms a batch | architectures, trials |\n|---|---|---|---|---|---|---|---|")
	columns := []func(result) float64{
		func(r result) float64 { return r.Seconds }, func(r result) float64 { return r.Joules }, func(r result) float64 { return r.Accuracy },
		func(r result) float64 { return r.Throughput }, func(r result) float64 { return r.SampleJoules }, func(r result) float64 { return r.LatencyMS },
	}
	for _, one := range arms() {
		of := ofArm(all, one.name)
		if len(of) == 0 {
			continue
		}
		cells := []string{one.name}
		for _, column := range columns {
			cells = append(cells, spread(of, column))
		}
		cells = append(cells, spread(of, func(r result) float64 { return float64(r.Architectures) })+", "+spread(of, func(r result) float64 { return float64(r.Trials) }))
		fmt.Println("| " + strings.Join(cells, " | ") + " |")
	}
	base := ofArm(all, arms()[0].name)
	fmt.Println("\n| to the arm that is not emulated | tuning time | joules | accuracy, points | J a sample | samples/s |\n|---|---|---|---|---|---|")
	for _, one := range arms()[1:] {
		var time, joules, points, sample, throughput []float64
		for _, r := range ofArm(all, one.name) {
			at := slices.IndexFunc(base, func(b result) bool { return b.Repetition == r.Repetition })
			if at < 0 {
				continue
			}
			b := base[at]
			time, joules, points = append(time, r.Seconds/b.Seconds), append(joules, r.Joules/b.Joules), append(points, 100*(r.Accuracy-b.Accuracy))
			sample, throughput = append(sample, r.SampleJoules/b.SampleJoules), append(throughput, r.Throughput/b.Throughput)
		}
		if len(time) > 0 {
			fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", one.name, middle(time), middle(joules), middle(points), middle(sample), middle(throughput))
		}
	}
}

func ofArm(all []result, name string) []result {
	return slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.Arm != name })
}

func spread(all []result, column func(result) float64) string {
	var values []float64
	for _, one := range all {
		values = append(values, column(one))
	}
	return middle(values)
}

// middle is the median with the least and the largest.
func middle(values []float64) string {
	slices.Sort(values)
	half := len(values) / 2
	median := values[half]
	if len(values)%2 == 0 {
		median = (values[half-1] + values[half]) / 2
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", median, values[0], values[len(values)-1])
}
