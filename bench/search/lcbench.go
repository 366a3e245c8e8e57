package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/tandem-tune/tandem/bench/search/surrogate"
	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

const networkFile = `
name: NAME
command: [predicted]
objective: [{metric: val_accuracy, direction: maximize}]
space:
  batch_size: {type: int, low: 16, high: 512, log: true}
  learning_rate: {type: float, low: 1e-4, high: 0.1, log: true}
  momentum: {type: float, low: 0.1, high: 0.99}
  weight_decay: {type: float, low: 1e-5, high: 0.1}
  num_layers: {type: int, low: 1, high: 5}
  max_units: {type: int, low: 64, high: 1024, log: true}
  max_dropout: {type: float, low: 0, high: 1}
budget: {policy: epochs, epochs: {min: 2, max: 52}, eta: 3}
stop: {trials: 100000}
`

// loadNetwork reads the surrogate of LCBench.
func loadNetwork(folder string) (*surrogate.Network, error) {
	var n *surrogate.Network
	err := unpacked(func(content io.Reader) (err error) {
		n, err = surrogate.Read(content)
		return err
	}, folder, "yahpo_surrogates", "lcbench.graph.json.gz")
	return n, err
}

// loadNetworkTasks makes a problem of each of four tasks: the first two and the
// last two of LCBench's list, with their codes in the network.
func loadNetworkTasks(folder string) ([]*table, error) {
	n, err := loadNetwork(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (%w)", errNoData, err)
	}
	if err != nil {
		return nil, err
	}
	var tables []*table
	for _, task := range []struct {
		name string
		code float32
	}{{"3945", 34}, {"7593", 35}, {"189908", 31}, {"189909", 32}} {
		t, err := loadNetworkTask(n, task.name, task.code)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// predictions are the trainings that a surrogate was asked for: a row for each
// configuration, in the order in which they first came.
type predictions struct {
	mutex   sync.Mutex
	network *surrogate.Network
	task    float32 // its code
	rows    map[string]int
	asked   []space.Configuration
	known   []map[int]simulator.Measurement // by epoch
}

// row is the configuration's.
func (p *predictions) row(c space.Configuration) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := c.Key()
	row, found := p.rows[key]
	if !found {
		row = len(p.asked)
		p.rows[key] = row
		p.asked, p.known = append(p.asked, c), append(p.known, map[int]simulator.Measurement{})
	}
	return row
}

// at is one epoch. The network predicts the time since the start.
func (p *predictions) at(row, epoch int) simulator.Measurement {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if m, found := p.known[row][epoch]; found {
		return m
	}
	numbers := []float32{float32(epoch)}
	for _, name := range []string{"batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units", "max_dropout"} {
		v, _ := p.asked[row][name].Number()
		numbers = append(numbers, float32(v))
	}
	m := simulator.Measurement{Value: math.NaN(), Seconds: 1}
	if y, err := p.network.Predict([]float32{p.task}, numbers); err == nil {
		m = simulator.Measurement{Value: float64(y[1]), Seconds: max(float64(y[0])/float64(epoch), 0.01)}
	}
	p.known[row][epoch] = m
	return m
}

// loadNetworkTask makes a problem of one of LCBench's tasks, which has the
// code in the network. Its best value is sought: by random draws, and from the
// best of these on by small steps that are kept where they help.
func loadNetworkTask(n *surrogate.Network, task string, code float32) (*table, error) {
	name := "lcbench-" + task
	def, err := studyfile.Parse([]byte(strings.Replace(networkFile, "NAME", name, 1)), studyfile.YAML)
	if err != nil {
		return nil, err
	}
	answers := &predictions{network: n, task: code, rows: map[string]int{}}
	t := &table{name: name, definition: def, cube: def.Space.Cube(), row: answers.row}
	t.at = func(row, epoch int, _ float64) simulator.Measurement { return answers.at(row, epoch) }
	const draws, steps = 1000, 1500
	r := rand.New(rand.NewPCG(uint64(code), 1))
	var losses []float64
	best, least := []float64(nil), math.Inf(1)
	for range draws {
		point, err := t.cube.Draw(r)
		if err != nil {
			return nil, err
		}
		t.drawn = append(t.drawn, point)
		loss := t.loss(t.full(t.nearest(t.cube.Decode(point))))
		if losses = append(losses, loss); loss < least {
			best, least = point, loss
		}
	}
	for i := range steps {
		point := make([]float64, len(best))
		for d := range point {
			point[d] = min(max(best[d]+r.NormFloat64()*0.2*math.Pow(0.01, float64(i)/steps), 0), 1)
		}
		if loss := t.loss(t.full(t.nearest(t.cube.Decode(point)))); loss < least {
			best, least = point, loss
		}
	}
	t.rank(losses)
	t.best = least
	if !(t.best < t.median) {
		return nil, fmt.Errorf("%s: the best loss %v is not below the median %v", name, t.best, t.median)
	}
	return t, nil
}
