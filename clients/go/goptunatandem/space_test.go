package goptunatandem

import (
	"slices"
	"testing"

	"github.com/c-bata/goptuna"
)

// Trials that look at the space find a condition beside choices that have none, however
// the draws fall.
func TestAConditionIsFound(t *testing.T) {
	choices := map[string]any{
		"kind":   goptuna.CategoricalDistribution{Choices: []string{"sgd", "adam", "none"}},
		"layers": goptuna.IntUniformDistribution{Low: 1, High: 3},
		"width":  goptuna.StepIntUniformDistribution{Low: 16, High: 70, Step: 16},
	}
	for range 500 {
		var looked exploration
		var trials []asked
		for !shapeOf(trials).settled() {
			one := asked{map[string]any{}, map[string]float64{}}
			for name, distribution := range choices {
				count, _ := few(distribution)
				one.distributions[name], one.values[name] = distribution, at(distribution, looked.choose(name, count))
			}
			if one.values["kind"] == 0 {
				one.distributions["momentum"], one.values["momentum"] = goptuna.UniformDistribution{Low: 0, High: 1}, 0.5
			}
			trials = append(trials, one)
			looked.learn(one)
			looked.doubt(shapeOf(trials))
		}
		found := shapeOf(trials).explanations("momentum")
		if len(found) != 1 || found[0].name != "kind" || !slices.Equal(found[0].places, []int{0}) || len(trials) > enoughTrials {
			t.Fatalf("after %d trials: %+v", len(trials), found)
		}
	}
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	for _, one := range []struct {
		distribution any
		values       []float64 // goptuna's
		others       []any     // the server's, which do not fit
	}{
		{goptuna.UniformDistribution{Low: -1, High: 1}, []float64{-1, 0.3, 1}, []any{1.5, "1", nil}},
		{goptuna.LogUniformDistribution{Low: 1e-3, High: 1}, []float64{1e-3, 1}, []any{0.0}},
		{goptuna.DiscreteUniformDistribution{Low: 0.1, High: 0.9, Q: 0.2}, []float64{0.1, 0.5, 0.9}, []any{0.2, 1.1}},
		{goptuna.IntUniformDistribution{Low: -2, High: 2}, []float64{-2, 0, 2}, []any{int64(3), 0.5}},
		{goptuna.StepIntUniformDistribution{Low: 16, High: 64, Step: 16}, []float64{16, 64}, []any{int64(24), int64(80)}},
		{goptuna.CategoricalDistribution{Choices: []string{"a", "1", ""}}, []float64{0, 1, 2}, []any{"b", int64(1)}},
	} {
		for _, value := range one.values {
			sent := toServer(one.distribution, value)
			if whole, is := sent.(int); is {
				sent = int64(whole) // as it comes back
			}
			if back, fits := fromServer(one.distribution, sent); !fits || back != value {
				t.Errorf("%#v: %v went as %v and came back as %v, %v", one.distribution, value, sent, back, fits)
			}
		}
		for _, other := range one.others {
			if back, fits := fromServer(one.distribution, other); fits {
				t.Errorf("%#v takes %v as %v", one.distribution, other, back)
			}
		}
	}
}
