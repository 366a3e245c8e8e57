package poolcmd

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestQuotasInWords(t *testing.T) {
	t.Parallel()
	for want, quota := range map[string]*protocol.Quota{
		"no quota": nil,
		"no bound": {},
		"1 trial at once, 1 GPU at once, 1 GPU-hour a day, weight 2":                        {Trials: 1, GPUs: 1, GPUSecondsADay: 3600, Weight: 2},
		"8 trials at once, 4 GPUs at once, 0.5 GPU-hours a day, 1e+06 J a day, may preempt": {Trials: 8, GPUs: 4, GPUSecondsADay: 1800, JoulesADay: 1e6, Preempt: true},
	} {
		if got := shownQuota(quota); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuotasThatAreNoBoundNameTheirFlag(t *testing.T) {
	t.Parallel()
	for flag, c := range map[string]struct {
		quota protocol.Quota
		hours float64
	}{
		"--trials (-1)":           {protocol.Quota{Trials: -1}, 0},
		"--gpus (-2)":             {protocol.Quota{GPUs: -2}, 0},
		"--gpu-hours-a-day (NaN)": {protocol.Quota{}, math.NaN()},
		"--joules-a-day (+Inf)":   {protocol.Quota{JoulesADay: math.Inf(1)}, 0},
		"--weight (NaN)":          {protocol.Quota{Weight: math.NaN()}, 0},
	} {
		if err := checkQuota(c.quota, c.hours, 0); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v, want %s in it", err, flag)
		}
	}
	if err := checkQuota(protocol.Quota{Trials: 8, Weight: 2}, 24, 8); err != nil {
		t.Error(err)
	}
}
