package profiler

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// Capability is one thing this machine can or cannot measure or control.
type Capability struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	// Detail says what there is: a model, a version, a number.
	Detail string `json:"detail,omitempty"`
	// Reason says why it is not available, or available only in part; Remedy
	// what to do about it.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// DetectOptions say where to look. The zero value is this machine.
type DetectOptions struct {
	// Root is prefixed to the paths of the machine's files; "/" when empty.
	Root string
	// DataDirectory is where disk space is wanted; "." when empty.
	DataDirectory string
	// Python is the interpreter to ask; "python3" from the PATH when empty.
	Python string
}

// Measurable looks only at what trials are measured with, which takes no other
// program: one entry each, always the same ones in the same order.
func Measurable(root string) []Capability {
	h := proc.NewHost(root)
	return []Capability{detectPerf(h), detectRAPL(h), detectGPU(), detectCgroups(h), detectFrequency(h)}
}

// Detect looks at everything that studies can use and returns one entry each, always
// the same ones in the same order. It never fails: what cannot be found out is
// not available, with the reason.
func Detect(ctx context.Context, options DetectOptions) []Capability {
	h := proc.NewHost(options.Root)
	python, torch := detectPython(ctx, cmp.Or(options.Python, "python3"))
	return []Capability{
		detectCPU(h), detectMemory(h), detectDisk(cmp.Or(options.DataDirectory, ".")),
		detectPerf(h), detectRAPL(h), detectGPU(), detectCgroups(h), detectFrequency(h), detectAffinity(),
		detectLandlock(), python, torch,
	}
}

func detectCPU(h proc.Host) Capability {
	c := Capability{Name: "cpu", Available: true}
	cores := proc.AllowedCores()
	c.Detail = fmt.Sprintf("%s, %s", cmp.Or(proc.CPUModel(h), "model not given by the kernel"), count(cores, "logical core"))
	if cores == 0 {
		c.Available, c.Reason = false, "the kernel does not tell which cores this process may use"
	}
	return c
}

func detectMemory(h proc.Host) Capability {
	total, available, err := proc.Memory(h)
	if err != nil {
		return Capability{Name: "memory", Reason: "the kernel does not tell its memory: " + err.Error(), Remedy: "mount /proc"}
	}
	return Capability{Name: "memory", Available: true, Detail: fmt.Sprintf("%s, %s of it available", gibibytes(total), gibibytes(available))}
}

// detectDisk looks at the folder, or at the one it would be made in.
func detectDisk(directory string) Capability {
	const scarce = 1 << 30
	c := Capability{Name: "disk"}
	absolute, err := filepath.Abs(directory)
	if err != nil {
		c.Reason = err.Error()
		return c
	}
	existing := absolute
	for _, err = os.Stat(existing); err != nil && existing != filepath.Dir(existing); _, err = os.Stat(existing) {
		existing = filepath.Dir(existing)
	}
	var space unix.Statfs_t
	if err := unix.Statfs(existing, &space); err != nil {
		c.Reason = fmt.Sprintf("cannot look at %s: %v", existing, err)
		return c
	}
	free := int64(space.Bavail) * space.Bsize
	c.Available, c.Detail = free >= scarce, fmt.Sprintf("%s free at %s", gibibytes(free), absolute)
	if !c.Available {
		c.Reason, c.Remedy = "less than 1 GiB is free: checkpoints would soon be refused", "free some space, or choose another folder with --data"
	}
	if unix.Access(existing, unix.W_OK) != nil {
		c.Available, c.Reason, c.Remedy = false, "this user may not write to "+existing, "choose a folder of your own with --data"
	}
	return c
}

func detectGPU() Capability {
	gpu, err := openGPUs()
	if err != nil {
		return Capability{Name: "gpu", Reason: err.Error(),
			Remedy: "if this machine has a GPU of NVIDIA: install its driver, and give containers access to it; without one, GPU energy is simply not in the sums"}
	}
	defer gpu.close()
	c := Capability{Name: "gpu", Available: true, Detail: strings.Join(models(gpu), ", ") + " (NVML)"}
	if _, err := joulesOf(gpu, allOf(gpu)); err != nil {
		c.Reason, c.Remedy = "GPU energy is not measured: "+err.Error(), "energy counters need a GPU of the Volta generation (2017) or newer"
	}
	if lacks := untold(gpu); lacks != "" {
		c.Reason = joined(c.Reason, lacks)
		c.Remedy = joined(c.Remedy, "the driver tells processes apart on whole GPUs of the Maxwell generation (2014) or newer, not on parts of one (MIG)")
	}
	return c
}

// joined are two sentences, either of which may be missing.
func joined(one, other string) string {
	if one == "" {
		return other
	}
	return one + "; " + other
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
