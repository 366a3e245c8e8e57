package edgecmd

import (
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/backend"
)

// A backend is likely better only than one that is chosen.
func TestVerdict(t *testing.T) {
	b := backend.BackendOption{Backend: backend.Backend{Name: "b"}, State: backend.Keeps}
	doubtful := b
	doubtful.State = backend.Doubtful
	for want, got := range map[string]string{
		"likely better":    verdict(backend.BackendChoice{Chosen: "a", Likely: "b"}, b),
		"likely":           verdict(backend.BackendChoice{Likely: "b"}, b),
		"doubtful":         verdict(backend.BackendChoice{Likely: "b"}, doubtful),
		"chosen":           verdict(backend.BackendChoice{Chosen: "b"}, b),
		"keeps the bounds": verdict(backend.BackendChoice{}, b),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
