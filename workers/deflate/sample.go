package deflate

import "math/rand/v2"

// sample draws what one job takes.
func (p Phases) sample(random *rand.Rand) float64 {
	phase, draw := -1, random.Float64()
	for i, probability := range p.Begin {
		if draw -= probability; draw < 0 {
			phase = i
			break
		}
	}
	seconds := 0.0
	for phase >= 0 {
		out := p.out(phase)
		seconds += random.ExpFloat64() / out
		draw = random.Float64() * out
		next := -1
		if draw -= p.Done[phase]; draw >= 0 {
			for _, step := range p.Next[phase] {
				next = step.To // the last one where rounding leaves something over
				if draw -= step.Rate; draw < 0 {
					break
				}
			}
		}
		phase = next
	}
	return seconds
}
