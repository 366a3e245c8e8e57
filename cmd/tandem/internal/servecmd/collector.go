package servecmd

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// roomy is how much memory a server may take before its garbage is collected at Go's
// own pace.
const roomy = 1 << 30

// tuneCollector trades memory for time: a server's heap is small, mostly, and
// collecting it at Go's default pace takes a sixth of what a request costs. GOGC and
// GOMEMLIMIT go first.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		limitMemory(nil)
	}
}

// limitMemory bounds the memory anew after each collection: to what is roomy, or to twice
// what is in use, so that a large server does not collect all the time.
func limitMemory(*collection) {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(used)
	debug.SetMemoryLimit(max(roomy, 2*int64(used[0].Value.Uint64()+used[1].Value.Uint64())))
	runtime.SetFinalizer(new(collection), limitMemory)
}

// collection is an object of which a collection finds that nobody uses it.
type collection struct{ _ *collection }
