package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

func measured(t *testing.T) []grid {
	t.Helper()
	if os.Getenv("TANDEM_DATA") == "" {
		t.Setenv("TANDEM_DATA", filepath.Join("..", "..", "..", "..", "shared", "data"))
	}
	grids, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(grids) == 0 {
		t.Skip("the measured grids of a TX2 are not here: set TANDEM_DATA to the folder with jetson_tx2_grid")
	}
	return grids
}

func TestTheDefaultIsNearTheBestOfMeasuredGrids(t *testing.T) {
	grids := measured(t)
	for _, metric := range []tuning.Metric{tuning.Latency, tuning.Energy} {
		_, five, err := needed(grids, metric, tuning.Settings{MaxEvaluations: 120}, 4)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(five)
		if median, most := five[len(five)/2], five[len(five)-1]; median > 40 || math.IsInf(most, 1) {
			t.Errorf("%s: within 5 %% after %v configurations of 768", metric, five)
		}
	}
}

func TestTheFastestIsNotTheMostEconomical(t *testing.T) {
	for _, g := range measured(t) {
		fast, err := g.best(tuning.Latency)
		if err != nil {
			t.Fatal(err)
		}
		thrifty, err := g.best(tuning.Energy)
		if err != nil || fast.Configuration == thrifty.Configuration || fast.value(tuning.Energy) < 2*thrifty.value(tuning.Energy) {
			t.Errorf("%s: fastest %s, most economical %s, %v", g.name, fast, thrifty, err)
		}
	}
}

func TestReportOfAGrid(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TANDEM_DATA", folder)
	var out bytes.Buffer
	if err := run(&out, 1, 10, []string{"random"}); err != nil || !strings.Contains(out.String(), "nothing to do") {
		t.Errorf("without data: %v %s", err, out.String())
	}
	if err := os.Mkdir(filepath.Join(folder, "jetson_tx2_grid"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "core0_status,core1_status,core2_status,core3_status,core_freq,gpu_freq,emc_freq,inference_time,power_consumption\n" +
		"1,0,0,0,1000000,5e8,1e9,2,10\n1,0,0,0,2000000,5e8,1e9,1,30\n"
	path := filepath.Join(folder, "jetson_tx2_grid", "tx2_sampled_output_small.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	err := run(&out, 2, 10, []string{"random"})
	for _, want := range []string{"small", "1 cores 2.00 GHz", "1 cores 1.00 GHz", "+200.0 %", "+100.0 %", "time", "energy column"} {
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %q is missing in\n%s", err, want, out.String())
		}
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "emc_freq", "x")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(&out, 1, 10, []string{"random"}); err == nil || !strings.Contains(err.Error(), "no column emc_freq") {
		t.Errorf("%v", err)
	}
}
