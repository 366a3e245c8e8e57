// Package sobol takes the points of a Sobol sequence (Sobol 1967; Joe and Kuo 2008).
package sobol

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// stream keeps the shifts apart from the draws of the ladder.
const stream = 0x7365617263680002

// window is how many points in a row may be passed over because they are
// forbidden, were tried before or are close to a trial that is out. Behind it
// the space counts as used up.
const window = 1024

// Sequence takes the points of a Sobol sequence (Sobol 1967; direction numbers of
// Joe and Kuo 2008), which fill the cube more evenly than random draws do. A
// digital shift moves the sequence by the seed, without which every study would
// begin in the same corner.
type Sequence struct {
	directions [][32]uint32 // by dimension
	shift      []uint32     // by dimension
	// What follows from the history's first seen trials: next is the point of
	// the sequence behind the last one that a trial has.
	next uint64
	seen int
}

// New returns the proposer of a sequence that the seed shifts. The error is
// [problem.Invalid] if the space has more parameters than the sequence dimensions.
func New(s space.Space, seed uint64) (*Sequence, error) {
	known := polynomials()
	if n, most := len(s.Parameters), len(known)+1; n > most {
		return nil, problem.WithFields("the Sobol sequence has too few dimensions", []problem.Field{{
			Path: "search.method", Value: "sobol",
			Message: fmt.Sprintf("must be another method: sobol knows %d dimensions, and the space has %d parameters", most, n),
		}})
	}
	r := rand.New(rand.NewPCG(seed, stream))
	sequence := &Sequence{}
	for d := range s.Parameters {
		p := polynomial{} // the first dimension is the van der Corput sequence
		if d > 0 {
			p = known[d-1]
		}
		sequence.directions = append(sequence.directions, p.directions())
		sequence.shift = append(sequence.shift, r.Uint32())
	}
	return sequence, nil
}

func (s *Sequence) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	s.follow(h)
	point := make([]float64, len(s.shift))
	for n := s.next; n < s.next+window && n <= math.MaxUint32; n++ {
		if !s.at(h, n, point) {
			continue
		}
		if configuration, ok := propose.Fresh(h, point); ok {
			reason := fmt.Sprintf("point %d of the Sobol sequence", n+1)
			return ladder.Proposal{Configuration: configuration, Origin: propose.OriginSobol, Reason: reason}, true
		}
	}
	reason := fmt.Sprintf("drawn uniformly: the next %d points of the Sobol sequence are forbidden, were tried before or are close to trials that are out", window)
	return propose.Uniform(h, r, reason)
}

// follow moves next behind the trials that are new since the last proposal. A
// trial's point is the next one that decodes to its configuration.
func (s *Sequence) follow(h *ladder.History) {
	if s.seen > len(h.Trials) {
		s.next, s.seen = 0, 0
	}
	point := make([]float64, len(s.shift))
	for ; s.seen < len(h.Trials); s.seen++ {
		if h.Origin(s.seen) != propose.OriginSobol {
			continue
		}
		for n := s.next; n < s.next+window; n++ {
			if s.at(h, n, point) && alike(h.Cube.Encode(h.Cube.Decode(point)), h.Points[s.seen]) {
				s.next = n + 1
				break
			}
		}
	}
}

// alike compares up to the last bits, in which a restored study may differ
// whose server was built for another processor.
func alike(a, b []float64) bool {
	for i := range a {
		if math.IsNaN(a[i]) != math.IsNaN(b[i]) || math.Abs(a[i]-b[i]) > 1e-12 {
			return false
		}
	}
	return true
}

// at fills in the masked point with the number, and reports whether it is allowed.
func (s *Sequence) at(h *ladder.History, number uint64, point []float64) bool {
	for d := range point {
		x := s.shift[d]
		for left := uint32(number); left != 0; left &= left - 1 {
			x ^= s.directions[d][bits.TrailingZeros32(left)]
		}
		// The middle of the share that 32 bits tell apart: never 0 or 1.
		point[d] = (float64(x) + 0.5) / (1 << 32)
	}
	h.Cube.Mask(point)
	return !h.Cube.Forbids(point)
}

// polynomial is a primitive polynomial over the field of two elements, its
// inner coefficients as the bits of a number, and the first direction numbers
// of its dimension. The degree is their count.
type polynomial struct {
	coefficients uint32
	first        []uint32
}

// directions continues the first numbers by the polynomial's recurrence
// (Bratley and Fox 1988, equation 2), each shifted to the top of the word.
func (p polynomial) directions() [32]uint32 {
	var v [32]uint32
	degree := len(p.first)
	for i := range v {
		switch {
		case degree == 0:
			v[i] = 1 << (31 - i)
		case i < degree:
			v[i] = p.first[i] << (31 - i)
		default:
			v[i] = v[i-degree] ^ v[i-degree]>>degree
			for k := 1; k < degree; k++ {
				if p.coefficients>>(degree-1-k)&1 == 1 {
					v[i] ^= v[i-k]
				}
			}
		}
	}
	return v
}
