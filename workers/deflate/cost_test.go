package deflate_test

import (
	"testing"

	"github.com/tandem-tune/tandem/workers/deflate"
)

// BenchmarkADecision is what the server does every five seconds: a choice in
// steps of 1/20 for two classes that come in bursts, with limits of the mean and of
// 95%, and with a sprint whose timeout is chosen.
func BenchmarkADecision(b *testing.B) {
	low, _ := deflate.Fit(30, 0.3)
	high, _ := deflate.Fit(10, 1.5)
	setting := deflate.Setting{
		Arrivals: faster(bursty(0.1), 0.5), Slots: 8, Seconds: 3600, Account: deflate.Account{Joules: 22000, Watts: 20},
		Demands: []deflate.Demand{
			{Service: lessOf(low), Loss: func(drop float64) float64 { return drop }, MostLoss: 0.9},
			{Service: lessOf(high), MeanSeconds: 11, TailSeconds: 30, Sprint: deflate.Sprint{Speed: 1.4, Watts: 90}},
		},
	}
	for b.Loop() {
		choice, err := deflate.Choose(setting, 20)
		if err != nil && err != deflate.ErrNoChoice { //nolint:errorlint // that very one
			b.Fatal(err)
		}
		b.ReportMetric(choice.Drop[0], "drop")
	}
}

// lessOf takes as much less as is left out.
func lessOf(service deflate.Phases) func(drop float64) ([]deflate.Phases, error) {
	return func(drop float64) ([]deflate.Phases, error) {
		return []deflate.Phases{service.Sprinted(1 / (1 - drop))}, nil
	}
}
