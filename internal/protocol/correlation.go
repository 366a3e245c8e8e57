package protocol

// Correlations says how far each rung's ranking of trials can be trusted.
type Correlations struct {
	Study string `json:"study"`
	// Method names how it was measured, with its papers.
	Method string `json:"method"`
	// Rungs has each rung against the next one, and then against the top one,
	// the cheapest first; without those that have too few trials in common.
	Rungs []RungCorrelation `json:"rungs"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// RungCorrelation compares the first objective's values of trials at two rungs:
// 1 if both rank the trials alike, 0 if one says nothing of the other.
type RungCorrelation struct {
	From   int `json:"from" doc:"the lower rung"`
	To     int `json:"to" doc:"the higher rung"`
	Trials int `json:"trials" doc:"trials measured at both"`
	Below  int `json:"below" doc:"trials measured at the lower rung"`
	// Spearman is what is seen among the trials measured at both, mostly the
	// best of the lower rung; its 95% interval is Low to High.
	Spearman float64 `json:"spearman" doc:"rank correlation among the trials measured at both"`
	Low      float64 `json:"low" doc:"lower end of its 95% confidence interval"`
	High     float64 `json:"high" doc:"upper end of its 95% confidence interval"`
	// Corrected and its ends estimate the same for all trials of the lower rung.
	Corrected     float64 `json:"corrected" doc:"an estimate of the rank correlation among all trials of the lower rung"`
	CorrectedLow  float64 `json:"corrected_low" doc:"the lower end, corrected likewise"`
	CorrectedHigh float64 `json:"corrected_high" doc:"the upper end, corrected likewise"`
}
