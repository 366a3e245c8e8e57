package beside

import "testing"

func TestOnlyTheOwnerAndRootMayAsk(t *testing.T) {
	for _, c := range []struct {
		user, owner int
		may         bool
	}{{1000, 1000, true}, {0, 1000, true}, {1001, 1000, false}, {1000, 0, false}, {0, 0, true}} {
		if mayAsk(c.user, c.owner) != c.may {
			t.Errorf("user %d of a server of %d: %v", c.user, c.owner, !c.may)
		}
	}
}
