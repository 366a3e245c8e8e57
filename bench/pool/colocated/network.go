// Package colocated has predictors of co-located trainings that the pool does not
// use, and what judges predictors. It follows the work on sequence-to-sequence
// models for workload interference (D. Buchaca and others, IEEE Access 2020, as told
// in the reading notes of Z. Zhou, section 4.1.3): an encoder and a decoder of gated
// recurrent units predict what two trainings use together ([Network]). Any such model
// has to beat no slowdown at all ([NoSlowdown]), shares of what both want
// ([Sharing]), and the regression of workers/gpushare/interference.
package colocated

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

const gigabyte = 1e9

// Settings of [Train].
type Settings struct {
	// Hidden is the width of encoder and decoder; 12 when 0.
	Hidden int
	// Epochs is how often each pair is learned from; 150 when 0. Batch is how
	// many views of pairs a step takes, each pair having two; 8 when 0.
	Epochs, Batch int
	// Rate is that of the first step; 0.01 when 0. It falls to nothing.
	Rate float64
	Seed uint64
}

func (s Settings) complete() (Settings, error) {
	for value, otherwise := range map[*int]int{&s.Hidden: 12, &s.Epochs: 150, &s.Batch: 8} {
		if *value == 0 {
			*value = otherwise
		}
	}
	if s.Rate == 0 {
		s.Rate = 0.01
	}
	if s.Hidden < 1 || s.Epochs < 1 || s.Batch < 1 || !(s.Rate > 0) {
		return s, fmt.Errorf("hidden %d, epochs %d, batch %d, rate %g: all must be positive", s.Hidden, s.Epochs, s.Batch, s.Rate)
	}
	return s, nil
}

// Network is an encoder that reads what both use alone, and a decoder that tells
// period by period how fast one of the two is beside the other and what it keeps
// busy. It looks at a pair from the side of one training; the other is told by
// the same weights from its own side, so that the order of a pair cannot matter.
//
// Ours beside the source: what the decoder tells is a correction of [Sharing],
// of which it begins, since there are tens of pairs to learn from and not
// thousands; and it reads what both use alone at their completion, so that a
// training that was slowed down is looked up where it is.
type Network struct {
	encoder, decoder *nn.GRU
	last             *nn.Tensor // of the state and 1: speed and utilization
}

const (
	inputs = 9
	told   = 2
	// strongest bounds the correction of a speed, as a logarithm, and farthest
	// that of a utilization.
	strongest, farthest = 1.0, 0.5
)

func newNetwork(hidden int, random *rand.Rand) *Network {
	return &Network{
		encoder: nn.NewGRU(inputs, hidden, random), decoder: nn.NewGRU(inputs, hidden, random),
		last: nn.NewTensor(told, hidden+1, nil),
	}
}

func (n *Network) parts() []*nn.Tensor {
	return slices.Concat(n.encoder.Parts(), n.decoder.Parts(), []*nn.Tensor{n.last})
}

// look is what the network reads of a period, from the side of one.
func look(own, other Profile, ownDone, otherDone float64, into []float64) {
	a, b := Point{}, Point{}
	if ownDone < 1 {
		a = own.At(ownDone)
	}
	if otherDone < 1 {
		b = other.At(otherDone)
	}
	for k, one := range [2]Point{a, b} {
		into[4*k], into[4*k+1], into[4*k+2] = one.Utilization, math.Log1p(one.MemoryBytes/gigabyte), math.Log1p(one.StepsASecond)/5
	}
	into[3], into[7], into[8] = ownDone, otherDone, math.Log(shared(a.Utilization, b.Utilization))
}

// alone is what the encoder reads in a period: both as they are alone.
func alone(own, other Profile, step int, into []float64) {
	seconds := (float64(step) + 0.5) * max(own.Seconds, other.Seconds) / Periods
	look(own, other, min(1, seconds/own.Seconds), min(1, seconds/other.Seconds), into)
}

// encode reads both as they are alone, and returns the state after it.
func (n *Network) encode(own, other Profile) []float64 {
	n.encoder.Begin(nil)
	x := make([]float64, inputs)
	var state []float64
	for step := range Periods {
		alone(own, other, step, x)
		state = n.encoder.Next(x)
	}
	return state
}

// decode is how fast the training is in the next period, and what it keeps busy.
func (n *Network) decode(decoder *nn.GRU, x []float64) (speed, busy float64) {
	var raw [told]float64
	n.last.Apply(append(slices.Clone(decoder.Next(x)), 1), raw[:])
	speed = math.Exp(x[8] + strongest*math.Tanh(raw[0]))
	return speed, x[0]*speed + farthest*math.Tanh(raw[1])
}

// view is a pair from the side of one training, with what was seen of it in each
// period in which both ran to its end.
type view struct {
	own, other Profile
	inputs     [][]float64
	speed      []float64
	busy       []float64
}

func viewOf(p Pair, k int) view {
	v := view{own: p.Alone[k], other: p.Alone[1-k]}
	period, both := max(v.own.Seconds, v.other.Seconds)/Periods, min(p.Ended(0), p.Ended(1))
	for step := 0; float64(step+1)*period <= both; step++ {
		begin, end := float64(step)*period, float64(step+1)*period
		from, _ := p.At(k, begin)
		other, _ := p.At(1-k, begin)
		to, busy := p.At(k, end)
		x := make([]float64, inputs)
		look(v.own, v.other, min(from, 1-1e-9), min(other, 1-1e-9), x)
		v.inputs = append(v.inputs, x)
		v.speed, v.busy = append(v.speed, (to-from)*v.own.Seconds/period), append(v.busy, busy)
	}
	return v
}

// Train learns from pairs that ran.
func Train(pairs []Pair, settings Settings) (*Network, error) {
	settings, err := settings.complete()
	if err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, errors.New("no pairs to learn from")
	}
	var views []view
	for i, pair := range pairs {
		if err := pair.Check(); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
		views = append(views, viewOf(pair, 0), viewOf(pair, 1))
	}
	random := rand.New(rand.NewPCG(settings.Seed, 5)) //nolint:gosec // what is drawn has to repeat
	n := newNetwork(settings.Hidden, random)
	l, err := n.lesson(settings.Batch, views)
	if err != nil {
		return nil, err
	}
	defer l.graph.Close() //nolint:errcheck // it holds memory alone
	optimizer, parts := nn.Adam{Longest: nn.LongestStep}, n.parts()
	batches := (len(views) + settings.Batch - 1) / settings.Batch
	for step := range settings.Epochs * batches {
		if step%batches == 0 {
			random.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
		}
		from := step % batches * settings.Batch
		l.fill(views[from:min(from+settings.Batch, len(views))])
		if _, err := l.graph.Learn(); err != nil {
			return nil, err
		}
		optimizer.Rate = settings.Rate * (1 + math.Cos(math.Pi*float64(step)/float64(settings.Epochs*batches))) / 2
		optimizer.Step(parts)
	}
	for _, part := range parts {
		if slices.ContainsFunc(part.Value, math.IsNaN) {
			return nil, errors.New("the training diverged: take a smaller rate")
		}
	}
	return n, nil
}

// Predict decodes period by period, each with the completions that came out of
// the one before. It is not safe for concurrent use.
func (n *Network) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	both := [2]Profile{a, b}
	decoders := [2]*nn.GRU{n.decoder, n.decoder.Twin()}
	for k, decoder := range decoders {
		decoder.Begin(n.encode(both[k], both[1-k]))
	}
	x := make([]float64, inputs)
	return Play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		for k, decoder := range decoders {
			look(both[k], both[1-k], completion[k], completion[1-k], x)
			speed[k], busy[k] = n.decode(decoder, x)
			busy[k] = min(max(busy[k], 0), 1)
		}
		return speed, busy
	}), nil
}
