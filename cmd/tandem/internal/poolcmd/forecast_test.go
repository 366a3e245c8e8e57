package poolcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// told is a forecast with everything that there can be.
func told() protocol.PoolForecast {
	at, loss := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), 0.25
	answer := protocol.PoolForecast{
		Unit: protocol.DemandGPUs, Now: at, Recorded: 400, Method: "gru", Quantiles: forecast.Quantiles(),
		Minutes: []protocol.DemandMinute{{At: at.Add(-time.Minute), Running: 3, Waiting: 1.5, Capacity: 8}},
		Gaps:    []protocol.DemandGap{{Begin: at.Add(-time.Hour), End: at.Add(-50 * time.Minute)}},
		Users:   []protocol.DemandOfUser{{Owner: "alice\x1b", Running: 3, Waiting: 1.5}},
		Learned: &protocol.ForecastLearned{At: at, Seconds: 61, Minutes: 320, JudgedOn: 80, Tried: []protocol.ForecastTried{{Method: "gru", Pinball: &loss}, {Method: "persistence", Reason: "needs 30 minutes"}}},
	}
	answer.Calibration = &protocol.ForecastCalibration{Minutes: 300, Trust: "optimistic"}
	for range answer.Quantiles {
		answer.Calibration.CoveredLeast, answer.Calibration.CoveredMost = append(answer.Calibration.CoveredLeast, 0.8), append(answer.Calibration.CoveredMost, 0.85)
		answer.Calibration.Covered, answer.Calibration.Verdicts = append(answer.Calibration.Covered, 0.875), append(answer.Calibration.Verdicts, "too low")
	}
	for ahead := range forecast.Horizon {
		row := make([]float64, len(answer.Quantiles))
		for i := range row {
			row[i] = float64(ahead + i)
		}
		answer.Ahead = append(answer.Ahead, protocol.DemandAhead{At: at.Add(time.Duration(ahead) * time.Minute), Demand: row})
	}
	return answer
}

func TestTheForecastIsPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printForecast(&out, told()); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"3 GPUs held, 1.5 waited for, 8 there", "alice", "nobody looked from", "Estimate by gru", "AT 95%", "from 320 minutes in 1m01s", "gru: 0.250", "persistence: needs 30", "300 minutes had been foretold", "80.0% to 85.0%", "too low", "above what was told with 90% in 12.5% of them",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name reaches the terminal as it is")
	}
	for trust, words := range map[string]string{"good": "all quantiles hold", "cautious": "less is saved", "uneven": "lower ones do not", "unsure": "too few"} {
		one := told()
		one.Calibration.Trust = trust
		if said := shownTrust(one); !strings.Contains(said, words) {
			t.Errorf("%s: %s", trust, said)
		}
	}
	out.Reset()
	if err := printForecast(&out, protocol.PoolForecast{Reason: "needs 30 minutes"}); err != nil || !strings.Contains(out.String(), "needs 30 minutes") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestAdviceIsPrinted(t *testing.T) {
	t.Parallel()
	advice := protocol.PoolAdvice{
		Unit: protocol.DemandGPUs, Performance: 0.98, Quantile: 0.9, Reached: true, Wanted: 5, Awake: 8, Total: 12, Missing: 1, Reason: "because", Power: protocol.PowerAssumption{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1},
		Settings:   []protocol.KnobSetting{{Quantile: 0.5, Served: 0.9, Met: 0.5, Saved: 0.3, Wanted: 4}, {Quantile: 0.9, Served: 0.985, Met: 0.9, Saved: 0.25, Wanted: 5}},
		Workers:    []protocol.WorkerAdvice{{ID: "worker-a", Name: "a", Capacity: 4, Action: "drain", Reason: "it runs nothing"}},
		Correction: &protocol.KnobCorrection{Aim: 0.9851, Minutes: 80, Served: 0.9766, Debt: 50},
		Saved:      &protocol.PoolSaving{Minutes: 90, Joules: 5e5, Share: 0.125, Served: 0.99},
	}
	var out bytes.Buffer
	if err := printAdvice(&out, advice); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"8 of 12 GPUs are awake; 5 should be, so that 98% of the demand finds one (estimate): because", "1 of them no known worker has", "drain", "98.50%", "<- now", "90 minutes", "500 kJ, 12.5%", "99.0% of the demand",
		"Held against the 80 minutes that were compared, it would have served 97.66% of the demand; asked for 98%, it now aims at 98.51% (estimates)",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
}
