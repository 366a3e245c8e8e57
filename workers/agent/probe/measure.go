package probe

import (
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
)

// maxTold is how much of a sentence the server takes.
const maxTold = 1024

// counters is the profiler's name of what profiles are made with.
const counters = "perf counters"

// Measures says what trials can be measured with. Counters that the owner
// switched off are none.
func Measures(found []profiler.Capability, noProfile bool) []protocol.Measure {
	list := make([]protocol.Measure, 0, len(found))
	for _, c := range found {
		one := protocol.Measure{Name: c.Name, Available: c.Available, Detail: told(c.Detail), Reason: told(c.Reason), Remedy: told(c.Remedy)}
		if c.Name == counters && noProfile {
			one.Available, one.Reason, one.Remedy = false, "switched off: the worker was started with --no-profile", "start it without"
		}
		list = append(list, one)
	}
	return list
}

// told is the beginning of a text, as much as may be told.
func told(text string) string {
	if len(text) > maxTold {
		text = text[:maxTold]
	}
	return strings.ToValidUTF8(text, "")
}
