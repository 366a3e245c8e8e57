package limit

import (
	"hash/maphash"
	"iter"
	"sync"
)

// Names bounds how many different names each key may use.
type Names struct {
	most, keys int
	seed       maphash.Seed

	mutex sync.Mutex
	used  map[string]map[uint64]struct{}
}

// NewNames returns Names with so many for each of so many keys; of more keys,
// all are forgotten.
func NewNames(most, keys int) *Names {
	return &Names{most: most, keys: keys, seed: maphash.MakeSeed(), used: make(map[string]map[uint64]struct{})}
}

// Admit notes the names for the key, and reports whether there was room for all
// of them. Otherwise it notes none.
func (n *Names) Admit(key string, names iter.Seq[string]) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	used := n.used[key]
	fresh := make(map[uint64]struct{})
	for name := range names {
		sum := maphash.String(n.seed, name)
		if _, known := used[sum]; !known {
			fresh[sum] = struct{}{}
		}
	}
	if len(used)+len(fresh) > n.most {
		return false
	}
	if used == nil {
		if len(n.used) >= n.keys {
			clear(n.used)
		}
		used = make(map[uint64]struct{}, len(fresh))
		n.used[key] = used
	}
	for sum := range fresh {
		used[sum] = struct{}{}
	}
	return true
}
