package colocated_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/colocated"
)

// drawnProfile is a training with two phases.
func drawnProfile(random *rand.Rand) colocated.Profile {
	p := colocated.Profile{Seconds: 60 * math.Exp(random.NormFloat64()/3)}
	high, low := 0.5+0.5*random.Float64(), 0.1+0.4*random.Float64()
	memory, pace := 1e9*random.Float64(), 1+20*random.Float64()
	for i := range 20 {
		one := colocated.Point{Utilization: high, MemoryBytes: memory, StepsASecond: pace}
		if i%10 < 4 {
			one.Utilization = low
		}
		p.Points = append(p.Points, one)
	}
	return p
}

// machine is a law that no sum of utilizations knows: who holds much memory
// slows the other down, also where there is room.
func machine(own, other colocated.Point) (speed float64) {
	return math.Exp(-0.6*other.MemoryBytes/1e9) / max(1, own.Utilization+other.Utilization)
}

// run plays two profiles on the machine, in small steps.
func run(a, b colocated.Profile) colocated.Pair {
	p := colocated.Pair{Alone: [2]colocated.Profile{a, b}}
	at := func(k int, done float64) colocated.Point {
		points := p.Alone[k].Points
		return points[min(int(done*float64(len(points))), len(points)-1)]
	}
	var done, busy [2]float64
	const step, every = 0.01, 50
	for i := 1; done[0] < 1 || done[1] < 1; i++ {
		var speed [2]float64
		for k := range done {
			switch {
			case done[k] >= 1:
			case done[1-k] >= 1:
				speed[k] = 1
			default:
				speed[k] = machine(at(k, done[k]), at(1-k, done[1-k]))
			}
			busy[k] += speed[k] * at(k, done[k]).Utilization / every
		}
		for k := range done {
			if done[k] >= 1 {
				continue
			}
			done[k] = min(1, done[k]+speed[k]*step/p.Alone[k].Seconds)
			if done[k] == 1 || i%every == 0 {
				p.Together[k] = append(p.Together[k], colocated.Reading{Seconds: float64(i) * step, Completion: done[k], Utilization: min(1, busy[k])})
			}
			if i%every == 0 {
				busy[k] = 0
			}
		}
	}
	return p
}

func drawnPairs(n int, seed uint64) (pairs []colocated.Pair) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range n {
		pairs = append(pairs, run(drawnProfile(random), drawnProfile(random)))
	}
	return pairs
}

// error is the mean of |predicted − true| / true of when both end.
func wrong(t *testing.T, by colocated.Predictor, pairs []colocated.Pair) (mean float64) {
	t.Helper()
	for _, pair := range pairs {
		said, err := by.Predict(pair.Alone[0], pair.Alone[1])
		if err != nil {
			t.Fatal(err)
		}
		truth, err := colocated.OutcomeOf(pair)
		if err != nil {
			t.Fatal(err)
		}
		for k := range said.Jobs {
			mean += math.Abs(said.Jobs[k].Seconds/truth.Jobs[k].Seconds-1) / float64(2*len(pairs))
		}
	}
	return mean
}

func TestTheNetworkLearnsWhatNoSumKnows(t *testing.T) {
	training, testing := drawnPairs(40, 3), drawnPairs(15, 4)
	network, err := colocated.Train(training, colocated.Settings{Hidden: 8, Epochs: 40, Batch: 40, Rate: 0.03, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	line, err := colocated.TrainLine(training)
	if err != nil {
		t.Fatal(err)
	}
	none, sharing := wrong(t, colocated.NoSlowdown{}, testing), wrong(t, colocated.Sharing{}, testing)
	learned, straight := wrong(t, network, testing), wrong(t, line, testing)
	t.Logf("none %.3f, sharing %.3f, line %.3f, network %.3f", none, sharing, straight, learned)
	if !(learned < 0.5*sharing) || !(learned < 0.5*none) || !(straight < sharing) || learned > 0.1 {
		t.Errorf("none %.3f, sharing %.3f, line %.3f, network %.3f", none, sharing, straight, learned)
	}
}

func TestTheSameSeedMakesTheSameNetwork(t *testing.T) {
	pairs := drawnPairs(6, 5)
	var ends [2]float64
	for i := range ends {
		network, err := colocated.Train(pairs, colocated.Settings{Hidden: 4, Epochs: 3, Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		said, err := network.Predict(pairs[0].Alone[0], pairs[0].Alone[1])
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = said.Jobs[0].Seconds
	}
	if ends[0] != ends[1] {
		t.Errorf("%g and %g s", ends[0], ends[1])
	}
}

// TestOutcomesAreConsistent holds the package's invariant, for every predictor:
// completion never falls and ends at 1, nobody is faster than alone where the
// prediction says so, and the order of a pair does not matter.
func TestOutcomesAreConsistent(t *testing.T) {
	pairs := drawnPairs(8, 6)
	network, err := colocated.Train(pairs, colocated.Settings{Hidden: 4, Epochs: 5, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	line, err := colocated.TrainLine(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]colocated.Predictor{"none": colocated.NoSlowdown{}, "sharing": colocated.Sharing{}, "line": line, "network": network} {
		for _, pair := range pairs {
			said, err := by.Predict(pair.Alone[0], pair.Alone[1])
			if err != nil {
				t.Fatal(err)
			}
			turned, err := by.Predict(pair.Alone[1], pair.Alone[0])
			if err != nil {
				t.Fatal(err)
			}
			for k, one := range said.Jobs {
				if math.Abs(one.Seconds-turned.Jobs[1-k].Seconds) > 1e-9*one.Seconds {
					t.Fatalf("%s: %g s, from the other side %g s", name, one.Seconds, turned.Jobs[1-k].Seconds)
				}
				last := 0.0
				for _, completion := range one.Completion {
					if completion < last || completion > 1 {
						t.Fatalf("%s: completion goes from %g to %g", name, last, completion)
					}
					last = completion
				}
				if last != 1 || one.Alone != pair.Alone[k].Seconds || len(one.Completion) != len(one.Utilization) {
					t.Fatalf("%s: it ends at %g, %d completions, %d utilizations", name, last, len(one.Completion), len(one.Utilization))
				}
			}
		}
	}
}

func flat(seconds, utilization float64) colocated.Profile {
	return colocated.Profile{Seconds: seconds, Points: []colocated.Point{{Utilization: utilization, MemoryBytes: 1e9, StepsASecond: 1}}}
}

func TestSharingByHand(t *testing.T) {
	// Both want 0.8 of the machine: 1/1.6 of the speed. The short one, 30 s alone,
	// ends at 48 s; the long one has done 30 s of its 90 then and ends at 108 s.
	said, err := colocated.Sharing{}.Predict(flat(30, 0.8), flat(90, 0.8))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(said.Jobs[0].Seconds-48) > 1e-6 || math.Abs(said.Jobs[1].Seconds-108) > 1e-6 {
		t.Errorf("%g and %g s, want 48 and 108", said.Jobs[0].Seconds, said.Jobs[1].Seconds)
	}
	if got := said.Jobs[0].Slowdown(); math.Abs(got-0.6) > 1e-9 {
		t.Errorf("a slowdown of %g, want 0.6", got)
	}
	if got := said.Gain(); math.Abs(got-120.0/108) > 1e-9 {
		t.Errorf("a gain of %g", got)
	}
	none, err := colocated.NoSlowdown{}.Predict(flat(30, 0.8), flat(90, 0.8))
	if err != nil || math.Abs(none.Jobs[0].Seconds-30) > 1e-9 || math.Abs(none.Jobs[1].Seconds-90) > 1e-9 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestLimits(t *testing.T) {
	pair := func(a, b float64) colocated.Colocation {
		return colocated.Colocation{Jobs: [2]colocated.Outcome{{Seconds: a, Alone: 10}, {Seconds: b, Alone: 10}}}
	}
	for name, one := range map[string]struct {
		limits  colocated.Limits
		said    colocated.Colocation
		refused bool
	}{
		"a good pair":               {colocated.Limits{}, pair(12, 13), false},
		"one that loses":            {colocated.Limits{}, pair(22, 21), true},
		"one on the edge":           {colocated.Limits{}, pair(19.5, 19.5), true},
		"on the edge, but accepted": {colocated.Limits{LeastGain: 1}, pair(19.5, 19.5), false},
		"one suffers too much":      {colocated.Limits{MostSlowdown: 0.5}, pair(16, 10), true},
		"neither does":              {colocated.Limits{MostSlowdown: 0.7}, pair(16, 10), false},
	} {
		if got := one.limits.Refuses(one.said); got != one.refused {
			t.Errorf("%s: refused %t", name, got)
		}
	}
}

func TestOddProfilesAndPairsAreRefused(t *testing.T) {
	good := flat(10, 0.5)
	for name, bad := range map[string]colocated.Profile{
		"no time":         flat(0, 0.5),
		"no points":       {Seconds: 3},
		"too much":        flat(10, 1.5),
		"NaN":             flat(10, math.NaN()),
		"negative memory": {Seconds: 3, Points: []colocated.Point{{MemoryBytes: -1}}},
	} {
		for _, by := range []colocated.Predictor{colocated.NoSlowdown{}, colocated.Sharing{}, colocated.Line{}, &colocated.Network{}} {
			if _, err := by.Predict(good, bad); err == nil {
				t.Errorf("%s was predicted by %T", name, by)
			}
		}
	}
	whole := drawnPairs(1, 9)[0]
	for want, change := range map[string]func(*colocated.Pair){
		"do not end with all": func(p *colocated.Pair) { p.Together[0] = p.Together[0][:3] },
		"time and completion grow": func(p *colocated.Pair) {
			p.Together[1] = append([]colocated.Reading(nil), p.Together[1]...)
			p.Together[1][1].Seconds = 0
		},
		"it needs both": func(p *colocated.Pair) { p.Alone[0].Points = nil },
	} {
		broken := whole
		change(&broken)
		_, first := colocated.Train([]colocated.Pair{broken}, colocated.Settings{})
		_, second := colocated.TrainLine([]colocated.Pair{broken})
		_, third := colocated.OutcomeOf(broken)
		for _, err := range []error{first, second, third} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	if _, err := colocated.Train(nil, colocated.Settings{}); err == nil {
		t.Error("learned from nothing")
	}
	if _, err := colocated.TrainLine(nil); err == nil {
		t.Error("a line was learned from nothing")
	}
	if _, err := colocated.Train([]colocated.Pair{whole}, colocated.Settings{Hidden: -1}); err == nil {
		t.Error("a negative width was taken")
	}
}
