package broker_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// The key goes to a machine with the GPUs that it was asked to show, and to none whose GPUs
// are missing, replaced, in another order, or others than the policy allows. Each outcome is
// a line of the log.
func TestTheKeyGoesOnlyToMachinesWithTheirGPUs(t *testing.T) {
	for _, tee := range []string{evidence.SNP, evidence.TDX} {
		t.Run(tee, func(t *testing.T) { gpuRefusals(t, tee) })
	}
}

func gpuRefusals(t *testing.T, tee string) {
	rules, err := policy.Parse([]byte(strings.NewReplacer(`"tee": {`, `"gpu": {"required": true, "arch": ["hopper"], "rim": {"driver": ["550.*"], "vbios": ["96.*"], "measurements": {"9": ["09`+zero48[2:]+`"]}}}, "tee": {`,
		`"total": 3`, `"total": 50`, `"per_hour": 5`, `"per_hour": 50`).Replace(rules)))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	one, m := startedWith(t, broker.Options{Folder: folder, Now: clock().Now, Policy: rules})
	m.tee = tee
	m.cards = []*evidencetest.Card{m.nvidia.Card(t), m.nvidia.Card(t)}
	var before asked
	changed := func(change func(*evidencetest.Card)) func(*machine) {
		return func(m *machine) {
			card := *m.cards[1]
			change(&card)
			m.cards = []*evidencetest.Card{m.cards[0], &card}
		}
	}
	want := map[string]int{}
	for i, test := range []struct {
		code   string
		before func(*machine)
		change func(*asked)
	}{
		{code: ""},
		{code: "", before: func(m *machine) { m.cards = m.cards[:1] }, change: func(a *asked) { before = *a }},
		{code: "gpu_missing", before: func(m *machine) { m.cards = nil }},
		{code: "gpu_devtools", before: changed(func(c *evidencetest.Card) { c.DevTools = true })},
		{code: "gpu_devtools", before: changed(func(c *evidencetest.Card) { c.Feature = 2 })},
		{code: "gpu_rim", before: changed(func(c *evidencetest.Card) { c.Driver = "551.1" })},
		{code: "gpu_rim", before: changed(func(c *evidencetest.Card) { c.VBIOS[3] = 1 })},
		{code: "gpu_rim", before: changed(func(c *evidencetest.Card) { c.Measurements[9][0] = 1 })},
		{code: "gpu_not_bound", change: func(a *asked) { a.answer.Evidence.GPU = nil }},
		{code: "gpu_not_bound", change: func(a *asked) { a.answer.Evidence.GPU = a.answer.Evidence.GPU[:1] }},
		{code: "gpu_not_bound", change: func(a *asked) { slices.Reverse(a.answer.Evidence.GPU) }},
		{code: "gpu_not_bound", change: func(a *asked) { a.answer.Evidence.GPU[0] = before.answer.Evidence.GPU[0] }},
		{code: "gpu_not_bound", change: func(a *asked) { // the nonce is right, the GPU another machine's
			a.answer.Evidence.GPU[1] = m.nvidia.Card(t).Shows(t, release.GPUNonce(m.request.Data(a.answer.Nonce, a.answer.Key), 1))
		}},
		{code: "gpu_not_bound", change: func(a *asked) { a.answer.Evidence.GPU[1].DevTools = true }},
		{code: "gpu_not_bound", before: func(m *machine) { m.cards[1] = m.cards[0] }},                                                          // one GPU answers for two
		{code: "gpu_not_bound", before: func(m *machine) { m.cards = m.cards[:1] }, change: func(a *asked) { replay(m, a, before) }},           // of another request, which the machine's own processor signs
		{code: "wrong_binding", before: func(m *machine) { m.cards = nil }, change: func(a *asked) { a.answer.Evidence = m.show([64]byte{}) }}, // another's report
		{code: "bad_signature", change: func(a *asked) { a.answer.Evidence.GPU[0].Report[200] ^= 1 }},
		{code: "collateral_stale", change: func(a *asked) { delete(a.answer.Evidence.Collateral, evidence.GPURevoked) }},
		{code: "revoked", change: func(a *asked) {
			maps.Copy(a.answer.Evidence.Collateral, m.nvidia.Collateral(t, evidencetest.Now, true))
		}},
	} {
		tried := *m
		tried.cards = slices.Clone(m.cards)
		if test.before != nil {
			test.before(&tried)
		}
		got, code, err := tried.get(func(a *asked) {
			maps.Copy(a.answer.Evidence.Collateral, m.nvidia.Collateral(t, evidencetest.Now, false))
			if test.change != nil {
				test.change(a)
			}
		})
		if want[test.code]++; err != nil || code != test.code || (got == key) != (code == "") {
			t.Errorf("%d, %q: %q, %q, %v", i, test.code, got, code, err)
		}
	}
	codes, seen := map[string]int{}, 0
	if _, _, err := broker.ReadLog(folder, one.Public(), func(_ broker.Line, result release.Result) {
		codes[result.Code]++
		if list := result.GPUs; result.Code == "" {
			seen += len(list)
			if len(list) == 0 || list[0] != "hopper, driver 550.90.07, VBIOS 96.00.9f.00.01" || !result.Affirms() {
				t.Errorf("a result names the GPUs %v", list)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(codes, want) || seen != 3 {
		t.Errorf("the log has %v and %d GPUs, not %v", codes, seen, want)
	}
}

// replay shows the GPUs of an earlier request, bound by a report of this one.
func replay(m *machine, a *asked, before asked) {
	a.answer.Evidence = m.show(release.Bind(m.request.Data(a.answer.Nonce, a.answer.Key), before.answer.Evidence.Digest()))
	a.answer.Evidence.GPU = before.answer.Evidence.GPU
}
