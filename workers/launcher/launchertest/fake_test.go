package launchertest_test

import (
	"testing"

	"github.com/tandem-tune/tandem/workers/launcher/launchertest"
)

// TestFake tells all stories in simulated time.
func TestFake(t *testing.T) { launchertest.Simulate(t) }
