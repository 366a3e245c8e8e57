package study_test

import (
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/study/access"
)

// measureAll has the board measure until there is nothing left; by another provider a batch
// takes so many times as long as on the CPU, and fails if that is 0. It returns how many
// settings it was asked for by another one.
func measureAll(t *testing.T, w *world, ask emu.BoardAsk, factor float64) (others int) {
	t.Helper()
	ctx := access.WithCaller(w.ctx, access.Nobody())
	for range 40 {
		reply, err := w.service.AskBoard(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Order == nil {
			return others
		}
		sent := measured(ask, reply.Order, 0.003)
		for i, cell := range reply.Order.Cells {
			if sent.Provider = cell.Provider; cell.Provider == "" {
				continue
			}
			others++
			run := &sent.Runs[i]
			run.Provider = cell.Provider
			for _, seconds := range []*float64{&run.Seconds, &run.Low, &run.High, &run.P90, &run.P99} {
				*seconds *= factor
			}
		}
		if sent.Provider != "" && factor == 0 {
			sent.Runs, sent.Failure = nil, "it knows an operator wrongly"
		}
		if _, err := w.service.ReportBoard(ctx, sent); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the board is asked without end")
	return 0
}

// An execution provider is recommended where a board measured that it is faster: not where
// the board cannot use it, or cannot any more, and not unless the study asks for it.
func TestABoardsProvidersAreCompared(t *testing.T) {
	for name, one := range map[string]struct {
		section string
		has     []string
		factor  float64
		orders  bool
		want    string // the recommended one
		why     string // that the other is not
	}{
		"faster":       {", providers: [openvino]", []string{emu.OpenVINO}, 0.5, true, emu.OpenVINO, "openvino is better"},
		"of all":       {", providers: auto", []string{emu.OpenVINO}, 0.5, true, emu.OpenVINO, "openvino is better"},
		"slower":       {", providers: [openvino]", []string{emu.OpenVINO}, 2, true, emu.CPU, "0.5 times as good as that of cpu"},
		"fails":        {", providers: [openvino]", []string{emu.OpenVINO}, 0, true, emu.CPU, "estimates do not rank execution providers"},
		"not there":    {", providers: [openvino]", nil, 0.5, false, emu.CPU, "no machine of the device says that its ONNX Runtime can use openvino"},
		"not asked":    {"", []string{emu.OpenVINO}, 0.5, false, "", ""},
		"only the CPU": {", providers: cpu", []string{emu.OpenVINO}, 0.5, false, "", ""},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			edgeStudy(w, "[raspberry-pi-4]"+one.section)
			ask := askFor("kitchen", "raspberry-pi-4")
			ask.Site.Providers = one.has
			trained(t, w, w.box(false), 8)
			if orders := measureAll(t, w, ask, one.factor); (orders > 0) != one.orders || orders > deployment.MostMeasured {
				t.Errorf("%d settings by another provider", orders)
			}
			checkProvider(t, w, one.want, one.why)
			if one.want != emu.OpenVINO {
				return
			}
			if got, want := 1e3*float64(trialsOf(t, w, "edge")[0].Inference.LatencySeconds), 1e3*0.5*(1e-4+0.003/4); got < 0.999*want || got > 1.001*want {
				t.Errorf("the trial's latency is %v ms, want %v", got, want)
			}
			w.start()
			checkProvider(t, w, one.want, one.why)
			ask.Site.Providers = nil // the board's runtime was replaced
			measureAll(t, w, ask, one.factor)
			checkProvider(t, w, emu.CPU, "no machine of the device says")
		}))
	}
}

// checkProvider looks at what is recommended, and what its program is.
func checkProvider(t *testing.T, w *world, want, why string) {
	t.Helper()
	answer, err := w.service.Recommendation(w.ctx, "edge")
	if err != nil || len(answer.Deployments) != 1 {
		t.Fatal(answer.Deployments, err)
	}
	got := answer.Deployments[0]
	var text strings.Builder
	for _, each := range got.Precisions {
		text.WriteString(each.String() + "\n")
	}
	if got.Configuration.Provider != want || got.Estimated() || !strings.Contains(text.String(), why) || (len(got.Precisions) == 2) != (want != "") {
		t.Errorf("it is %q by %q, want %q: %s", got.Configuration.Provider, got.Method, want, &text)
	}
	if by := want == emu.OpenVINO; strings.Contains(got.Code, "OpenVINOExecutionProvider") != by || (got.Package() == "onnxruntime-openvino") != by {
		t.Errorf("with %s its program is\n%s", want, got.Code)
	}
}
