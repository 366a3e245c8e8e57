//go:build linux && cgo

package profiler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// driver builds a library that answers like NVIDIA's, with two GPUs.
func driver(t *testing.T, defines ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build the driver's double with")
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	arguments := append([]string{"-shared", "-fPIC", "-DINIT=0", "-DENERGY=0", "-DCOUNT=2", "-o", library}, defines...)
	if said, err := exec.Command(compiler, append(arguments, "testdata/nvml.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return library
}

func TestNVMLAddsGPUs(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if names := strings.Join(gpu.names(), ", "); names != "GPU 0, GPU 1" {
		t.Errorf("got %s", names)
	}
	first, err := gpu.joules()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := gpu.joules(); err != nil || !near(second-first, 5) { // 2 J and 3 J a call
		t.Errorf("got %g J more, %v", second-first, err)
	}
}

func TestNVMLFaults(t *testing.T) {
	tests := []struct{ name, define, say string }{
		{"driver not loaded", "-DINIT=9", "not loaded"},
		{"no permission", "-DINIT=4", "may not"},
		{"unknown", "-DINIT=999", "999"},
		{"no GPU", "-DCOUNT=0", "no GPU"},
		{"too old", "-DOLD", "too old"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := openNVML(driver(t, "-U"+strings.SplitN(test.define[2:], "=", 2)[0], test.define)); err == nil || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got %v, want %q", err, test.say)
			}
		})
	}
	if _, err := openNVML("/nowhere/libnvidia-ml.so.1"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v", err)
	}
}

func TestOldGPUTellsNoEnergy(t *testing.T) {
	gpu, err := openNVML(driver(t, "-UENERGY", "-DENERGY=3"))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if _, err := gpu.joules(); err == nil || !strings.Contains(err.Error(), "GPU 0") {
		t.Errorf("got %v", err)
	}
}

// A program must start where symbols are bound at once and no driver is.
func TestStartsWithoutDriver(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run", "^TestParseCPUList$")
	command.Env = append(os.Environ(), "LD_BIND_NOW=1")
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
