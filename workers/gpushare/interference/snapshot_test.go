package interference_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// written is a model as a document.
func written(t testing.TB, model json.Marshaler) []byte {
	t.Helper()
	document, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func trainedNetwork(t testing.TB) *interference.Network {
	t.Helper()
	network, err := interference.Train(drawnPairs(4, 21), interference.Settings{Hidden: 3, Epochs: 2, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func trainedFactors(t testing.TB) *interference.Factors {
	t.Helper()
	factors, err := interference.TrainFactors(table(6), 5)
	if err != nil {
		t.Fatal(err)
	}
	return factors
}

func trainedLine(t testing.TB) *interference.Line {
	t.Helper()
	line, err := interference.TrainLine(drawnPairs(4, 21))
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestWhatIsWrittenPredictsTheSameBits(t *testing.T) {
	network, line := trainedNetwork(t), trainedLine(t)
	readNetwork, err := interference.ReadNetwork(written(t, network))
	if err != nil {
		t.Fatal(err)
	}
	readLine, err := interference.ReadLine(written(t, line))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(6, 6))
	for range 5 {
		a, b := drawnProfile(random), drawnProfile(random)
		for _, pair := range [][2]interference.Predictor{{network, readNetwork}, {line, readLine}} {
			before, err := pair[0].Predict(a, b)
			if err != nil {
				t.Fatal(err)
			}
			after, err := pair[1].Predict(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(before, after) {
				t.Fatalf("%T says %+v, and when it was written and read %+v", pair[0], before, after)
			}
		}
	}
	factors := trainedFactors(t)
	readFactors, err := interference.ReadFactors(written(t, factors))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range table(6) {
		before, _ := factors.Speed(one.Own, one.Other)
		if after, known := readFactors.Speed(one.Own, one.Other); !known || after != before {
			t.Fatalf("%s beside %s: %g, and when it was written and read %g", one.Own, one.Other, before, after)
		}
	}
	if again := written(t, readFactors); string(again) != string(written(t, factors)) {
		t.Errorf("the factors read back are written as %s", again)
	}
}

// readers are the three ways to read a document.
func readers() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"network": func(d []byte) error { _, err := interference.ReadNetwork(d); return err },
		"line":    func(d []byte) error { _, err := interference.ReadLine(d); return err },
		"factors": func(d []byte) error { _, err := interference.ReadFactors(d); return err },
	}
}

func TestDocumentsThatCannotBeReadSayWhy(t *testing.T) {
	good := map[string][]byte{"network": written(t, trainedNetwork(t)), "line": written(t, trainedLine(t)), "factors": written(t, trainedFactors(t))}
	for kind, read := range readers() {
		for want, change := range map[string]func(map[string]any){
			"version 2, this program version 1": func(d map[string]any) { d["version"] = 2 },
			`of the kind "other"`:               func(d map[string]any) { d["kind"] = "other" },
		} {
			if err := read(changed(t, good[kind], change)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", kind, err, want)
			}
		}
		for _, bad := range []string{"", "{", "[]", string(good[kind]) + "{}"} {
			if err := read([]byte(bad)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%s of %.20q: %v", kind, bad, err)
			}
		}
	}
	for _, one := range []struct {
		kind, want string
		change     func(map[string]any)
	}{
		{"network", "0 hidden units", func(d map[string]any) { d["hidden"] = 0 }},
		{"network", "1000000 hidden units", func(d map[string]any) { d["hidden"] = 1000000 }},
		{"network", "1 matrices", func(d map[string]any) { d["weights"] = d["weights"].([]any)[:1] }},
		{"network", "matrix 0", func(d map[string]any) { d["hidden"] = 4 }},
		{"network", "is 1e+07", func(d map[string]any) { d["weights"].([]any)[6].([]any)[0] = 1e7 }},
		{"line", "1 weights, 7", func(d map[string]any) { d["weights"] = []float64{1} }},
		{"line", "is -1e+07", func(d map[string]any) { d["weights"].([]any)[6] = -1e7 }},
		{"factors", "of 0 kinds", func(d map[string]any) { d["kinds"] = []any{} }},
		{"factors", `"1" twice`, func(d map[string]any) { d["kinds"].([]any)[0].(map[string]any)["name"] = "1" }},
		{"factors", "at most 700", func(d map[string]any) { d["mean"] = 1e3 }},
	} {
		if err := readers()[one.kind](changed(t, good[one.kind], one.change)); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %q", one.kind, err, one.want)
		}
	}
}

func changed(t *testing.T, document []byte, change func(map[string]any)) []byte {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatal(err)
	}
	change(d)
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzReadModels holds that whatever is read predicts, and is written as it was.
func FuzzReadModels(f *testing.F) {
	for _, one := range []json.Marshaler{trainedNetwork(f), trainedLine(f), trainedFactors(f)} {
		f.Add(written(f, one))
	}
	for _, one := range []string{"network", "line", "factors"} {
		f.Add(fmt.Appendf(nil, `{"kind":%q,"version":1,"hidden":1,"mean":1e308,"weights":[1e6,-1e6,1,1,1,1,1],"kinds":[{"name":""}]}`, one))
	}
	random := rand.New(rand.NewPCG(6, 6))
	a, b := drawnProfile(random), drawnProfile(random)
	f.Fuzz(func(t *testing.T, document []byte) {
		var predictors []interference.Predictor
		if network, err := interference.ReadNetwork(document); err == nil {
			predictors = append(predictors, network)
		}
		if line, err := interference.ReadLine(document); err == nil {
			predictors = append(predictors, line)
		}
		for _, one := range predictors {
			said, err := one.Predict(a, b)
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range said.Jobs {
				if !(job.Seconds > 0) || math.IsInf(job.Seconds, 0) {
					t.Fatalf("%T predicts that a training ends after %g s", one, job.Seconds)
				}
			}
		}
		factors, err := interference.ReadFactors(document)
		if err != nil {
			return
		}
		read, err := interference.ReadFactors(written(t, factors))
		if err != nil {
			t.Fatal(err)
		}
		if string(written(t, factors)) != string(written(t, read)) {
			t.Fatalf("%s is written as %s", written(t, factors), written(t, read))
		}
		for _, one := range table(3) {
			if speed, known := factors.Speed(one.Own, one.Other); known && (!(speed > 0) || math.IsInf(speed, 0)) {
				t.Fatalf("%s beside %s has the speed %g", one.Own, one.Other, speed)
			}
		}
	})
}
