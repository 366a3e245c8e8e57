package format_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func TestQuantitiesInWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		format.Size(0): "0 B", format.Size(1536): "1.5 KiB", format.Size(3 << 40): "3 TiB",
		format.Seconds(0.25):                                    "0.2s",
		format.Seconds(59.4):                                    "59s",
		format.Seconds(61):                                      "1m01s",
		format.Seconds(7_325):                                   "2h02m",
		format.Number(0.12346):                                  "0.12346",
		format.Number(trial.Float(math.NaN())):                  "NaN",
		format.Value(space.Int(123456789)):                      "123456789",
		format.Value(space.Float(1.0 / 3)):                      "0.33333",
		format.Energy(trial.Energy{}):                           "energy not known",
		format.Energy(trial.Energy{Joules: 12, Method: "rapl"}): "12 J",
		format.Energy(trial.Energy{Joules: 12_345, Method: "estimate: 15 W a core"}):                               "12.3 kJ (estimate)",
		format.Budget(budget.Budget{Epochs: 3, DataFraction: 0.5}):                                                 "3 epochs, 50% of data",
		format.Budget(budget.Budget{Seconds: 90}):                                                                  "1m30s of training",
		format.Count(1, "trial"):                                                                                   "1 trial",
		format.Count(0, "trial"):                                                                                   "0 trials",
		format.States(map[trial.State]int{trial.Running: 2, trial.Failed: 1, trial.Lost: 0}, 0):                    "2 running, 1 failed",
		format.States(map[trial.State]int{trial.Completed: 5, trial.Failed: 2}, 1):                                 "5 completed, 2 failed (1 retried)",
		format.States(nil, 0):                                                                                      "no trials yet",
		format.Parameters(space.Configuration{"b": space.Bool(true), "a": space.Int(1)}):                           "a=1 b=true",
		format.Plain("abc\u202edef\u2066\u2067\u2068\u2069\u200e\u200f\u061c"):                                     `abc\u202edef\u2066\u2067\u2068\u2069\u200e\u200f\u061c`,
		format.Plain("\u200b\ufeff\u00ad\u2028\u3164\U000e0041"):                                                   `\u200b\ufeff\u00ad\u2028\u3164\udb40\udc41`,
		format.Plain("模型 عربي \u0600 e\u0301 é\u00a0⚠\ufe0f \xff"):                                                 "模型 عربي \u0600 e\u0301 é\u00a0⚠\ufe0f \ufffd",
		format.JSON("{\"a\": \"x\u202e\U000e0041 é\"}\n"):                                                          `{"a": "x\u202e\udb40\udc41 é"}` + "\n",
		format.Lines("a\u202eb\n\tc\x1b[2J\n"):                                                                     "a\\u202eb\n c[2J\n",
		format.Plain("a\x1b[31mred\x1b[0m\nb"):                                                                     "a[31mred[0m b",
		format.BestValue(protocol.Best{Value: 0.5, Estimated: true}):                                               "0.5 (estimate)",
		format.Mean(protocol.Repeated{Mean: []trial.Float{0.5}}, 0):                                                "0.5",
		format.Mean(protocol.Repeated{Results: 3, Mean: []trial.Float{2}, StandardErrors: []trial.Float{0.01}}, 0): "2 ± 0.01 (mean of 3)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
