package definition_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// What a worker tells is what a server takes, in as few values as was declared.
func TestMetricsAreToldInSteps(t *testing.T) {
	for _, test := range []struct{ told, said, want float64 }{
		{0.001, 0.91234, 0.912}, {0.1, 0.3000001, 0.3}, {0.1, 7, 1}, {0.1, math.Inf(-1), 0}, {0.1, -1e-9, 0}, {0.07, 0.2, 0.21},
	} {
		if got := (definition.Told{High: 1, Round: test.told}).Of(trial.Float(test.said)); float64(got) != test.want || math.Signbit(float64(got)) {
			t.Errorf("%v in steps of %v is %v", test.said, test.told, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		span := rapid.Float64Range(1e-3, 1e6).Draw(t, "span")
		one := definition.Told{Low: low, High: low + span, Round: max(span/rapid.Float64Range(1, 1e6).Draw(t, "steps"), max(math.Abs(low), math.Abs(low+span))/definition.MostSteps)}
		c := &definition.Confidential{Metrics: map[string]definition.Told{"a": one}}
		said := trial.Float(rapid.Float64().Draw(t, "said"))
		told, err := c.Rounded(map[string]trial.Float{"a": said})
		if err != nil || len(c.Faults(told)) > 0 {
			t.Fatalf("%v is told as %v: %v, %v", said, told, err, c.Faults(told))
		}
		if v := float64(told["a"]); v < low-one.Round || v > low+span+one.Round {
			t.Fatalf("%v is told as %v", said, v)
		}
	})
}

func TestOnlyDeclaredMetricsAreTold(t *testing.T) {
	c := &definition.Confidential{Log: definition.LogTail, Metrics: map[string]definition.Told{"a": {High: 1, Round: 0.5}}}
	if _, err := c.Rounded(map[string]trial.Float{"a": 0, "b": 0}); err == nil {
		t.Error("another metric is told")
	}
	for _, metrics := range []map[string]trial.Float{{"b": 0}, {"a": 0.4}, {"a": trial.Float(math.Inf(1))}} {
		if len(c.Faults(metrics)) != 1 {
			t.Errorf("%v is taken", metrics)
		}
	}
	if len(c.Faults(map[string]trial.Float{"a": trial.Float(math.NaN())})) > 0 || c.Bits() != math.Log2(5) { // 0, 0.5, 1, NaN, and nothing
		t.Errorf("NaN is refused, or 5 things to say are %v bits", c.Bits())
	}
	var none *definition.Confidential
	if same, err := none.Rounded(map[string]trial.Float{"b": 0.123}); err != nil || same["b"] != 0.123 || none.Faults(same) != nil {
		t.Errorf("a study that is not confidential: %v, %v", same, err)
	}
	const whole = "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n"
	for text, keeps := range map[string]bool{whole: true, "x\n" + whole: false, whole + "x": false, "Traceback": false, "": false} {
		if c.Keeps(text) != keeps {
			t.Errorf("%q", text)
		}
	}
	if c.Log = definition.LogNone; c.Keeps(whole) {
		t.Error("log: none keeps something")
	}
}
