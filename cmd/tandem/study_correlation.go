package main

import (
	"fmt"
	"io"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// printCorrelations prints how far each rung's ranking holds at the next one,
// one line for each pair of neighbours that have trials in common.
func printCorrelations(out io.Writer, answer protocol.Correlations) {
	for _, one := range answer.Rungs {
		if one.To != one.From+1 {
			continue
		}
		fmt.Fprintf(out, "Rung %d ranks as rung %d does: correlation %.2f (95%%: %.2f to %.2f) among the %s measured at both; among all %d an estimated %.2f\n",
			one.From, one.To, one.Spearman, one.Low, one.High, format.Count(one.Trials, "trial"), one.Below, one.Corrected)
	}
}
