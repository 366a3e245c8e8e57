package wording_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/wording"
)

func TestQuantitiesInWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		wording.Size(0): "0 B", wording.Size(1536): "1.5 KiB", wording.Size(3 << 40): "3 TiB",
		wording.Seconds(0.25):                                    "0.2s",
		wording.Seconds(59.4):                                    "59s",
		wording.Seconds(61):                                      "1m01s",
		wording.Seconds(7_325):                                   "2h02m",
		wording.Number(0.12346):                                  "0.12346",
		wording.Number(trial.Float(math.NaN())):                  "NaN",
		wording.Value(space.Int(123456789)):                      "123456789",
		wording.Value(space.Float(1.0 / 3)):                      "0.33333",
		wording.Energy(trial.Energy{}):                           "energy not known",
		wording.Energy(trial.Energy{Joules: 12, Method: "rapl"}): "12 J",
		wording.Energy(trial.Energy{Joules: 12_345, Method: "estimate: 15 W a core"}):                               "12.3 kJ (estimate)",
		wording.Budget(budget.Budget{Epochs: 3, DataFraction: 0.5}):                                                 "3 epochs, 50% of data",
		wording.Budget(budget.Budget{Seconds: 90}):                                                                  "1m30s of training",
		wording.Count(1, "trial"):                                                                                   "1 trial",
		wording.Count(0, "trial"):                                                                                   "0 trials",
		wording.States(map[trial.State]int{trial.Running: 2, trial.Failed: 1, trial.Lost: 0}):                       "2 running, 1 failed",
		wording.States(nil):                                                                                         "no trials yet",
		wording.Parameters(space.Configuration{"b": space.Bool(true), "a": space.Int(1)}):                           "a=1 b=true",
		wording.Plain("abc\u202edef\u2066\u2067\u2068\u2069\u200e\u200f\u061c"):                                     `abc\u202edef\u2066\u2067\u2068\u2069\u200e\u200f\u061c`,
		wording.Plain("\u200b\ufeff\u00ad\u2028\u3164\U000e0041"):                                                   `\u200b\ufeff\u00ad\u2028\u3164\udb40\udc41`,
		wording.Plain("模型 عربي \u0600 e\u0301 é\u00a0⚠\ufe0f \xff"):                                                 "模型 عربي \u0600 e\u0301 é\u00a0⚠\ufe0f \ufffd",
		wording.JSON("{\"a\": \"x\u202e\U000e0041 é\"}\n"):                                                          `{"a": "x\u202e\udb40\udc41 é"}` + "\n",
		wording.Lines("a\u202eb\n\tc\x1b[2J\n"):                                                                     "a\\u202eb\n c[2J\n",
		wording.Plain("a\x1b[31mred\x1b[0m\nb"):                                                                     "a[31mred[0m b",
		wording.BestValue(protocol.Best{Value: 0.5, Estimated: true}):                                               "0.5 (estimate)",
		wording.Mean(protocol.Repeated{Mean: []trial.Float{0.5}}, 0):                                                "0.5",
		wording.Mean(protocol.Repeated{Results: 3, Mean: []trial.Float{2}, StandardErrors: []trial.Float{0.01}}, 0): "2 ± 0.01 (mean of 3)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
