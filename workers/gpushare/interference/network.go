package interference

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

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
		a = own.at(ownDone)
	}
	if otherDone < 1 {
		b = other.at(otherDone)
	}
	for k, one := range [2]Point{a, b} {
		into[4*k], into[4*k+1], into[4*k+2] = one.Utilization, math.Log1p(one.MemoryBytes/gigabyte), math.Log1p(one.StepsASecond)/5
	}
	into[3], into[7], into[8] = ownDone, otherDone, math.Log(shared(a.Utilization, b.Utilization))
}

// encode reads both as they are alone, and returns the state behind it.
func (n *Network) encode(own, other Profile) []float64 {
	n.encoder.Begin(nil)
	x := make([]float64, inputs)
	var state []float64
	longer := max(own.Seconds, other.Seconds)
	for step := range periods {
		seconds := (float64(step) + 0.5) * longer / periods
		look(own, other, min(1, seconds/own.Seconds), min(1, seconds/other.Seconds), x)
		state = n.encoder.Next(x)
	}
	return state
}

// answer is what the decoder says of a period, and what it was made of.
type answer struct {
	state       []float64 // and 1
	raw         [told]float64
	own         float64 // utilization alone
	speed, busy float64
}

func (n *Network) decode(decoder *nn.GRU, x []float64) answer {
	one := answer{state: append(slices.Clone(decoder.Next(x)), 1), own: x[0]}
	n.last.Apply(one.state, one.raw[:])
	for i := range one.raw {
		one.raw[i] = math.Tanh(one.raw[i])
	}
	one.speed = math.Exp(x[8] + strongest*one.raw[0])
	one.busy = one.own*one.speed + farthest*one.raw[1]
	return one
}

// blame takes the derivatives by speed and utilization back to the state.
func (n *Network) blame(one answer, ofSpeed, ofBusy float64) []float64 {
	ofSpeed += ofBusy * one.own
	ofRaw := []float64{
		ofSpeed * one.speed * strongest * (1 - one.raw[0]*one.raw[0]),
		ofBusy * farthest * (1 - one.raw[1]*one.raw[1]),
	}
	back := make([]float64, len(one.state))
	n.last.Learn(one.state, ofRaw, back)
	return back[:len(back)-1]
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
	period, both := max(v.own.Seconds, v.other.Seconds)/periods, min(p.ended(0), p.ended(1))
	for step := 0; float64(step+1)*period <= both; step++ {
		begin, end := float64(step)*period, float64(step+1)*period
		from, _ := p.at(k, begin)
		other, _ := p.at(1-k, begin)
		to, busy := p.at(k, end)
		x := make([]float64, inputs)
		look(v.own, v.other, min(from, 1-1e-9), min(other, 1-1e-9), x)
		v.inputs = append(v.inputs, x)
		v.speed, v.busy = append(v.speed, (to-from)*v.own.Seconds/period), append(v.busy, busy)
	}
	return v
}

// weightOfBusy is what an error of utilization counts beside one of speed.
const weightOfBusy = 0.5

// learn adds the gradients of one view and returns its loss: the mean squared
// error of the speeds and utilizations, told where the training really was.
func (n *Network) learn(v view, share float64) (loss float64) {
	if len(v.inputs) == 0 {
		return 0
	}
	n.decoder.Begin(n.encode(v.own, v.other))
	weight := share / float64(len(v.inputs))
	blames := make([][]float64, len(v.inputs))
	for i, x := range v.inputs {
		one := n.decode(n.decoder, x)
		offSpeed, offBusy := one.speed-v.speed[i], one.busy-v.busy[i]
		loss += weight * (offSpeed*offSpeed + weightOfBusy*offBusy*offBusy)
		blames[i] = n.blame(one, 2*weight*offSpeed, 2*weight*weightOfBusy*offBusy)
	}
	ofEncoder := make([][]float64, periods)
	ofEncoder[periods-1] = n.decoder.Backward(blames)
	n.encoder.Backward(ofEncoder)
	return loss
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
		if err := pair.check(); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
		views = append(views, viewOf(pair, 0), viewOf(pair, 1))
	}
	random := rand.New(rand.NewPCG(settings.Seed, 5)) //nolint:gosec // what is drawn has to repeat
	n := newNetwork(settings.Hidden, random)
	optimizer, parts := nn.Adam{}, n.parts()
	batches := (len(views) + settings.Batch - 1) / settings.Batch
	for step := range settings.Epochs * batches {
		if step%batches == 0 {
			random.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
		}
		from := step % batches * settings.Batch
		batch := views[from:min(from+settings.Batch, len(views))]
		for _, one := range batch {
			n.learn(one, 1/float64(len(batch)))
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
	if err := checkBoth(a, b); err != nil {
		return Colocation{}, err
	}
	both := [2]Profile{a, b}
	decoders := [2]*nn.GRU{n.decoder, n.decoder.Twin()}
	for k, decoder := range decoders {
		decoder.Begin(n.encode(both[k], both[1-k]))
	}
	x := make([]float64, inputs)
	return play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		for k, decoder := range decoders {
			look(both[k], both[1-k], completion[k], completion[1-k], x)
			one := n.decode(decoder, x)
			speed[k], busy[k] = one.speed, min(max(one.busy, 0), 1)
		}
		return speed, busy
	}), nil
}
