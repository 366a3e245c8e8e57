package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// measured is the latency curve of the runner. The sizes take turns, so that
// what disturbs the machine disturbs all of them.
func measured(out io.Writer, with runner, sizes []int) (batching.Curve, error) {
	const rounds = 50
	seconds := make(map[int][]float64)
	for round := range rounds + 3 {
		for _, size := range sizes {
			began := time.Now()
			if err := with.infer(size); err != nil {
				return batching.Curve{}, err
			}
			if round >= 3 { // the first ones warm up
				seconds[size] = append(seconds[size], time.Since(began).Seconds())
			}
		}
	}
	var points []batching.Point
	for _, size := range sizes {
		mean, deviation := meanAndDeviation(seconds[size])
		points = append(points, batching.Point{Batch: size, Seconds: mean, Deviation: deviation})
	}
	curve, err := batching.NewCurve(points)
	if err != nil {
		return curve, err
	}
	fmt.Fprintf(out, "Latency curve, means of %d inferences:\n", rounds)
	for _, point := range points {
		fmt.Fprintf(out, "  batch %3d  %8.3f ms ± %.3f  (%.3f ms a sample)\n", point.Batch, point.Seconds*1000, point.Deviation*1000, point.Seconds*1000/float64(point.Batch))
	}
	return curve, nil
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for _, value := range values {
		deviation += (value - mean) * (value - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(deviation)
}
