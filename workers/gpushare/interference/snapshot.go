package interference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

// version is that of the documents: one of another version is refused, since
// what a weight means has changed.
const version = 1

// The kinds of documents.
const (
	networkKind = "network"
	lineKind    = "line"
	factorsKind = "factors"
)

const (
	// mostHidden and mostKinds bound what a document may ask memory for.
	mostHidden, mostKinds = 1024, 1 << 16
	// largest bounds a weight: sums of so large ones are still numbers.
	largest = 1e6
	// steepest bounds a logarithm of a speed: its exponential is still a number
	// above 0.
	steepest = 700.0
)

// header begins each document.
type header struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

type networkDocument struct {
	header
	Hidden int `json:"hidden"`
	// Weights are those of the encoder's gates (update, reset, fresh), of the
	// decoder's, and of the last layer, by rows.
	Weights [][]float64 `json:"weights"`
}

type lineDocument struct {
	header
	Weights []float64 `json:"weights"`
}

type factorsDocument struct {
	header
	Mean  float64       `json:"mean"`
	Kinds []factorsKnow `json:"kinds"`
}

// factorsKnow is what was learned of a kind, as logarithms of speeds.
type factorsKnow struct {
	Name      string        `json:"name"`
	Suffers   float64       `json:"suffers"`
	Sensitive [rank]float64 `json:"sensitive"`
	Presses   float64       `json:"presses"`
	Uses      [rank]float64 `json:"uses"`
}

// MarshalJSON writes the network so that [ReadNetwork] has one that predicts the
// same.
func (n *Network) MarshalJSON() ([]byte, error) {
	document := networkDocument{header: header{networkKind, version}, Hidden: n.encoder.Hidden()}
	for _, part := range n.parts() {
		document.Weights = append(document.Weights, part.Value)
	}
	return json.Marshal(document)
}

// ReadNetwork is a network that was written as JSON. The error says what is wrong
// with the document.
func ReadNetwork(document []byte) (*Network, error) {
	var d networkDocument
	if err := read(document, &d, &d.header, networkKind); err != nil {
		return nil, err
	}
	if d.Hidden < 1 || d.Hidden > mostHidden {
		return nil, fmt.Errorf("the interference network has %d hidden units: at least 1 and at most %d are read", d.Hidden, mostHidden)
	}
	n := &Network{encoder: nn.NewGRU(inputs, d.Hidden, nil), decoder: nn.NewGRU(inputs, d.Hidden, nil), last: nn.NewTensor(told, d.Hidden+1, nil)}
	parts := n.parts()
	if len(d.Weights) != len(parts) {
		return nil, fmt.Errorf("the interference network has %d matrices of weights, %d are needed", len(d.Weights), len(parts))
	}
	for i, part := range parts {
		if len(d.Weights[i]) != len(part.Value) {
			return nil, fmt.Errorf("matrix %d of the interference network has %d weights, %d are needed with %d hidden units", i, len(d.Weights[i]), len(part.Value), d.Hidden)
		}
		if at := slices.IndexFunc(d.Weights[i], unusable); at >= 0 {
			return nil, fmt.Errorf("weight %d of matrix %d of the interference network is %g: at most %g either way is read", at, i, d.Weights[i][at], largest)
		}
		copy(part.Value, d.Weights[i])
	}
	return n, nil
}

// MarshalJSON writes the regression so that [ReadLine] has one that predicts the
// same.
func (l *Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(lineDocument{header{lineKind, version}, l.weights})
}

// ReadLine is a regression that was written as JSON. The error says what is wrong
// with the document.
func ReadLine(document []byte) (*Line, error) {
	var d lineDocument
	if err := read(document, &d, &d.header, lineKind); err != nil {
		return nil, err
	}
	if len(d.Weights) != lineTerms {
		return nil, fmt.Errorf("the interference line has %d weights, %d are needed", len(d.Weights), lineTerms)
	}
	if at := slices.IndexFunc(d.Weights, unusable); at >= 0 {
		return nil, fmt.Errorf("weight %d of the interference line is %g: at most %g either way is read", at, d.Weights[at], largest)
	}
	return &Line{weights: d.Weights}, nil
}

// MarshalJSON writes the factors, by kind, so that [ReadFactors] has some that
// predict the same.
func (f *Factors) MarshalJSON() ([]byte, error) {
	document := factorsDocument{header: header{factorsKind, version}, Mean: f.mean, Kinds: []factorsKnow{}}
	for _, name := range slices.Sorted(maps.Keys(f.kinds)) {
		own, other := f.own[f.kinds[name]], f.other[f.kinds[name]]
		document.Kinds = append(document.Kinds, factorsKnow{Name: name, Suffers: own[0], Sensitive: [rank]float64(own[2:]), Presses: other[1], Uses: [rank]float64(other[2:])})
	}
	return json.Marshal(document)
}

// ReadFactors is what was written as JSON. The error says what is wrong with the
// document.
func ReadFactors(document []byte) (*Factors, error) {
	var d factorsDocument
	if err := read(document, &d, &d.header, factorsKind); err != nil {
		return nil, err
	}
	if len(d.Kinds) == 0 || len(d.Kinds) > mostKinds {
		return nil, fmt.Errorf("the interference factors are of %d kinds: at least 1 and at most %d are read", len(d.Kinds), mostKinds)
	}
	f := &Factors{mean: d.Mean, kinds: make(map[string]int, len(d.Kinds))}
	var suffers, presses, sensitive, uses float64
	for i, one := range d.Kinds {
		if _, twice := f.kinds[one.Name]; twice {
			return nil, fmt.Errorf("the interference factors have the kind %q twice", one.Name)
		}
		f.kinds[one.Name] = i
		f.own = append(f.own, append([]float64{one.Suffers, 1}, one.Sensitive[:]...))
		f.other = append(f.other, append([]float64{1, one.Presses}, one.Uses[:]...))
		suffers, presses = max(suffers, math.Abs(one.Suffers)), max(presses, math.Abs(one.Presses))
		for k := range rank {
			sensitive, uses = max(sensitive, math.Abs(one.Sensitive[k])), max(uses, math.Abs(one.Uses[k]))
		}
	}
	if most := math.Abs(d.Mean) + suffers + presses + rank*sensitive*uses; !(most <= steepest) {
		return nil, fmt.Errorf("the interference factors tell logarithms of speeds up to %g: at most %g is read", most, steepest)
	}
	return f, nil
}

// read takes a document of the kind apart; into has the header.
func read(document []byte, into any, begins *header, kind string) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the interference %s cannot be read: %w", kind, err)
	}
	if decoder.More() {
		return fmt.Errorf("the interference %s cannot be read: there is more behind it", kind)
	}
	if begins.Kind != kind {
		return fmt.Errorf("the document is of the kind %q, not of an interference %s", begins.Kind, kind)
	}
	if begins.Version != version {
		return fmt.Errorf("the interference %s has version %d, this program version %d: train it again", kind, begins.Version, version)
	}
	return nil
}

func unusable(weight float64) bool { return !(math.Abs(weight) <= largest) }
