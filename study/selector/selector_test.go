package selector_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/selector"
)

func TestAMachineSuitsByGPUsMemoryAndLabels(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	gpus := func(bytes int64, names ...string) selector.Machine {
		m := selector.Machine{GPUs: names, Labels: map[string]string{"zone": "a"}}
		for range names {
			m.GPUMemoryBytes = append(m.GPUMemoryBytes, bytes)
		}
		return m
	}
	a100, zone := gpus(40*gib, "NVIDIA A100-SXM4-40GB"), map[string]string{"zone": "a"}
	for name, test := range map[string]struct {
		wanted  selector.Selector
		machine selector.Machine
		suits   bool
	}{
		"nothing is wanted":           {selector.Selector{}, selector.Machine{}, true},
		"a short form":                {selector.Selector{GPUTypes: []string{"a100"}}, a100, true},
		"a long form":                 {selector.Selector{GPUTypes: []string{"A100 sxm4"}}, a100, true},
		"one of two":                  {selector.Selector{GPUTypes: []string{"H100", "A100"}}, a100, true},
		"the begin of a word":         {selector.Selector{GPUTypes: []string{"A10"}}, a100, false},
		"one of its GPUs is another":  {selector.Selector{GPUTypes: []string{"A100"}}, gpus(40*gib, "NVIDIA A100", "NVIDIA T4"), false},
		"no GPU":                      {selector.Selector{GPUTypes: []string{"A100"}}, selector.Machine{}, false},
		"as much as is sold":          {selector.Selector{GPUMemoryGiB: 80}, gpus(81559<<20, "NVIDIA H100 80GB HBM3"), true},
		"a smaller one":               {selector.Selector{GPUMemoryGiB: 80}, a100, false},
		"a driver that does not tell": {selector.Selector{GPUMemoryGiB: 1}, selector.Machine{GPUs: []string{"GPU"}}, false},
		"a label":                     {selector.Selector{Labels: zone}, a100, true},
		"another value":               {selector.Selector{Labels: map[string]string{"zone": "b"}}, a100, false},
		"no label":                    {selector.Selector{Labels: zone}, selector.Machine{}, false},
		"a taint":                     {selector.Selector{}, selector.Machine{Taints: []string{"spot"}}, false},
		"one that is tolerated":       {selector.Selector{Tolerates: []string{"old", "spot"}}, selector.Machine{Taints: []string{"spot"}}, true},
		"one of two is not":           {selector.Selector{Tolerates: []string{"spot"}}, selector.Machine{Taints: []string{"spot", "old"}}, false},
		"tolerance of what is not":    {selector.Selector{Tolerates: []string{"spot"}}, selector.Machine{}, true},
		"one that stays":              {selector.Selector{TimeLimitSeconds: 7200}, selector.Machine{}, true},
		"one that stays so long":      {selector.Selector{TimeLimitSeconds: 7200}, selector.Machine{Left: 2 * time.Hour}, true},
		"one that leaves":             {selector.Selector{TimeLimitSeconds: 7200}, selector.Machine{Left: 2*time.Hour - 1}, false},
		"one that leaves, for others": {selector.Selector{}, selector.Machine{Left: 1}, true},
	} {
		if got := test.wanted.Suits(test.machine); got != test.suits {
			t.Errorf("%s: %v, want %v", name, got, test.suits)
		}
	}
}

func TestLabelsAreRefusedWithTheNameAndTheValue(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 33 {
		many["x"+strings.Repeat("x", i)] = "1"
	}
	for want, labels := range map[string]map[string]string{
		"":                             {"topology.kubernetes.io/zone": "eu-1a", "ssd": "1"},
		"has 33 labels: at most 32":    many,
		`has the name "a b": it must`:  {"a b": "c"},
		`has zone="": a value must be`: {"zone": ""},
		`has zone="it's": a value`:     {"zone": "it's"},
		`has zone="xxxxx`:              {"zone": strings.Repeat("x", 64)},
	} {
		if got := selector.Wrong(labels); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%v: %q, want %q", labels, got, want)
		}
	}
}
