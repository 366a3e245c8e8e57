package inference

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/study/definition"
)

func measuredHere(t testing.TB, runs int) emu.Architecture { return measuredWide(t, 16, runs) }

// measuredWide has so many hidden units.
func measuredWide(t testing.TB, width int64, runs int) emu.Architecture {
	b := graphtest.NewBuilder("mlp")
	b.Output(b.Linear(b.Relu(b.Linear(b.Input("x", graph.Float32, 1, 12), width)), 2))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	a := emu.Architecture{Key: "perceptron", Graph: emu.Anonymous(g)}
	for i := range runs {
		seconds := 1e-5 * float64(1+i)
		a.Runs = append(a.Runs, emu.Run{Machine: "raspberry-pi-4", Batch: 1 + i, Threads: 1, Seconds: seconds, Low: seconds, High: seconds, At: time.Unix(int64(i), 0)})
	}
	return a
}

// While a fit is made, requests have the last one after a moment. What must be fresh waits,
// and a model whose own measurements the last one lacks. Once it is made, it serves.
func TestRequestsDoNotWaitForAFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, Options{Now: time.Now})
		devices, err := catalogue()
		if err != nil {
			t.Fatal(err)
		}
		other := measuredWide(t, 24, 0)
		other.Key = "other"
		fitOf := func(ctx context.Context, a emu.Architecture, runs int, fresh bool) (any, error) {
			target, err := s.target(devices, a, "raspberry-pi-4", "")
			target.Fresh = fresh
			if err == nil {
				target, err = s.fitted(ctx, target, a, []emu.Architecture{measuredHere(t, runs), other})
			}
			if target.Fit == nil {
				return nil, err
			}
			return *target.Fit, err
		}
		fitFor := func(ctx context.Context, runs int, fresh bool) (any, error) { return fitOf(ctx, other, runs, fresh) }
		if _, err := fitFor(t.Context(), 0, false); err != nil || s.fits.Made != 1 {
			t.Fatal(err, s.fits.Made)
		}
		if err := s.fitting.Enter(t.Context()); err != nil { // no fit can be made
			t.Fatal(err)
		}
		began := time.Now()
		for range 3 {
			if last, err := fitFor(t.Context(), 4, false); err != nil || s.fits.Made != 1 || time.Since(began) > 3*fitPatience {
				t.Fatalf("%v after %v: %v", last, time.Since(began), err)
			}
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got, err := fitFor(impatient, 4, true); err == nil || got != nil {
			t.Errorf("what has to be fresh got %v", got)
		}
		another, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got, err := fitOf(another, measuredHere(t, 4), 4, false); err == nil || got != nil {
			t.Errorf("the model that was measured got the fit from before: %v", got)
		}
		s.fitting.Leave()
		synctest.Wait()
		if _, err := fitFor(t.Context(), 4, false); err != nil || s.fits.Made != 2 {
			t.Errorf("the fit that was made behind does not serve: %d were made", s.fits.Made)
		}
	})
}

// shelf is a store with architectures.
type shelf []emu.Architecture

func (s shelf) Architectures(context.Context, int) ([]emu.Architecture, error) { return s, nil }
func (s shelf) Architecture(context.Context, string) (emu.Architecture, error) { return s[0], nil }

// After a start the fits are made from what is stored; requests make none.
func TestFitsAreMadeAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := measuredHere(t, 4)
		s := New(shelf{a}, Options{Now: time.Now})
		section := definition.Inference{Devices: []definition.InferenceDevice{{Name: "raspberry-pi-4"}}, BatchSize: definition.BatchRange{Low: 1, High: 4}, Objective: definition.InferenceObjective{Metric: tuning.Latency}}
		if err := s.Warm(t.Context(), []definition.Inference{section}); err != nil || s.fits.Made != 1 {
			t.Fatal(err, s.fits.Made)
		}
		if err := s.fitting.Enter(t.Context()); err != nil { // no fit can be made
			t.Fatal(err)
		}
		defer s.fitting.Leave()
		impatient, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		found, err := s.Deploy(impatient, a, nil, definition.Definition{Objectives: []definition.Objective{{}}, Inference: &section}, "")
		if err != nil || !strings.Contains(found[0].Method, "4 measurements") {
			t.Errorf("%d answers, %v", len(found), err)
		}
	})
}

// Settings of small models count the time that they are measured at least.
func TestSmallModelsSpendMinutesToo(t *testing.T) {
	for runs, spent := range map[int]bool{2: false, 4: true} {
		s := New(shelf{measuredHere(t, runs)}, Options{Now: time.Now})
		section := &definition.Inference{Devices: []definition.InferenceDevice{{Name: "raspberry-pi-4"}}, BudgetMinutes: 0.01}
		said, err := s.Unmeasured(t.Context(), Wanted{Definition: definition.Definition{Inference: section}, Keys: []string{"perceptron"}})
		if err != nil || (said != "") != spent {
			t.Errorf("after %d settings it says %q, %v", runs, said, err)
		}
	}
}

// What a request waits for when there are new measurements, and what the fit takes that it
// does not wait for.
func BenchmarkFit(b *testing.B) {
	devices, err := catalogue()
	if err != nil {
		b.Fatal(err)
	}
	var all []emu.Architecture
	for i := range 10 {
		a := measuredHere(b, 6)
		a.Key = fmt.Sprint("perceptron-", i)
		for j := range a.Graph.Operators {
			a.Graph.Operators[j].Operations *= int64(1 + i)
		}
		all = append(all, a)
	}
	s := New(nil, Options{Now: time.Now})
	target, err := s.target(devices, all[0], "raspberry-pi-4", "")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			if _, err := deployment.Want(target, all[0], all).Make(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("waited for", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			one := New(nil, Options{Now: time.Now})
			if _, err := one.fitted(b.Context(), target, measuredHere(b, 0), nil); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if _, err := one.fitted(b.Context(), target, all[0], all); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_ = one.fitting.Enter(b.Context()) // so that it ends before the next one
			b.StartTimer()
		}
	})
}
