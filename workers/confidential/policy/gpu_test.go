package policy_test

import (
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-sev-guest/verify/testdata"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

// withGPUs are the rules with those for the GPUs that evidencetest makes.
var withGPUs = strings.Replace(rules, "tee:\n", `gpu:
  required: true
  arch: [hopper]
  rim:
    driver: ["550.*"]
    vbios: [96.00.9F.00.01]
    measurements: {9: [09`+zero48[2:]+`], 28: [`+zero48+`]}
tee:
`, 1)

// Each rule for GPUs refuses what breaks it. A policy without any takes machines with GPUs
// and without, and has the id that it had before there were such rules.
func TestGPUsAreAppraised(t *testing.T) {
	amd, hopper, blackwell := evidencetest.NewAMD(t, "Genoa"), evidencetest.NewNVIDIA(t, "GH100", now), evidencetest.NewNVIDIA(t, "GB100", now)
	type cards = []func(*evidencetest.Card)
	good := func(*evidencetest.Card) {}
	for name, one := range map[string]struct {
		change [2]string
		cards  cards
		maker  *evidencetest.NVIDIA
		lists  int // days since; -1: none
		code   string
	}{
		"a good GPU":             {cards: cards{good}},
		"two":                    {cards: cards{good, good}},
		"none":                   {code: "gpu_missing"},
		"none, and none needed":  {change: [2]string{"required: true", "required: false"}},
		"a bad one, none needed": {change: [2]string{"required: true", "required: false"}, cards: cards{func(c *evidencetest.Card) { c.DevTools = true }}, code: "gpu_devtools"},
		"a second for tools":     {cards: cards{good, func(c *evidencetest.Card) { c.DevTools = true }}, code: "gpu_devtools"},
		"for tools, allowed":     {change: [2]string{"arch:", "devtools: true\n  arch:"}, cards: cards{func(c *evidencetest.Card) { c.DevTools = true }}},
		"open links":             {change: [2]string{"arch:", "devtools: true\n  arch:"}, cards: cards{func(c *evidencetest.Card) { c.Feature = 2 }}, code: "gpu_devtools"},
		"another driver":         {cards: cards{func(c *evidencetest.Card) { c.Driver = "5500.90" }}, code: "gpu_rim"},
		"another VBIOS":          {cards: cards{func(c *evidencetest.Card) { c.VBIOS[0] = 1 }}, code: "gpu_rim"},
		"another measurement":    {cards: cards{func(c *evidencetest.Card) { c.Measurements[9][0] = 1 }}, code: "gpu_rim"},
		"one that was none":      {cards: cards{func(c *evidencetest.Card) { c.Measurements[28][0] = 1 }}, code: "gpu_rim"},
		"one that nobody lists":  {cards: cards{func(c *evidencetest.Card) { c.Measurements[29][0] = 1 }}},
		"another, allowed":       {change: [2]string{"9: [", "9: [01" + zero48[2:] + ", "}, cards: cards{func(c *evidencetest.Card) { c.Measurements[9][0] = 1 }}},
		"another architecture":   {cards: cards{good}, maker: blackwell, code: "product_not_allowed"},
		"no lists":               {cards: cards{good}, lists: -1, code: "collateral_stale"},
		"old lists":              {cards: cards{good}, lists: 31, code: "collateral_stale"},
		"no lists, none needed":  {change: [2]string{withGPUs[strings.Index(withGPUs, "  tdx"):], "collateral_max_age: none\n"}, cards: cards{good}, lists: -1},
		"not looked at":          {change: [2]string{withGPUs, rules}, cards: cards{func(c *evidencetest.Card) { c.DevTools, c.Driver = true, "1" }}, lists: -1},
		"not looked at, none":    {change: [2]string{withGPUs, rules}},
	} {
		maker := hopper
		if one.maker != nil {
			maker = one.maker
		}
		made, roots := amd.SNP(t, evidencetest.Guest{}, [64]byte{}), amd.Roots()
		roots.NVIDIA = maker.Root()
		for i, change := range one.cards {
			card := maker.Card(t)
			change(card)
			made.GPU = append(made.GPU, card.Shows(t, [32]byte{byte(i)}))
		}
		if one.lists >= 0 {
			maps.Copy(made.Collateral, maker.Collateral(t, now.AddDate(0, 0, -one.lists), false))
		}
		claims, err := made.Verify(roots, now)
		if err != nil || !strings.Contains(withGPUs, one.change[0]) {
			t.Fatalf("%s: %v", name, err)
		}
		if err := parsed(t, strings.Replace(withGPUs, one.change[0], one.change[1], 1)).Appraise(claims, nil, now); one.code != "" && code(err) != one.code || one.code == "" && err != nil {
			t.Errorf("%s: %v, not %q", name, err, one.code)
		}
	}
	if id := parsed(t, rules).ID(); id != "e1d5d240b64b4fc896df6de2d6d1a7f81d7d7473e0bf49a4062175f8c7fba958" {
		t.Errorf("a policy without GPUs has the id %s", id)
	}
	ids := map[string]bool{parsed(t, rules).ID(): true, parsed(t, withGPUs).ID(): true}
	for _, change := range [][2]string{{"required: true", "required: false"}, {"550", "551"}, {"9F", "9e"}, {"28:", "29:"}, {", 28", ", 3: [" + zero48 + "], 28"}, {"hopper", "blackwell"}, {"hopper]", "hopper]\n  devtools: true"}} {
		ids[parsed(t, strings.Replace(withGPUs, change[0], change[1], 1)).ID()] = true
	}
	if len(ids) != 9 || parsed(t, withGPUs).ID() != parsed(t, string(parsed(t, withGPUs).Canonical())).ID() {
		t.Errorf("%d of 9 policies have an id of their own", len(ids))
	}
}

// What is learned of a real GPU allows it, and no other.
func TestRulesForGPUsAreLearned(t *testing.T) {
	roots, err := evidence.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	day := now.AddDate(-2, 0, 0)
	made := evidence.Evidence{Version: 1, TEE: evidence.SNP, Report: testdata.AttestationBytes, Certificate: testdata.VcekBytes, GPU: []evidence.GPU{evidencetest.RecordedGPU()}}
	claims, err := made.Verify(roots, day)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("30d", "none", "allow: [smt]", "allow: [smt, debug]").Replace(policy.Learned(claims, day))
	learned := parsed(t, text)
	if err := learned.Appraise(claims, nil, day); err != nil || len(learned.GPU.RIM.Measurements) != 64 || !strings.Contains(text, "28: ["+zero48+"]") {
		t.Errorf("%v: %s", err, text)
	}
	for number := range claims.GPUs[0].Measurements {
		other := claims.GPUs[0]
		other.Measurements = maps.Clone(other.Measurements)
		other.Measurements[number] = hex.EncodeToString(make([]byte, 47)) + "01"
		changed := *claims
		if changed.GPUs = []evidence.GPUClaims{other}; code(learned.Appraise(&changed, nil, day)) != "gpu_rim" {
			t.Errorf("measurement %d may be another", number)
		}
	}
}

func TestFaultsOfRulesForGPUs(t *testing.T) {
	for old, one := range map[string][2]string{
		"required: true":  {"require: true", "gpu.require (line 5): is not a field of gpu: did you mean required?"},
		"  arch":          {"  Arch", "gpu.arch (line 5): is missing"},
		"hopper":          {"ampere", "gpu.arch[0] (line 6): must be one of: blackwell, hopper (got ampere)"},
		"driver":          {"drivers", "gpu.rim.driver (line 8): is missing"},
		`"550.*"`:         {`"55?"`, "gpu.rim.driver[0] (line 8): must be one of: versions such as 580.95.05"},
		"    vbios":       {"    #", "gpu.rim.vbios (line 8): is missing"},
		"measurements: {": {"measurements: {x: [" + zero48 + "], ", "gpu.rim.measurements.x (line 10): must be a number from 0 to 127"},
		"{9: [09":         {"{9: [9", "gpu.rim.measurements.9[0] (line 10): must be one of: hashes of 96 hexadecimal digits"},
		"measurements":    {"measurement", "gpu.rim.measurements (line 8): is missing: list hashes by their numbers"},
		withGPUs[strings.Index(withGPUs, "{9"):strings.Index(withGPUs, "tee:")]:    {"all\n", "gpu.rim.measurements (line 10): must be a mapping of numbers to hashes"},
		withGPUs[strings.Index(withGPUs, "  rim"):strings.Index(withGPUs, "tee:")]: {"", "gpu.rim (line 5): is missing"},
	} {
		if !strings.Contains(withGPUs, old) {
			t.Fatalf("there is no %q", old)
		}
		if _, err := policy.Parse([]byte(strings.Replace(withGPUs, old, one[0], 1))); err == nil || !strings.Contains(err.Error(), one[1]) {
			t.Errorf("%q for %q: %v, not %q", one[0], old, err, one[1])
		}
	}
	trusted, limits, warnings := parsed(t, strings.Replace(withGPUs, "required: true", "required: false\n  devtools: true", 1)).Explain()
	all := strings.Join(append(append(trusted, limits...), warnings...), "\n")
	for _, want := range []string{"hopper, with driver 550.* and VBIOS 96.00.9f.00.01", "of which 2 measurements are as listed", "word of the measured image", "revoked a single GPU", "show no GPU get keys too", "host can look into"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
}
