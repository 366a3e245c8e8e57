package inference

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
)

// A fit takes long: what a service has fitted to measurements is used for all
// architectures, on workers' machines too.
func TestTargetsShareFits(t *testing.T) {
	devices, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	s := New(nil, Options{Now: time.Now})
	site := emu.Site{Machine: "here", Processor: "x", Cores: 2, LowestHertz: 2e9, HighestHertz: 3e9, MemoryBytes: 8 << 30, MemoryBytesPerSecond: 1e10}
	own := site
	own.Machine = "board/kitchen"
	a := emu.Architecture{Sites: []emu.Site{site, own}}
	for _, name := range []string{device.ThisMachine, "board/kitchen", "raspberry-pi-4"} {
		if target, err := s.target(devices, a, name, "here"); err != nil || target.Fits != &s.fits {
			t.Errorf("%s: fits %p, not the service's: %v", name, target.Fits, err)
		}
	}
}
