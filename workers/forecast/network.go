package forecast

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

// GRU is the method of a network whose encoder is of gated recurrent units, one of
// those of section 4.1.
const GRU = "gru"

// Settings of a [Network].
type Settings struct {
	// Hidden is the width of the encoder; 24 when 0.
	Hidden int
	// Quantiles to train jointly, ascending, with the median among them; those
	// of the paper when nil.
	Quantiles []float64
	// Samples is how many windows are learned from in all, drawn at random;
	// 60,000 when 0. Batch is how many a step takes; 32 when 0.
	Samples, Batch int
	// Rate is that of the first step; 0.01 when 0. It falls to nothing.
	Rate float64
	Seed uint64
	// Stop is asked before each step whether to give up; nil: never.
	Stop func() bool
}

func (s Settings) complete() (Settings, error) {
	for value, otherwise := range map[*int]int{&s.Hidden: 24, &s.Samples: 60_000, &s.Batch: 32} {
		if *value == 0 {
			*value = otherwise
		}
	}
	if s.Rate == 0 {
		s.Rate = 0.01
	}
	if s.Quantiles == nil {
		s.Quantiles = Quantiles()
	}
	switch {
	case s.Hidden < 1 || s.Samples < 1 || s.Batch < 1 || !(s.Rate > 0):
		return s, fmt.Errorf("hidden %d, samples %d, batch %d, rate %g: all must be positive", s.Hidden, s.Samples, s.Batch, s.Rate)
	case !slices.IsSorted(s.Quantiles) || !slices.Contains(s.Quantiles, 0.5) || s.Quantiles[0] <= 0 || s.Quantiles[len(s.Quantiles)-1] >= 1:
		return s, fmt.Errorf("the quantiles %v must be ascending, between 0 and 1, with 0.5 among them", s.Quantiles)
	}
	return s, nil
}

// Network is an encoder of the last two hours, and a decoder that tells all
// minutes ahead at once (figure 2). What it sees and tells is the difference to
// the demand now, in units of what demand usually changes by within the horizon.
type Network struct {
	settings Settings
	median   int
	encoder  *nn.GRU
	middle   *nn.Tensor // of the context, what the window is like, and 1
	last     *nn.Tensor
	scale    float64
	mean     float64
	spread   float64

	// of the last window
	sequence, input, active, said []float64
}

// extras are what the decoder is told beside the context: the level, how
// restless the window was, and 1.
const (
	extras      = 3
	middleUnits = 48
	narrow      = -2.0 // the first distance between quantiles, before softplus
)

// ErrStopped is the error of a training that was told to give up.
var ErrStopped = errors.New("the training was stopped")

// Train learns from a series of demand, a value for each minute.
func Train(series []float64, settings Settings) (*Network, error) {
	settings, err := settings.complete()
	if err != nil {
		return nil, err
	}
	if err := checkSeries(series, Lookback+Horizon+settings.Batch); err != nil {
		return nil, err
	}
	n := newNetwork(settings)
	n.measure(series)
	l, err := n.lesson(settings.Batch)
	if err != nil {
		return nil, err
	}
	defer l.graph.Close()                             //nolint:errcheck // it holds memory alone
	random := rand.New(rand.NewPCG(settings.Seed, 1)) //nolint:gosec // what is drawn has to repeat
	optimizer := nn.Adam{Longest: nn.LongestStep}
	parts := n.parts()
	steps := (settings.Samples + settings.Batch - 1) / settings.Batch
	for step := range steps {
		if settings.Stop != nil && settings.Stop() {
			return nil, ErrStopped
		}
		optimizer.Rate = settings.Rate * (1 + math.Cos(math.Pi*float64(step)/float64(steps))) / 2
		for sample := range settings.Batch {
			now := Lookback - 1 + random.IntN(len(series)-Lookback-Horizon+1)
			l.fill(sample, series[now-Lookback+1:now+1+Horizon])
		}
		if _, err := l.graph.Learn(); err != nil {
			return nil, err
		}
		optimizer.Step(parts)
	}
	for _, part := range parts {
		if slices.ContainsFunc(part.Value, math.IsNaN) {
			return nil, errors.New("the training diverged: take a smaller rate")
		}
	}
	return n, nil
}

func newNetwork(settings Settings) *Network {
	random := rand.New(rand.NewPCG(settings.Seed, 0)) //nolint:gosec // what is drawn has to repeat
	n := &Network{settings: settings, median: slices.Index(settings.Quantiles, 0.5), scale: 1, spread: 1}
	n.encoder = nn.NewGRU(1, settings.Hidden, random)
	n.middle = nn.NewTensor(middleUnits, settings.Hidden+extras, random)
	n.last = nn.NewTensor(Horizon*len(settings.Quantiles), middleUnits+1, random)
	for i := range n.last.Rows {
		if i%len(settings.Quantiles) != n.median {
			n.last.Row(i)[middleUnits] = narrow
		}
	}
	return n
}

func (n *Network) parts() []*nn.Tensor {
	return append(slices.Clone(n.encoder.Parts()), n.middle, n.last)
}

// measure finds the units.
func (n *Network) measure(series []float64) {
	square := 0.0
	for i := Horizon; i < len(series); i++ {
		change := series[i] - series[i-Horizon]
		square += change * change / float64(len(series)-Horizon)
	}
	sum, squares := 0.0, 0.0
	for _, x := range series {
		sum += x
	}
	n.mean = sum / float64(len(series))
	for _, x := range series {
		squares += (x - n.mean) * (x - n.mean) / float64(len(series))
	}
	n.scale, n.spread = orOne(math.Sqrt(square)), orOne(math.Sqrt(squares))
}

func orOne(x float64) float64 {
	if x < 1e-9 {
		return 1
	}
	return x
}

// see turns a window into what the network reads: the sequence, the level, and how
// restless the window was.
func (n *Network) see(window, into []float64) (sequence []float64, level, restless float64) {
	now := window[len(window)-1]
	for i, x := range window {
		into = append(into, math.Asinh((x-now)/n.scale)) // bursts are large: their order counts
		if i > 0 {
			restless += math.Abs(x-window[i-1]) / n.scale / float64(len(window)-1)
		}
	}
	return into, (now - n.mean) / n.spread, math.Log(0.01+restless) / 3
}

// forward is what the last layer says of a window: the median of each minute,
// and beside it how far the quantiles are from each other, before softplus.
func (n *Network) forward(window []float64) []float64 {
	sequence, level, restless := n.see(window, n.sequence[:0])
	n.sequence = sequence
	n.encoder.Begin(nil)
	var context []float64
	for at := range sequence {
		context = n.encoder.Next(sequence[at : at+1])
	}
	n.input = append(append(n.input[:0], context...), level, restless, 1)
	n.active = slices.Grow(n.active[:0], middleUnits+1)[:middleUnits+1]
	clear(n.active)
	n.middle.Apply(n.input, n.active[:middleUnits])
	for i := range middleUnits {
		n.active[i] = math.Tanh(n.active[i])
	}
	n.active[middleUnits] = 1
	n.said = slices.Grow(n.said[:0], n.last.Rows)[:n.last.Rows]
	clear(n.said)
	n.last.Apply(n.active, n.said)
	return n.said
}

// unfold turns what the last layer says of a minute into its quantiles, in
// units of the scale.
func (n *Network) unfold(said, quantiles []float64) {
	quantiles[n.median] = said[n.median]
	for i := n.median + 1; i < len(said); i++ {
		quantiles[i] = quantiles[i-1] + nn.Softplus(said[i])
	}
	for i := n.median - 1; i >= 0; i-- {
		quantiles[i] = quantiles[i+1] - nn.Softplus(said[i])
	}
}

// Forecast needs two hours of history. It is not safe for concurrent use.
func (n *Network) Forecast(history []float64) (Forecast, error) {
	window := history[max(0, len(history)-Lookback):]
	if err := checkSeries(window, Lookback); err != nil {
		return Forecast{}, err
	}
	said, width := n.forward(window), len(n.settings.Quantiles)
	f := Forecast{Quantiles: n.settings.Quantiles}
	for minute := range Horizon {
		row := make([]float64, width)
		n.unfold(said[minute*width:(minute+1)*width], row)
		for i := range row {
			row[i] = window[Lookback-1] + n.scale*row[i]
		}
		f.Demand = append(f.Demand, row)
	}
	return tidy(f), nil
}
