package backend

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/nn"
)

// How networks are trained: a fit takes fitSteps, a new run learnSteps, each on
// a batch drawn from the memory (replay), so that what was learned earlier is
// not lost to the newest runs.
const (
	members    = 3
	fitSteps   = 160
	learnSteps = 3
	batchRows  = 16
	// leastRows is how many runs there are before networks are trained at all.
	leastRows = 4
	// forget is the weight of the newest error in the mean of the squared errors.
	forget = 0.05
	// learningRate and decay are Adam's.
	learningRate = 0.01
	decay        = 0.01
)

// online makes a predictor of networks: an ensemble (Lakshminarayanan and
// others 2017), each member with its own start and its own order of examples.
// How far predictions are off comes from the spread of the members and from the
// errors on runs before they were learned.
type online struct {
	shape     Shape
	memory    memory
	seen      int
	fitted    int
	scale     scale
	members   []*perceptron
	optimizer []*nn.Adam
	weights   []*nn.Tensor // those of the members
	random    *rand.Rand
	residual  []float64 // in units of the scale, squared
}

func newOnline(shape Shape) *online {
	return &online{shape: shape, memory: memory{window: shape.Window}}
}

func (n *online) Fit(rows []Row) {
	n.memory.fill(rows)
	n.seen, n.members, n.residual = len(rows), nil, nil
	n.refit()
}

func (n *online) Learn(row Row) {
	if n.members != nil {
		n.judge(row, forget)
	}
	n.memory.add(row)
	n.seen++
	// When the runs have doubled, their scale may be another: from the start.
	if n.members == nil || n.seen >= 2*n.fitted {
		n.refit()
		return
	}
	n.train(n.memory.rows, learnSteps, &row)
}

func (n *online) refit() {
	rows := n.memory.rows
	if len(rows) < leastRows {
		return
	}
	n.fitted = n.seen
	n.scale = newScale(rows, n.shape)
	n.random = rand.New(rand.NewPCG(n.shape.Seed, uint64(n.seen)))
	n.members, n.optimizer, n.weights = nil, nil, nil
	for range members {
		n.members = append(n.members, newPerceptron(loss{scale: n.scale, logarithmic: n.shape.Logarithmic}, n.random))
		n.optimizer = append(n.optimizer, &nn.Adam{Rate: learningRate, Decay: decay})
		n.weights = append(n.weights, nn.Vector(n.members[len(n.members)-1].network.weights))
	}
	if n.residual == nil {
		n.residual = make([]float64, len(n.shape.Logarithmic))
		for o := range n.residual {
			n.residual[o] = 1
		}
	}
	// Most of the training leaves every fifth run out: their errors are honest.
	var most, rest []Row
	for i, row := range rows {
		if i%5 == 4 {
			rest = append(rest, row)
		} else {
			most = append(most, row)
		}
	}
	steps := fitSteps + len(rows)/4
	n.train(most, steps*3/4, nil)
	for _, row := range rest {
		n.judge(row, max(forget, 1/float64(len(rest)+1)))
	}
	n.train(rows, steps/4, nil)
}

// judge takes the error of a run that was not learned into the residual.
func (n *online) judge(row Row, weight float64) {
	mean, _ := n.predict(n.scale.input(row.Features))
	for o, target := range n.scale.target(row.Targets) {
		if off := mean[o] - target; finite(off) {
			n.residual[o] += weight * (min(off*off, 25) - n.residual[o])
		}
	}
}

// train takes steps on batches of these rows; the newest is in each of them.
func (n *online) train(rows []Row, steps int, newest *Row) {
	inputs, targets := make([][]float64, len(rows)), make([][]float64, len(rows))
	example := func(i int) ([]float64, []float64) {
		if inputs[i] == nil {
			inputs[i], targets[i] = n.scale.input(rows[i].Features), n.scale.target(rows[i].Targets)
		}
		return inputs[i], targets[i]
	}
	for m, member := range n.members {
		for range steps {
			gradient := n.weights[m].Gradient
			count := batchRows
			if newest != nil {
				member.gradient(n.scale.input(newest.Features), n.scale.target(newest.Targets), gradient)
				count--
			}
			for range count {
				input, target := example(n.random.IntN(len(rows)))
				member.gradient(input, target, gradient)
			}
			for i := range gradient {
				gradient[i] /= batchRows
			}
			n.optimizer[m].Step(n.weights[m : m+1])
		}
	}
}

// predict is in units of the scale.
func (n *online) predict(input []float64) (mean, variance []float64) {
	mean, variance = make([]float64, len(n.shape.Logarithmic)), make([]float64, len(n.shape.Logarithmic))
	squares := make([]float64, len(mean))
	for _, member := range n.members {
		expected := member.predict(input)
		for o := range expected {
			mean[o] += expected[o] / members
			squares[o] += expected[o] * expected[o] / members
		}
	}
	for o := range mean {
		variance[o] = max(0, squares[o]-mean[o]*mean[o])
	}
	return mean, variance
}

func (n *online) Predict(features []float64) (mean, deviation []float64) {
	if n.members == nil { // too few runs to train on: their mean
		few := means{memory: n.memory, outputs: len(n.shape.Logarithmic)}
		return few.Predict(features)
	}
	mean, deviation = n.predict(n.scale.input(features))
	for o := range mean {
		deviation[o] = math.Sqrt(deviation[o] + n.residual[o])
	}
	return n.scale.output(mean, deviation)
}
