package importance

import "github.com/tandem-tune/tandem/study/space"

// GrowOne grows a forest of one tree.
func GrowOne(s space.Space, observations []Observation) *Forest {
	return grow(s, observations, Growth{Leaf: 3, Share: 0.7}, 1, maxUsed)
}
