package importance

import "github.com/tandem-tune/tandem/study/space"

// GrowOne grows a forest of one tree.
func GrowOne(s space.Space, observations []Observation) *Forest {
	return grow(s, observations, 1, maxUsed)
}
